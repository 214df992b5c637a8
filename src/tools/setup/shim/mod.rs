//! `rungate shim`: links to rungate in front of programs.

mod list;

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use crate::{
    cli::{InstallArguments, RemoveArguments, ShimAction},
    launch::{DirectoryError, Shim, ShimDirectory, Situation, Standing, TOOLS, is_own_name},
    sys::executable,
    text::{Error, ExitStatus, print, stream, visible, word},
};

/// Runs the requested subcommand.
pub(crate) fn run(arguments: &ShimAction, situation: &Situation) -> Result<u8, Error> {
    match arguments {
        ShimAction::Install(arguments) => install(arguments, situation),
        ShimAction::List(arguments) => list::run(arguments, situation),
        ShimAction::Remove(arguments) => remove(arguments, situation),
    }
}

// `rungate shim install` and `rungate shim remove`: links to rungate under the names of commands, all of
// them or none.

/// Makes the links.
fn install(arguments: &InstallArguments, situation: &Situation) -> Result<u8, Error> {
    let InstallArguments { directory, names, dry_run } = arguments;
    let names = match names.as_slice() {
        [] => of_policy(situation, directory)?,
        names => names.to_vec(),
    };
    let shims =
        ShimDirectory::to_make(situation.directory.join(directory)).map_err(|error| failed(&error))?;
    let mut in_the_way = Vec::new();
    let mut wanted: Vec<&OsStr> = Vec::new();
    for name in &names {
        match (Shim::fault_of(name), shims.standing(name)) {
            (Some(fault), _) => in_the_way.push(format!("{}: {fault}", visible(name))),
            (None, Standing::Taken(why)) => in_the_way.push(format!("{} {why}", visible(shims.link(name)))),
            (None, Standing::Free | Standing::Shim)
                if wanted.contains(&name.as_os_str()) || Shim::at(&shims.link(name)).is_some() => {}
            (None, Standing::Free | Standing::Shim) => wanted.push(name),
        }
    }
    refuse(
        "created",
        &in_the_way,
        "Existing files are never overwritten. Name the commands that need one after the directory.",
    )?;
    let target = launcher(situation)?;
    if *dry_run {
        let shown = |name: &&OsStr| format!("{} -> {}\n", visible(shims.link(name)), visible(&target));
        return print(&wanted.iter().map(shown).collect::<String>());
    }
    shims.make(&wanted, &target).map_err(|error| failed(&error))?;
    Ok(ExitStatus::Success as u8)
}

/// Removes links.
fn remove(arguments: &RemoveArguments, situation: &Situation) -> Result<u8, Error> {
    let RemoveArguments { directory, names } = arguments;
    let shims = ShimDirectory::open(situation.directory.join(directory)).map_err(|error| failed(&error))?;
    let names = match names.as_slice() {
        [] => shims.shims().map_err(|error| failed(&error))?,
        names => names.to_vec(),
    };
    let mut in_the_way = Vec::new();
    let mut there: Vec<&OsStr> = Vec::new();
    for name in &names {
        let path = shims.link(name);
        match shims.standing(name) {
            _ if is_own_name(name) => {
                in_the_way.push(format!("{}: rungate itself has that name", visible(name)));
            }
            Standing::Shim if !there.contains(&name.as_os_str()) => there.push(name),
            Standing::Shim => {}
            Standing::Free => in_the_way.push(format!("{} is not there", visible(path))),
            Standing::Taken(why) => in_the_way.push(format!("{} {why}", visible(path))),
        }
    }
    refuse("removed", &in_the_way, "To see what there is: rungate shim list")?;
    shims.remove(&there).map_err(|error| failed(&error))?;
    Ok(ExitStatus::Success as u8)
}

/// The commands that the policy names, except those that must have no shim, which are reported.
fn of_policy(situation: &Situation, directory: &Path) -> Result<Vec<OsString>, Error> {
    let policy = situation.load_policy()?;
    let (refused, names): (Vec<&str>, Vec<&str>) =
        policy.command_names().into_iter().partition(|name| Shim::fault_of(OsStr::new(name)).is_some());
    for (name, fault) in refused.iter().filter_map(|name| Some((name, Shim::fault_of(OsStr::new(name))?))) {
        stream::complain(&format!("rungate: no shim for {}: {fault}", visible(name)));
    }
    if names.is_empty() {
        let why =
            if policy.is_empty() { "there is no policy" } else { "the policy names no command literally" };
        return Err(Error::new(ExitStatus::Usage, format!("no shims created: {why}"))
            .advise(format!("Name the commands: rungate shim install {} NAME...", word(directory))));
    }
    Ok(names.into_iter().map(OsString::from).collect())
}

fn refuse(done: &str, in_the_way: &[String], advice: &str) -> Result<(), Error> {
    if in_the_way.is_empty() {
        return Ok(());
    }
    let text = format!("no shims {done}:\n  {}", in_the_way.join("\n  "));
    Err(Error::new(ExitStatus::Failure, text).advise(advice.to_owned()))
}

fn failed(error: &DirectoryError) -> Error {
    Error::new(ExitStatus::System, error.to_string())
}

/// The target of the links: the launcher by the name that was typed, because after an upgrade that name leads
/// to the next version.
fn launcher(situation: &Situation) -> Result<PathBuf, Error> {
    let called = executable::own_path().map(|path| situation.directory.join(path));
    let in_canonical_directory =
        |path: PathBuf| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    called
        .and_then(in_canonical_directory)
        .filter(|path| path.file_name().is_some_and(|name| name != TOOLS))
        .ok_or_else(|| {
            Error::new(ExitStatus::System, "the launcher, rungate, to which shims point, cannot be found")
        })
}
