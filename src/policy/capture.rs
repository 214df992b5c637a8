//! Captures: `{project}` in an entry of a selector captures the text there, for repositories with a file for
//! each value. A name in braces is one; `{ann,bob}` stays a glob.

use super::{Placeholder, Subject, fault::Fault};

/// The text that a rule captured from a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Captured {
    /// Its name in the policy.
    pub name: String,
    /// The captured text, never empty.
    pub value: Vec<u8>,
}

/// A name in braces and its position in the text around it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Capture<'t> {
    pub(super) name: &'t str,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The captures of an entry, in their order.
pub(super) fn captures(entry: &str, subject: Subject) -> Result<Vec<Capture<'_>>, Fault> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    let mut characters = entry.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' if subject == Subject::Path => drop(characters.next()),
            '{' => {
                (depth, start) = (depth + 1, if depth == 0 { at } else { start });
            }
            '}' => {
                let name = entry.get(start + 1..at).filter(|name| depth == 1 && is_name(name));
                found.extend(name.map(|name| Capture { name, start, end: at + 1 }));
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    for Capture { name, .. } in &found {
        if !matches!(Placeholder::parse(name), Ok(Placeholder::Captured(_))) {
            return Err(Fault::CaptureOfPlaceholder { name: (*name).to_owned() });
        }
    }
    Ok(found)
}

/// Whether a placeholder can have this name.
pub(super) fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The name in braces, if there is nothing else.
pub(super) fn name_in_braces(text: &str) -> Option<&str> {
    text.strip_prefix('{')?.strip_suffix('}').filter(|name| is_name(name))
}

/// Whether a text matches only itself.
pub(super) fn is_literal(text: &str, subject: Subject) -> bool {
    let is_special =
        |c: char| matches!(c, '*' | '?' | '[' | ']' | '{' | '}') || c == '\\' && subject == Subject::Path;
    !text.contains(is_special)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(entry: &str, subject: Subject, expected: &[&str]) {
        let found = captures(entry, subject).expect("no placeholder");
        assert_eq!(found.iter().map(|capture| capture.name).collect::<Vec<_>>(), expected, "{entry}");
    }

    #[test]
    fn a_name_in_braces_is_a_capture_and_anything_else_a_glob() {
        case("/proj/{project}/**", Subject::Path, &["project"]);
        case("--job={job-id}", Subject::Name, &["job-id"]);
        case("{a}{b}", Subject::Name, &["a", "b"]);
        for glob in ["{ann,bob}", "{a*}", "{}", "{1}", "{a,{b}}", "{a,{b}{c}}", "a", "}a{"] {
            case(glob, Subject::Name, &[]);
        }
        case(r"\{a}", Subject::Path, &[]);
        case(r"\{a}", Subject::Name, &["a"]);
    }

    #[test]
    fn what_a_path_knows_already_is_not_captured() {
        for name in ["user", "cwd", "runtime", "arg1"] {
            let fault = captures(&format!("{{{name}}}"), Subject::Name).expect_err("a placeholder");
            assert_eq!(fault, Fault::CaptureOfPlaceholder { name: name.into() });
        }
    }
}
