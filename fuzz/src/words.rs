//! The command line and the environment. The bytes are texts with a NUL between them, as the kernel hands
//! them over: `PATH`, then `RUNGATE_HELD`, then an argument each.

use std::{
    borrow::Cow,
    ffi::{CString, OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use clap::Parser;
use rungate::{
    cli::{Action, CommandLine},
    judge::terms::{runs::Runs, slots_wanted::NamedSlots},
    launch::{
        environment::{HELD, parse_held, with_slots},
        program::{Program, Search},
    },
};

/// Reads the arguments, looks the program up, and tells it what it holds.
pub fn judge(data: &[u8]) {
    let mut texts = data.split(|byte| *byte == 0).map(OsStr::from_bytes);
    let (search, held) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
    let arguments: Vec<OsString> = texts.map(OsStr::to_owned).collect();
    command_line(&arguments);
    for command in &arguments {
        program(command, search);
    }
    environment(held, &arguments);
}

/// The command's arguments are the last ones that were given, as they are.
fn command_line(arguments: &[OsString]) {
    let given = [OsStr::new("rungate")].into_iter().chain(arguments.iter().map(OsString::as_os_str));
    match CommandLine::try_parse_from(given) {
        Ok(line) => {
            let command = match &line.action {
                Action::Run(run) => &run.command,
                Action::Explain(explain) => &explain.command,
                _ => return,
            };
            assert!(!command.is_empty() && arguments.ends_with(command), "{command:?} of {arguments:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// What is found is the command's name in a directory of the search path, or the command itself where it is a
/// path; and what lies behind a shim is a part of the search path, so that a search that goes on behind it
/// ends.
fn program(command: &OsStr, search: &OsStr) {
    let search = Search::of(search.to_owned());
    let behind = search.behind(Path::new(command));
    assert!(search.entries().ends_with(behind));
    let Ok(program) = Program::find_along(&search, command, Path::new("/usr")) else { return };
    let is_found = if command.as_bytes().contains(&b'/') {
        program.file == Path::new(command)
    } else {
        search.entries().iter().any(|entry| program.file == entry.join(command))
    };
    assert!(!command.is_empty() && is_found, "{command:?} is {program:?}");
    assert!(program.path.is_absolute() && program.canonical.is_absolute(), "{program:?}");
}

/// What is made up in the environment is replaced or passed on, and never becomes anything else.
fn environment(held: &OsStr, entries: &[OsString]) {
    let ancestors = parse_held(&held.to_string_lossy());
    assert!(ancestors.iter().all(|held| !held.name.is_empty() && held.slots.count() > 0));
    let caller: Vec<CString> =
        entries.iter().filter_map(|entry| CString::new(entry.as_bytes()).ok()).collect();
    let (slots, called, joined) = (Runs::of(&[3, 5]), Vec::new(), Runs::default());
    let taken = [NamedSlots { name: "seats".to_owned(), slots, called, joined }];
    let entries = caller.iter().cloned().map(Cow::Owned).collect();
    let environment: Vec<CString> =
        with_slots(entries, &ancestors, &taken).into_iter().map(Cow::into_owned).collect();
    let told: Vec<&CString> = environment
        .iter()
        .filter(|entry| {
            entry.as_bytes().strip_prefix(HELD.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        })
        .collect();
    let [told] = told.as_slice() else { panic!("told {told:?}") };
    let told = parse_held(&told.to_string_lossy()[HELD.len() + 1..]);
    assert_eq!(told[0], taken[0]);
    let others: Vec<&NamedSlots> = ancestors.iter().filter(|held| **held != taken[0]).collect();
    assert_eq!(told[1..].iter().collect::<Vec<_>>(), others);
    let ours = |entry: &&CString| {
        ["RUNGATE_HELD=", "RUNGATE_SLOT_SEATS="]
            .iter()
            .any(|name| entry.as_bytes().starts_with(name.as_bytes()))
    };
    let untouched =
        |entries: &[CString]| entries.iter().filter(|entry| !ours(entry)).cloned().collect::<Vec<_>>();
    assert_eq!(untouched(&caller), untouched(&environment));
}
