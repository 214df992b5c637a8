//! Delegations of the system's main file, which only that file may contain.

use std::sync::Arc;

use super::LayerFile;
use crate::{
    judge::terms::Names,
    policy::{
        Aliases, At, Delegation, FILE, Findings, LayerKind, Principal, Section, Tape, WrittenAlias,
        WrittenDelegation,
        fault::Fault,
        selector::{Entry, entries_of, warn_of_unknown},
        syntax,
        written::aliases,
    },
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
            _ if file.is_main => {
                if !delegates.is_empty() {
                    let aliases = &file.written.aliases;
                    delegations.extend(validated(delegates, aliases, layer_of_file, findings, checking));
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

/// The delegations of a main file, only with the aliases of that file: the delegations must be known before
/// any drop-in is read.
fn validated(
    written: &[WrittenDelegation<'_>],
    aliases: &[WrittenAlias<'_>],
    layer_of_file: &[usize],
    findings: &Findings,
    checking: Option<&dyn Names>,
) -> Vec<Delegation> {
    let aliases = Aliases::new(aliases.iter(), layer_of_file, findings, checking);
    written.iter().filter_map(|written| of_written(written, &aliases)).collect()
}

fn of_written(written: &WrittenDelegation<'_>, aliases: &Aliases<'_>) -> Option<Delegation> {
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

/// The delegations of the text of a main file. Faults are not reported here: the file is read again as a
/// whole.
pub(in crate::policy) fn delegations_of(text: &str) -> Vec<Delegation> {
    if !text.contains("delegate") {
        return Vec::new();
    }
    let (elsewhere, findings) = (Findings::default(), Findings::default());
    let nodes = syntax::parse(0, text, &elsewhere);
    let tape = Tape { text, nodes: &nodes };
    let file = Section::new(tape.root(), At::whole(0), &FILE, &elsewhere).reporting_to(&findings);
    let (aliases, written) = (aliases(&file), WrittenDelegation::all(&file));
    let delegations = validated(&written, &aliases, &[0], &findings, None);
    if findings.are_clean() { delegations } else { Vec::new() }
}

#[cfg(test)]
mod preview_tests {
    use super::*;

    fn files(text: &str) -> Vec<String> {
        delegations_of(text).iter().map(|delegation| delegation.file.clone()).collect()
    }

    const CAD: &str = "owner = \"cadadm\"\nusers = [\"%cad\"]\ncommands = [\"@tools\"]\n";

    #[test]
    fn delegations_are_found_however_they_are_written() {
        let plain = format!(
            "# delegates\n[[rule]]\n[delegate.\"20-cad.toml\"]\n{CAD}[alias]\ntools = [\"a\"]\n[log]\n"
        );
        assert_eq!(files(&plain), ["20-cad.toml"]);
        let table = "owner = 5, users = [\"a\"], commands = [\"b\"]";
        for odd in [
            format!("delegate.\"20-cad.toml\" = {{ {table} }}\n[[rule]]\n"),
            format!("delegate = {{ \"20-cad.toml\" = {{ {table} }} }}\n"),
            format!(
                "[ delegate . \"20-cad.toml\" ]\n{}\n",
                table.replace(", u", "\nu").replace(", c", "\nc")
            ),
            format!("[delegate]\n\"20-cad.toml\" = {{ {table} }}\n[log]\nto = \"off\"\n"),
        ] {
            assert_eq!(files(&odd), ["20-cad.toml"], "{odd}");
        }
    }

    #[test]
    fn what_only_looks_like_a_delegation_is_none() {
        for none in [
            format!("x = \"\"\"\n[delegate.\"20-cad.toml\"]\n{CAD}\"\"\"\n"),
            "[[rule]]\narguments = [\n  [\"delegate\", \"x\"],\n]\nacquire = []\n".into(),
            "# [delegate.\"20-cad.toml\"]\n".into(),
            String::new(),
        ] {
            assert_eq!(files(&none), [] as [&str; 0], "{none}");
        }
    }
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
        let of_length = |length: usize| format!("{}.toml", "a".repeat(length - ".toml".len()));
        assert!(is_name(&of_length(100)) && !is_name(&of_length(101)));
    }
}
