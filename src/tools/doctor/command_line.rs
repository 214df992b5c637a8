//! Commands for people to type, in which a path is one word, whatever characters it has.

use std::{ffi::OsStr, path::Path};

use crate::text::escape::visible;

/// A command with a path as its last word.
pub(super) fn command(words: &str, path: &Path) -> String {
    format!("{words} {}", word(path))
}

/// A word, quoted where a shell would read it otherwise.
pub(crate) fn word(word: impl AsRef<OsStr>) -> String {
    let text = visible(word);
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:=@%,{}".contains(c);
    match text.as_str() {
        plain if !plain.is_empty() && plain.chars().all(is_plain) => text,
        _ => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::doctor::command_line::*;

    #[test]
    fn what_a_shell_would_read_is_quoted() {
        assert_eq!(
            command("chmod o+r", Path::new("/etc/rungate/policy.toml")),
            "chmod o+r /etc/rungate/policy.toml"
        );
        assert_eq!(command("rm", Path::new("/a b/$c")), "rm '/a b/$c'");
        assert_eq!((word("it's").as_str(), word("").as_str()), (r"'it'\''s'", "''"));
    }
}
