//! Delegations of the system's main file, which only that file may contain.

use std::{path::Path, sync::Arc};

use super::LayerFile;
use crate::policy::{
    aliases::Aliases,
    delegation::Delegation,
    fault::Fault,
    findings::Findings,
    layer::LayerKind,
    names::Names,
    selector::{Entry, Principal, entries_of, warn_of_unknown},
    written::{WrittenAlias, WrittenDelegation},
};

pub(super) fn validate(
    kinds: &[LayerKind],
    files: &[LayerFile<'_>],
    layer_of_file: &[usize],
    findings: &Findings,
    checking: Option<&dyn Names>,
) -> Vec<Arc<Delegation>> {
    let mut delegations = Vec::new();
    for file in files {
        let delegates = &file.written.delegations;
        match kinds[file.layer] {
            // This key was already reported.
            LayerKind::Delegated => {}
            LayerKind::System if !is_drop_in(file.source.path()) => {
                if !delegates.is_empty() {
                    let aliases = &file.written.aliases;
                    delegations.extend(delegations_of(delegates, aliases, layer_of_file, findings, checking));
                }
            }
            _ => {
                for delegate in delegates {
                    findings.fault(delegate.at(), Fault::DelegateElsewhere);
                }
            }
        }
    }
    delegations.into_iter().map(Arc::new).collect()
}

/// Whether a file is in a directory of drop-ins.
fn is_drop_in(path: &Path) -> bool {
    path.parent().and_then(Path::extension).is_some_and(|extension| extension == "d")
}

/// The delegations of a main file, only with the aliases of that file: the delegations must be known before
/// any drop-in is read.
pub(in crate::policy) fn delegations_of(
    written: &[WrittenDelegation<'_>],
    aliases: &[WrittenAlias<'_>],
    layer_of_file: &[usize],
    findings: &Findings,
    checking: Option<&dyn Names>,
) -> Vec<Delegation> {
    let aliases = Aliases::new(aliases.iter(), layer_of_file, findings, checking);
    written.iter().filter_map(|written| of_written(written, &aliases)).collect()
}

fn of_written<'w>(written: &'w WrittenDelegation<'w>, aliases: &Aliases<'w>) -> Option<Delegation> {
    let file = written.file.value;
    if !is_name(file) {
        aliases.findings.fault(written.file.at, Fault::BadDelegate { name: file.to_owned() });
    }
    let owner = written.owner.as_ref()?;
    match Principal::parse(&owner.value) {
        Ok(user) if user.is_one_user() => warn_of_unknown(&user, owner.at, aliases),
        _ => aliases.findings.fault(owner.at, Fault::BadOwner { name: owner.value.to_string() }),
    }
    Some(Delegation {
        file: file.to_owned(),
        owner: owner.value.to_string(),
        users: entries_of(&written.users.as_ref()?.entries, aliases),
        commands: entries_of(&written.commands.as_ref()?.entries, aliases),
    })
}

/// Whether a drop-in can have this name, and a directory named after it.
fn is_name(file: &str) -> bool {
    let ordinary = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    file.strip_suffix(".toml").is_some_and(|stem| !stem.is_empty())
        && file.bytes().all(ordinary)
        && !file.starts_with('.')
        && file.len() <= 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_in_is_a_plain_name() {
        assert!(is_name("20-cad.toml"));
        for bad in ["cad", ".toml", ".cad.toml", "../cad.toml", "a/b.toml", "a b.toml", "@a.toml"] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
