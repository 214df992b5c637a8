//! A first look at the system's main file: the delegations must be known before any drop-in is opened.

use super::{
    delegation::Delegation,
    findings::Findings,
    keys::FILE,
    place::At,
    reader::Section,
    syntax,
    tape::Tape,
    validation,
    written::{WrittenDelegation, aliases},
};

/// The delegations of the text of a main file. Faults are not reported here: the file is read again as a
/// whole.
pub(super) fn delegations_of(text: &str) -> Vec<Delegation> {
    if !text.contains("delegate") {
        return Vec::new();
    }
    let (elsewhere, findings) = (Findings::default(), Findings::default());
    let nodes = syntax::parse(0, text, &elsewhere);
    let tape = Tape { text, nodes: &nodes };
    let file = Section::new(tape.root(), At::whole(0), &FILE, &elsewhere).reporting_to(&findings);
    let (aliases, written) = (aliases(&file), WrittenDelegation::all(&file));
    let delegations = validation::delegations_of(&written, &aliases, &[0], &findings, None);
    if findings.are_clean() { delegations } else { Vec::new() }
}

#[cfg(test)]
mod tests {
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
