//! Becomes a program in its place: with directories mounted over others, on a host of another name, as a
//! user. All signals have their default actions. What unshare(1), mount(8), hostname(1), setpriv(1) and env(1)
//! do one after the other is done by one program, because the tests need it for half of all that they start.
//!
//! ```text
//! stage [--mount DIRECTORY OVER]... [--host NAME] [--user UID GID] [--groups NAME,NAME] -- PROGRAM ARGUMENT...
//! ```
//!
//! Without `--groups` a user has the supplementary groups of the group database.

#![allow(unsafe_code)]

use std::error::Error;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{Gid, Group, Uid, User, getgrouplist, setgroups, sethostname, setresgid, setresuid};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    Err(set_up(std::env::args_os().skip(1))?.exec().into())
}

/// Does what the words say, up to the program.
fn set_up(mut words: impl Iterator<Item = OsString>) -> Result<Command> {
    let (mut user, mut groups) = (None, None);
    let mut has_own_mounts = false;
    let mut next = || words.next().ok_or("a word is missing");
    loop {
        match next()?.as_bytes() {
            b"--mount" => {
                if !std::mem::replace(&mut has_own_mounts, true) {
                    unshare(CloneFlags::CLONE_NEWNS)?;
                    mount_over(None, OsStr::new("/"), MsFlags::MS_REC | MsFlags::MS_PRIVATE)?;
                }
                let directory = next()?;
                mount_over(Some(&directory), &next()?, MsFlags::MS_BIND)?;
            }
            b"--host" => {
                unshare(CloneFlags::CLONE_NEWUTS)?;
                sethostname(next()?)?;
            }
            b"--user" => user = Some((number(&next()?)?, number(&next()?)?)),
            b"--groups" => groups = Some(next()?),
            b"--" => break,
            other => return Err(format!("{}?", OsStr::from_bytes(other).display()).into()),
        }
    }
    let mut program = Command::new(next()?);
    program.args(words);
    if let Some((uid, gid)) = user {
        become_user(Uid::from_raw(uid), Gid::from_raw(gid), groups.as_deref())?;
    }
    for each in Signal::iterator().filter(|each| ![Signal::SIGKILL, Signal::SIGSTOP].contains(each)) {
        // SAFETY: the default action is no code of this program.
        unsafe { signal(each, SigHandler::SigDfl) }?;
    }
    Ok(program)
}

fn mount_over(directory: Option<&OsStr>, over: &OsStr, flags: MsFlags) -> Result<()> {
    mount(directory, over, None::<&OsStr>, flags, None::<&OsStr>)
        .map_err(|error| format!("{} cannot be mounted over: {error}", over.display()).into())
}

fn number(word: &OsStr) -> Result<u32> {
    Ok(word.to_str().ok_or("no number")?.parse()?)
}

fn become_user(uid: Uid, gid: Gid, groups: Option<&OsStr>) -> Result<()> {
    let groups = match groups {
        Some(names) => {
            let names = names.to_str().ok_or("no names")?.split(',').filter(|name| !name.is_empty());
            names.map(group_of).collect::<Result<Vec<Gid>>>()?
        }
        None => {
            let user = User::from_uid(uid)?.ok_or_else(|| format!("there is no user {uid}"))?;
            getgrouplist(&CString::new(user.name)?, gid)?
        }
    };
    setgroups(&groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    Ok(())
}

/// A number, or a name that is looked up where the mounted directories say it.
fn group_of(name: &str) -> Result<Gid> {
    if let Ok(number) = name.parse() {
        return Ok(Gid::from_raw(number));
    }
    Ok(Group::from_name(name)?.ok_or_else(|| format!("there is no group {name}"))?.gid)
}
