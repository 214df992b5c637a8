//! The one pattern language of the policy: globs, matched as bytes so that names that are not text match too.
//! Most patterns are literals or end in a star, and are compared directly. Other patterns are compiled at the
//! first value that they could match, because compiling a glob costs as much as the rest of the decision.

use std::sync::OnceLock;

use globset::{Candidate, Glob, GlobBuilder, GlobMatcher};

/// The kind of text to match, which determines the special characters of a pattern.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Subject {
    /// Users, groups, arguments, values: a star matches everything, a backslash is an ordinary character
    /// (`CORP\ann`).
    Name,
    /// Commands and directories: a star stops at `/`, a backslash makes the next character ordinary.
    Path,
    /// Hosts: like names, in any case.
    Host,
}

/// The maximum length, in bytes, of a pattern that is compiled, and the maximum number of its braces. globset
/// calls itself for each brace within another one, and panics if the regular expression has too much nesting
/// or is too large. No pattern within these bounds is.
const LONGEST: usize = 4096;
const MOST_BRACES: usize = 20;

/// A pattern that was found to be well-formed.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: String,
    subject: Subject,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Literal,
    /// A pattern that ends in a star: the length of the text before it, in bytes.
    Prefix(usize),
    /// Any other pattern, with the length of the text before its first special character, in bytes.
    Glob(usize, OnceLock<Option<Box<GlobMatcher>>>),
}

impl Pattern {
    /// Reads a pattern, or returns its fault.
    pub(crate) fn new(text: &str, subject: Subject) -> Result<Pattern, String> {
        let special = if subject == Subject::Path { ALWAYS | IN_PATHS } else { ALWAYS };
        let special = |byte: u8| SPECIAL[usize::from(byte)] & special != 0;
        let form = match text.bytes().position(special) {
            None => Form::Literal,
            Some(star) if &text[star..] == "*" => Form::Prefix(star),
            Some(literal) => {
                if text.len() > LONGEST {
                    return Err(format!("it is longer than {LONGEST} bytes"));
                }
                if text.matches('{').count() > MOST_BRACES {
                    return Err(format!("it has more than {MOST_BRACES} opening braces"));
                }
                if !text.is_ascii() && has_wide_class(text, subject) {
                    let text = "brackets match one byte, and a character in them has several; name alternatives, as {a,b}";
                    return Err(text.to_owned());
                }
                // Stars and question marks are always well-formed, so most patterns need not be parsed before
                // there is something to match.
                if text.bytes().any(|byte| SPECIAL[usize::from(byte)] & (OPENS | IN_PATHS) != 0) {
                    glob(text, subject).map_err(|error| error.kind().to_string())?;
                }
                Form::Glob(literal, OnceLock::new())
            }
        };
        Ok(Pattern { text: text.to_owned(), subject, form })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The only value it matches, if there is only one.
    pub(crate) fn literal(&self) -> Option<&str> {
        matches!(self.form, Form::Literal).then_some(self.text.as_str())
    }

    /// The text before its first special character.
    pub(super) fn begin(&self) -> &str {
        match self.form {
            Form::Literal => &self.text,
            Form::Prefix(length) | Form::Glob(length, _) => &self.text[..length],
        }
    }

    /// Whether it matches everything.
    pub(crate) fn is_everything(&self) -> bool {
        matches!(self.form, Form::Prefix(0)) && self.subject != Subject::Path
    }

    /// Whether it matches this value as a whole.
    pub(crate) fn matches(&self, value: &[u8]) -> bool {
        match &self.form {
            Form::Literal => self.same(self.text.as_bytes(), value),
            Form::Prefix(length) => {
                self.starts(*length, value)
                    && !(self.subject == Subject::Path && value[*length..].contains(&b'/'))
            }
            Form::Glob(literal, compiled) => {
                let compile =
                    || glob(&self.text, self.subject).ok().map(|glob| Box::new(glob.compile_matcher()));
                self.starts(*literal, value)
                    && compiled
                        .get_or_init(compile)
                        .as_ref()
                        .is_some_and(|matcher| matcher.is_match_candidate(&Candidate::from_bytes(value)))
            }
        }
    }

    /// Whether it may match this value: no glob is compiled for that.
    pub(super) fn may_match(&self, value: &[u8]) -> bool {
        match &self.form {
            Form::Literal | Form::Prefix(_) => self.matches(value),
            Form::Glob(literal, _) => self.starts(*literal, value),
        }
    }

    /// Whether it certainly matches everything that another one matches.
    pub(super) fn covers(&self, narrow: &Pattern) -> bool {
        self.is_everything()
            || self.text() == narrow.text()
            || narrow.literal().is_some_and(|value| self.matches(value.as_bytes()))
    }

    fn starts(&self, length: usize, value: &[u8]) -> bool {
        value.get(..length).is_some_and(|start| self.same(&self.text.as_bytes()[..length], start))
    }

    fn same(&self, left: &[u8], right: &[u8]) -> bool {
        if self.subject == Subject::Host { left.eq_ignore_ascii_case(right) } else { left == right }
    }
}

// How a byte is special in a pattern. Every launch looks up each byte of a policy's patterns here.

const ALWAYS: u8 = 1;
const IN_PATHS: u8 = 2;
/// It may begin or end a class or alternatives, which can be malformed.
const OPENS: u8 = 4;

static SPECIAL: [u8; 256] = {
    let mut special = [0; 256];
    let mut index = 0;
    while index < b"*?[]{}".len() {
        special[b"*?[]{}"[index] as usize] = ALWAYS;
        index += 1;
    }
    special[b'[' as usize] |= OPENS;
    special[b'{' as usize] |= OPENS;
    special[b'}' as usize] |= OPENS;
    special[b'\\' as usize] = IN_PATHS;
    special
};

/// Whether an entry with this text is compiled where it is a pattern.
pub(super) fn is_compiled(text: &str) -> bool {
    let special = text.bytes().position(|byte| SPECIAL[usize::from(byte)] != 0);
    special.is_some_and(|at| &text[at..] != "*")
}

/// Whether a character between brackets has several bytes: such a class would match none of them.
fn has_wide_class(text: &str, subject: Subject) -> bool {
    let (mut begun, mut is_escaped) = (None, false);
    for (at, byte) in text.bytes().enumerate() {
        match begun {
            None if std::mem::take(&mut is_escaped) => {}
            None => {
                is_escaped = byte == b'\\' && subject == Subject::Path;
                // A bracket that closes is a member if it is the first one.
                let negated = usize::from(matches!(text.as_bytes().get(at + 1), Some(b'!' | b'^')));
                begun = (byte == b'[').then_some(at + 1 + negated);
            }
            Some(first) if byte == b']' && at > first => begun = None,
            Some(first) if at >= first && !byte.is_ascii() => return true,
            Some(_) => {}
        }
    }
    false
}

fn glob(text: &str, subject: Subject) -> Result<Glob, globset::Error> {
    GlobBuilder::new(text)
        .literal_separator(subject == Subject::Path)
        .backslash_escape(subject == Subject::Path)
        .case_insensitive(subject == Subject::Host)
        .empty_alternates(true)
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(subject: Subject, pattern: &str, value: &str, matches: bool) {
        let pattern = Pattern::new(pattern, subject).expect("a well-formed pattern");
        assert_eq!(pattern.matches(value.as_bytes()), matches);
        assert_eq!(pattern.matches(value.as_bytes()), matches, "compiled, the same");
    }

    #[test]
    fn a_star_crosses_a_slash_except_in_commands_and_directories() {
        case(Subject::Name, "a*", "a/b", true);
        case(Subject::Name, "a*", "a", true);
        case(Subject::Name, "ab*", "a", false);
        case(Subject::Path, "/opt/*", "/opt", false);
        case(Subject::Name, "a*c", "a/b/c", true);
        case(Subject::Path, "/opt/*", "/opt/a", true);
        case(Subject::Path, "/opt/*", "/opt/a/b", false);
        case(Subject::Path, "/opt/*/bin/matlab", "/opt/R2024a/bin/matlab", true);
        case(Subject::Path, "/opt/*/bin/matlab", "/opt/a/b/bin/matlab", false);
        case(Subject::Path, "/opt/**/matlab", "/opt/a/b/bin/matlab", true);
    }

    #[test]
    fn a_backslash_is_an_ordinary_character_except_in_commands_and_directories() {
        case(Subject::Name, r"CORP\alice", r"CORP\alice", true);
        case(Subject::Name, r"CORP\*", r"CORP\alice", true);
        case(Subject::Name, r"CORP\a?ice", r"CORP\alice", true);
        let literal = |subject| Pattern::new(r"CORP\alice", subject).expect("a pattern").literal().is_some();
        assert!(literal(Subject::Name) && literal(Subject::Host) && !literal(Subject::Path));
        case(Subject::Path, r"a\*b", "a*b", true);
        case(Subject::Path, r"a\*b", "axb", false);
    }

    #[test]
    fn literals_are_compared_as_a_whole() {
        case(Subject::Name, "ann", "ann", true);
        case(Subject::Name, "ann", "anna", false);
        case(Subject::Name, "Ann", "ann", false);
        case(Subject::Host, "WS17", "ws17", true);
        case(Subject::Host, "WS*.example", "ws17.EXAMPLE", true);
        case(Subject::Name, "{ann,bob}", "bob", true);
        for (value, matches) in [("matlab", true), ("matlab-batch", true), ("matlab-", false)] {
            case(Subject::Path, "matlab{,-batch}", value, matches);
            case(Subject::Host, "MATLAB{-batch,}", value, matches);
        }
        case(Subject::Name, "[!x]*", "xa", false);
    }

    /// Hosts are compared in any case, and nothing else is.
    #[test]
    fn only_a_host_is_compared_in_any_case() {
        case(Subject::Host, "ws?7.EXAMPLE", "ws17.example", true);
        case(Subject::Name, "a?N", "ann", false);
        case(Subject::Path, "/opt/*/Matlab", "/opt/a/matlab", false);
    }

    #[test]
    fn bytes_that_are_no_text_match_too() {
        let pattern = Pattern::new("a?c", Subject::Name).expect("a well-formed pattern");
        assert!(pattern.matches(b"a\xffc"));
        assert!(Pattern::new("a*", Subject::Name).expect("a well-formed pattern").matches(b"a\xff\xfe"));
    }

    #[test]
    fn a_pattern_covers_itself_and_the_literals_that_it_matches() {
        let case = |wide: &str, narrow: &str, covers: bool| {
            let pattern = |text: &str| Pattern::new(text, Subject::Name).expect("a pattern");
            assert_eq!(pattern(wide).covers(&pattern(narrow)), covers, "{wide} and {narrow}");
        };
        case("*", "a*", true);
        case("a*", "a*", true);
        case("a*", "ann", true);
        case("a*", "bob", false);
        case("ann", "a*", false);
        case("a*", "an*", false);
    }

    /// What is longer, or has more braces, is refused before it is read; up to there it can be compiled.
    #[test]
    fn a_pattern_has_a_greatest_length_and_a_greatest_number_of_braces() {
        let nested = |depth: usize| format!("{}a{}", "{".repeat(depth), ",b}".repeat(depth));
        let refused = |text: &str| Pattern::new(text, Subject::Host).expect_err("too much");
        for depth in [MOST_BRACES + 1, 300, 40_000] {
            let refusal = refused(&nested(depth));
            assert!(refusal.contains(if depth < 4000 { "opening braces" } else { "bytes" }), "{refusal}");
        }
        // A closing brace that is none does not make the others fewer.
        assert!(refused(&format!("{}a{}", "{[}]".repeat(21), ",b}".repeat(21))).contains("opening braces"));
        for subject in [Subject::Name, Subject::Path, Subject::Host] {
            case(subject, &nested(MOST_BRACES), "b", true);
            case(subject, &nested(MOST_BRACES), "c", false);
        }
        // The most expensive patterns of that length.
        let long = |part: &str| {
            let rest = LONGEST - nested(MOST_BRACES).len();
            let text = nested(MOST_BRACES) + &part.repeat(rest / part.len());
            text.clone() + &"x".repeat(LONGEST - text.len())
        };
        for part in ["[!a-y]", "[a-z]", "?", "*a", "\u{10ffff}", "/**/a"] {
            for subject in [Subject::Name, Subject::Path, Subject::Host] {
                let text = long(part);
                assert_eq!(text.len(), LONGEST, "{part}");
                case(subject, &text, "b", false);
                assert!(Pattern::new(&(text + "x"), subject).expect_err("too long").contains("4096 bytes"));
            }
        }
        // A name is compared, and never compiled.
        case(Subject::Name, &"a".repeat(LONGEST + 1), &"a".repeat(LONGEST + 1), true);
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        let error = Pattern::new("a[b", Subject::Name).expect_err("an open class");
        assert!(error.contains("character class"), "{error}");
        assert!(Pattern::new("{a", Subject::Path).is_err());
        for text in ["m[u\u{fc}]ller", "[!\u{fc}]", "[]\u{fc}]", "a[b]c[\u{fc}]"] {
            let error = Pattern::new(text, Subject::Path).expect_err("a class of bytes");
            assert!(error.contains("one byte"), "{text}: {error}");
        }
        case(Subject::Name, "\u{fc}[ab]\u{fc}[]c]\u{fc}", "\u{fc}a\u{fc}]\u{fc}", true);
        case(Subject::Path, "\\[\u{fc}*", "[\u{fc}x", true);
    }
}
