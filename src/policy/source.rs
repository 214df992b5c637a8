//! Which files make up the policy, and their text. The only file of this module that reaches the system: everything
//! after it works on text in memory, so that tests and `policy check FILE` judge exactly what a launch would.

use std::path::PathBuf;

/// Where the policy comes from.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The system's file, `/etc/rungate/policy.toml`; its drop-ins are in the directory beside it that ends in `.d`.
    pub system: PathBuf,
    /// What `--policy` or `RUNGATE_POLICY` names.
    pub given: Option<PathBuf>,
    /// The caller's own file, `$XDG_CONFIG_HOME/rungate/policy.toml`.
    pub own: Option<PathBuf>,
    /// The caller's real uid: who may own a policy besides root, and whether what is added may loosen.
    pub caller: u32,
}
