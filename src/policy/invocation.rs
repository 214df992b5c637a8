//! A command as the entries of `commands` see it: by the names it goes by, and by the paths that lead to its
//! program.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

/// The names and paths of one command.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// The last components: as typed, and of the canonical path.
    names: [&'a [u8]; 2],
    /// The path that would be executed, and the canonical one.
    paths: [&'a [u8]; 2],
}

impl<'a> Invocation<'a> {
    /// The command that was typed so, whose program is found at these two absolute paths.
    pub fn new(typed: &'a OsStr, path: &'a Path, canonical: &'a Path) -> Self {
        let paths = [path, canonical].map(|path| path.as_os_str().as_bytes());
        Invocation { names: [last_component(typed.as_bytes()), last_component(paths[1])], paths }
    }

    /// Its name as typed, without what leads to it.
    pub(crate) fn name(&self) -> &'a [u8] {
        self.names[0]
    }

    /// Whether any of its paths, or of its names, is what `matches` looks for.
    pub(crate) fn any(&self, is_path: bool, matches: impl Fn(&[u8]) -> bool) -> bool {
        let [first, second] = if is_path { self.paths } else { self.names };
        matches(first) || (second != first && matches(second))
    }
}

fn last_component(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}
