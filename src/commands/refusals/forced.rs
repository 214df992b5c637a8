//! Commands that no user types: what PAM or sshd begins for whoever comes in.

use std::env;

use crate::{commands::run::wanted::Wanted, sys::process};

/// Whether nobody could have given another option. What sshd was told to begin, whatever is asked of it, has
/// another name there, or no rule could tell it.
pub(super) fn is_forced(wanted: &Wanted<'_>) -> bool {
    let is_of_sshd = || process::parent_name().is_some_and(|name| name.starts_with("sshd"));
    env::var_os("PAM_TYPE").is_some() || wanted.is_renamed && is_of_sshd()
}
