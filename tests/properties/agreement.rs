//! "One evaluator": whatever the policy says and whatever state the lock files are in, `explain` tells what
//! `run` does a moment later: the same status, and the same repositories in the way.

use std::{
    fs::{self, File, OpenOptions},
    os::{fd::AsFd, unix::fs::FileExt},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::Value;

use crate::support::{Ending, Site, lock_range};

/// The byte before that of slot 1.
const BEFORE_SLOTS: i64 = 7;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A file for each number of slots that the command line asks for, each with a limit of its own.
const BY_NUMBER: &str = "per = \"{np}\"\nlimits = { 1 = 1, 2 = 3 }";

/// A repository: what the policy says of it, and the state that its file is in.
#[derive(Clone, Debug)]
struct Repository {
    limit: u32,
    settings: &'static str,
    reserve: u32,
    held: u32,
    /// How long ago something was started, in seconds.
    started: Option<u64>,
    file: Found,
}

/// What stands where the lock file should be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Found {
    LockFile,
    Nothing,
    Directory,
}

fn repositories() -> impl Strategy<Value = Repository> {
    let settings = select(vec![
        "",
        "",
        "if_elapsed = \"1h\"",
        "if_elapsed = \"1h\"\ntoo_soon = \"ok\"",
        "if_elapsed = \"1h\"\nenforce = false",
        "enforce = false",
        "queue = 1\nmax_wait = \"0s\"",
        "names = [\"one\", \"two\", \"three\"]\nout_of_order = [\"two\"]",
        "limits = [{ when = [\"2000-01-01\"], limit = 9 }, { when = [\"00:00-24:00\"], limit = 2 }]",
        BY_NUMBER,
    ]);
    let started = prop_oneof![3 => Just(None), 1 => (0..7200_u64).prop_map(Some)];
    let file =
        prop_oneof![12 => Just(Found::LockFile), 2 => Just(Found::Nothing), 1 => Just(Found::Directory)];
    (0..4_u32, settings, 0..3_u32, 0..4_u32, started, file).prop_map(
        |(limit, settings, reserve, held, started, file)| {
            let reserve = reserve.min(limit);
            Repository { limit, settings, reserve, held, started, file }
        },
    )
}

fn demands() -> impl Strategy<Value = Vec<String>> {
    let one = select(NAMES.to_vec()).prop_map(|name| format!("\"{name}\""));
    let several = (select(NAMES.to_vec()), 1..3_u32, 0..4_u32).prop_map(|(name, slots, ceiling)| {
        let ceiling = match ceiling {
            0 => String::new(),
            3 => ", ceiling = \"50%\"".to_owned(),
            ceiling => format!(", ceiling = {ceiling}"),
        };
        format!("{{ repository = \"{name}\", slots = {slots}{ceiling} }}")
    });
    // More than there can ever be is a fault where the policy says it, and a refusal where the command line
    // does.
    let counted = select(NAMES.to_vec())
        .prop_map(|name| format!("{{ repository = \"{name}\", slots_from = {{ after = \"-np\" }} }}"));
    let all =
        select(NAMES.to_vec()).prop_map(|name| format!("{{ repository = \"{name}\", slots = \"all\" }}"));
    let never =
        select(NAMES.to_vec()).prop_map(|name| format!("{{ repository = \"{name}\", wait = \"0s\" }}"));
    let single = prop_oneof![4 => one, 1 => several, 2 => counted, 1 => all, 1 => never];
    let list = vec(single.clone(), 2..3).prop_map(|claims| format!("[{}]", claims.join(", ")));
    let alternative = prop_oneof![3 => single.clone(), 1 => list];
    let any = vec(alternative, 2..4).prop_map(|claims| format!("{{ any_of = [{}] }}", claims.join(", ")));
    vec(prop_oneof![3 => single, 2 => any], 1..4)
}

fn policy(repositories: &[Repository], demands: &[String], rule: &str) -> String {
    let mut text = String::new();
    for (name, Repository { limit, settings, reserve, .. }) in NAMES.iter().zip(repositories) {
        text += &format!("[repository.{name}]\nlimit = {limit}\n{settings}\n");
        let when = if settings.contains("limits") { ", when = [\"00:00-24:00\"]" } else { "" };
        match reserve {
            0 => {}
            1 => text += &format!("reserve = [{{ users = [\"nobody-of-that-name\"], slots = 1{when} }}]\n"),
            _ => {
                text +=
                    &format!("reserve = [{{ hosts = [\"no-host\"], slots = \"67%\", lend = 1{when} }}]\n");
            }
        }
    }
    let is_by_number = |demand: &str| {
        let mut named =
            NAMES.iter().zip(repositories).filter(|(name, _)| demand.contains(&format!("\"{name}\"")));
        named.any(|(_, repository)| repository.settings == BY_NUMBER)
    };
    for demand in demands {
        let captures = if is_by_number(demand) { "arguments = [[\"-np\", \"{np}\"]]\n" } else { "" };
        text += &format!("[[rule]]\ncommands = [\"true\"]\n{captures}{rule}\nacquire = [{demand}]\n");
    }
    text
}

/// Brings the file into its state. The locks go with the descriptors.
fn prepare(site: &Site, name: &str, np: &str, repository: &Repository) -> Vec<File> {
    let member = if repository.settings == BY_NUMBER { format!(".{np}") } else { String::new() };
    let path = site.repository(&format!("{name}{member}.lock"));
    match repository.file {
        Found::Nothing => return Vec::new(),
        Found::Directory => {
            fs::create_dir(path).expect("a new directory");
            return Vec::new();
        }
        Found::LockFile => {}
    }
    let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = open().expect("a new file");
    if let Some(ago) = repository.started {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        let start = now.saturating_sub(Duration::from_secs(ago)).as_millis();
        let start = u64::try_from(start).expect("a moment of this age");
        let fields = [u64::from_le_bytes(*b"rungate\n"), 1, 0, start, 0];
        let header: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        file.write_all_at(&header, 4096).expect("the header");
    }
    let lock = |slot: u32| {
        let file = open().expect("the file");
        let range = lock_range(libc::F_RDLCK, BEFORE_SLOTS + i64::from(slot), 1);
        fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&range)).expect("nobody else has it");
        file
    };
    (1..=repository.held).map(lock).collect()
}

/// The repositories that a refusal names, without their members: each stands two blanks in, and its numbers
/// two blanks further.
fn named(stderr: &str) -> Vec<String> {
    let name = |line: &str| {
        let (name, _) = line.strip_prefix("  ")?.split_once("  ")?;
        let name = name.split(" [").next()?;
        NAMES.contains(&name).then(|| name.to_owned())
    };
    let mut names: Vec<String> = stderr.lines().filter_map(name).collect();
    let too_soon = stderr.split("\n  repository ").skip(1).filter_map(|rest| rest.split(',').next());
    names.extend(too_soon.map(str::to_owned));
    names
}

proptest! {
    #![proptest_config(super::cases(60))]

    #[test]
    fn explain_tells_what_run_does(
        repositories in vec(repositories(), 3),
        demands in demands(),
        rule in select(vec!["", "", "", "action = \"count\"", "enforce = false"]),
        np in select(vec!["1", "2", "3"]),
    ) {
        let site = Site::with_policy(&policy(&repositories, &demands, rule));
        let locks: Vec<Vec<File>> =
            NAMES.iter().zip(&repositories).map(|(name, repository)| prepare(&site, name, np, repository)).collect();
        let command = ["--", "true", "-np", np];
        let explained = site.test().args(["explain", "--json"]).args(command).outcome();
        if explained.ending != Ending::Status(0) {
            // A policy with a fault.
            let run = site.test().args(["run", "-n"]).args(command).outcome();
            prop_assert_eq!(run.ending, explained.ending, "{}{}", run.stderr, explained.stderr);
            return Ok(());
        }
        let explained: Value = serde_json::from_str(&explained.stdout).expect("it prints JSON");
        let status = explained["status"].as_i64().map_or(0, |status| i32::try_from(status).expect("a status"));
        let run = site.test().args(["run", "-n"]).args(command).outcome();
        prop_assert_eq!(run.ending, Ending::Status(status), "{}\n{:#}", run.stderr, explained);
        let in_the_way: Vec<&str> =
            explained["in_the_way"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        if status == 75 || status == 69 || status == 78 {
            let named = named(&run.stderr);
            let is_told = |name: &&str| named.iter().any(|told| told == name);
            prop_assert!(in_the_way.iter().all(is_told), "{:?} of {}", in_the_way, run.stderr);
            prop_assert!(named.iter().all(|told| in_the_way.contains(&told.as_str())), "{:?} of {}", in_the_way, run.stderr);
            prop_assert!(!named.is_empty(), "{}", run.stderr);
        }
        drop(locks);
    }
}
