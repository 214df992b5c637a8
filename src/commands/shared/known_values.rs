//! Values that members may be called by. The name of a lock file tells a directory only as it was made safe
//! for a file name, with a hash; where that alone does not tell what it was, somebody who is there may, or a
//! policy that names it.

use std::{cell::OnceCell, collections::BTreeSet, env, os::unix::ffi::OsStrExt, path::PathBuf};

use crate::{
    policy::{Policy, Rule},
    sys::process,
};

/// What the policy names and where processes are, looked up when it is first needed.
pub(super) struct KnownValues<'a> {
    policy: &'a Policy,
    found: OnceCell<BTreeSet<Vec<u8>>>,
}

impl<'a> KnownValues<'a> {
    pub(super) fn of(policy: &'a Policy) -> Self {
        Self { policy, found: OnceCell::new() }
    }

    pub(super) fn all(&self) -> &BTreeSet<Vec<u8>> {
        self.found.get_or_init(|| {
            let of_others = process::all().into_iter().filter_map(|process| process::directory(process.pid));
            let inhabited = of_others.chain(env::current_dir()).map(PathBuf::into_os_string);
            let mut all: BTreeSet<Vec<u8>> = inhabited.map(|path| path.as_bytes().to_vec()).collect();
            all.extend(self.policy.command_names().into_iter().map(|name| name.as_bytes().to_vec()));
            for directory in self.policy.rules().iter().flat_map(Rule::named_directories) {
                let itself = directory.strip_suffix("/**").unwrap_or(&directory);
                all.insert(itself.as_bytes().to_vec());
            }
            all
        })
    }
}
