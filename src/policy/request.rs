//! A request: everything about one launch that a policy can ask about. Plain values, and closures for what
//! costs something to find out and is rarely asked.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use jiff::Timestamp;

use crate::terms::names::Names;

/// One launch, as the evaluator sees it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The command as typed, or as `--as` names it.
    pub typed: &'a OsStr,
    /// Its arguments, without the command.
    pub arguments: &'a [OsString],
    /// The absolute path that would be executed.
    pub path: &'a Path,
    /// The same with every link resolved.
    pub canonical: &'a Path,
    /// The caller's real uid.
    pub uid: u32,
    /// The real gid and the supplementary gids, as the kernel has them.
    pub gids: &'a [u32],
    /// The node name.
    pub host: &'a OsStr,
    /// The working directory.
    pub directory: &'a Path,
    /// Reads the environment.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
    /// The moment that `when` is asked about.
    pub now: Timestamp,
    /// How many processors are online.
    pub cpus: &'a dyn Fn() -> u32,
    /// What `{runtime}` stands for.
    pub runtime: &'a Path,
    /// Look-ups of users and groups.
    pub names: &'a dyn Names,
}
