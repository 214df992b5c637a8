//! A first look at the system's main file: what it delegates must be known before any drop-in is opened.

use std::borrow::Cow;

use super::{
    delegation::Delegation, findings::Findings, keys::FILE, place::At, reader::Section, syntax, validation,
    written::WrittenFile,
};

/// The delegations of the text of a main file. What is wrong with it is not said here: the file is read again
/// as a whole.
pub(super) fn delegations_of(text: &str) -> Vec<Delegation> {
    if !text.contains("delegate") {
        return Vec::new();
    }
    let read = |text: &str| {
        let findings = Findings::default();
        let table = syntax::parse(0, text, &findings);
        let written = WrittenFile::read(&Section::new(&table, At::whole(0), &FILE, &findings));
        let delegations = validation::delegations_of(&written, &[0], &findings, None);
        findings.are_clean().then_some(delegations)
    };
    let few = tables(text);
    let is_all = matches!(few, Cow::Borrowed(_));
    match read(&few) {
        Some(delegations) => delegations,
        None if is_all => Vec::new(),
        None => read(text).unwrap_or_default(),
    }
}

/// The delegations and aliases of a text, where it is certain that these are all; else the whole text. A main
/// file can be long, and it is read once more in any case.
fn tables(text: &str) -> Cow<'_, str> {
    if text.contains("\"\"\"") || text.contains("'''") {
        return Cow::Borrowed(text);
    }
    let mut few = String::new();
    let mut is_wanted = false;
    for line in text.split_inclusive('\n') {
        let start = line.trim_start_matches([' ', '\t']);
        if start.starts_with('[') {
            is_wanted =
                ["[delegate.", "[delegate]", "[alias]"].iter().any(|header| start.starts_with(header));
        }
        if is_wanted {
            few.push_str(line);
        } else if !start.starts_with('#') && (line.contains("delegate") || line.contains("alias")) {
            return Cow::Borrowed(text);
        }
    }
    Cow::Owned(few)
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
        assert!(matches!(tables(&plain), Cow::Owned(few) if !few.contains("rule") && !few.contains("log")));
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
