//! Every fault a policy can have, as a value that carries its evidence, with its stable code and its wording. All
//! wording is in this file, in lower case and without a full stop; what was likely meant comes last.

use std::fmt;

use super::place::At;
use crate::diagnostic::escaped;

/// Defines an enum of findings together with their codes, so that no finding can be without one.
macro_rules! coded {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $({ $($field:ident: $type:ty),+ $(,)? })? = $code:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub(super) enum $name { $($(#[$doc])* $variant $({ $($field: $type),+ })?,)+ }

        impl $name {
            /// Every code.
            pub(super) const CODES: &'static [&'static str] = &[$($code),+];

            /// The stable code.
            pub(super) fn code(&self) -> &'static str {
                match self { $($name::$variant { .. } => $code,)+ }
            }
        }
    };
}
pub(super) use coded;

coded! {
    /// What is wrong with a policy, so that nothing of it may be applied.
    Fault {
        // Files.
        Unreadable { reason: String } = "unreadable-file",
        Untrusted { reason: String } = "untrusted-file",
        Missing = "missing-file",
        NotText = "not-utf-8",
        Syntax { reason: String } = "syntax",
        DuplicateKey { name: String, first: At } = "duplicate-key",
        UnknownVersion = "unknown-version",
        // Keys and the shape of values.
        UnknownKey { key: String, what: &'static str, nearest: Option<String> } = "unknown-key",
        MissingKey { key: &'static str, what: &'static str } = "missing-key",
        NoLimit { name: String } = "no-limit",
        WrongType { key: String, expected: &'static str, found: &'static str } = "wrong-type",
        UnknownWord { key: String, word: String, words: Vec<&'static str>, nearest: Option<String> } = "unknown-word",
        OutOfRange { key: String, least: i64, most: i64 } = "out-of-range",
        BadDuration { key: String, text: String } = "bad-duration",
        BadMode { text: String } = "bad-mode",
        BadLimit { text: String } = "bad-limit",
        EmptyList { key: String, instead: &'static str } = "empty-list",
        EmptyEntry = "empty-entry",
        Repeated { word: &'static str } = "repeated",
        // Names.
        BadName { name: String } = "bad-name",
        DuplicateRule { name: String, first: At } = "duplicate-rule",
        UnknownRepository { name: String, nearest: Option<String> } = "unknown-repository",
        AmbiguousRepository { name: String, first: At } = "ambiguous-repository",
        UnknownRule { name: String, nearest: Option<String> } = "unknown-rule",
        UnknownAlias { name: String, nearest: Option<String> } = "unknown-alias",
        AmbiguousAlias { name: String, first: At } = "ambiguous-alias",
        AliasLoop { name: String } = "alias-loop",
        DuplicateCommand { name: String, first: At } = "duplicate-command",
        ConflictingDefault { key: &'static str, first: At } = "conflicting-default",
        // Entries of selectors.
        Negation { entry: String, key: &'static str } = "negation",
        BadPattern { reason: String } = "bad-pattern",
        IdTooLarge = "id-too-large",
        EmptyRange = "empty-range",
        RelativeCommand { entry: String } = "relative-command",
        RelativeDirectory { entry: String } = "relative-directory-pattern",
        BadWindow { reason: String } = "bad-time",
        UnknownZone { name: String } = "unknown-time-zone",
        BadVariable { name: String } = "bad-variable",
        EmptyException = "empty-exception",
        // Paths.
        RelativePath { key: &'static str } = "relative-path",
        EmptyPath = "empty-path",
        DotsInPath = "dots-in-path",
        LongName { most: usize } = "name-too-long",
        ControlCharacter = "control-character",
        OpenBrace = "open-brace",
        UnknownPlaceholder { name: String, nearest: Option<String> } = "unknown-placeholder",
        PlaceholderInDirectory = "placeholder-in-directory",
        RuntimeNotFirst = "runtime-not-first",
        SamePath { name: String, first: At } = "same-path",
        // Keys that do not go together.
        Contradiction { key: &'static str, other: &'static str } = "contradiction",
        NeedsKey { key: &'static str, needs: &'static str } = "needs-key",
        NothingToDo = "nothing-to-do",
        ExemptInFamily = "exempt-in-first-of",
        GroupWithoutGroups { repository: String } = "group-without-groups",
        ChargeAllInAnyOf { repository: String } = "charge-in-any-of",
        EndNeedsSupervisor = "end-needs-supervisor",
        LimitsWithoutMember = "limits-without-member",
        SlotsAboveLimit { slots: u32, limit: u32, repository: String } = "slots-above-limit",
        ReservedAboveLimit { reserved: u32, limit: u32 } = "reserved-above-limit",
        LendAboveSlots { lend: u32, slots: u32 } = "lend-above-slots",
        // Layers.
        Loosens { what: &'static str } = "loosens",
    }
}

/// A name in a message.
fn quoted(name: &str) -> String {
    format!("\"{}\"", escaped(name))
}

/// What was likely meant, at the end of a message.
pub(super) fn suggestion(nearest: Option<&String>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean {}?", quoted(nearest)))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unreadable { reason } => write!(f, "cannot be read: {reason}"),
            Fault::Untrusted { reason } => write!(f, "cannot be trusted: {reason}"),
            Fault::Missing => write!(f, "there is no such file"),
            Fault::NotText => write!(f, "is not UTF-8 text"),
            Fault::Syntax { reason } => write!(f, "{reason}"),
            Fault::DuplicateKey { name, .. } => write!(f, "{} is defined a second time", quoted(name)),
            Fault::UnknownVersion => write!(f, "this rungate knows version 1 of the language and no other"),
            Fault::UnknownKey { key, what, nearest } => {
                write!(f, "unknown key {} in {what}{}", quoted(key), suggestion(nearest.as_ref()))
            }
            Fault::MissingKey { key, what } => write!(f, "{what} needs \"{key}\""),
            Fault::NoLimit { name } => write!(f, "repository {} has no limit", quoted(name)),
            Fault::WrongType { key, expected, found } => {
                write!(f, "{} is {found}; it must be {expected}", quoted(key))
            }
            Fault::UnknownWord { key, word, words, nearest } => {
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                let one_of = words.join(", ");
                write!(f, "{} is not known to {}, which is one of {one_of}", quoted(word), quoted(key))?;
                f.write_str(&suggestion(nearest.as_ref()))
            }
            Fault::OutOfRange { key, least, most } => {
                write!(f, "{} goes from {least} to {most}", quoted(key))
            }
            Fault::BadDuration { key, text } => {
                write!(
                    f,
                    "{} is not a length of time for {}; write \"10m\" or \"1h30m\"",
                    quoted(text),
                    quoted(key)
                )
            }
            Fault::BadMode { text } => write!(f, "{} is not a file mode; write \"0666\"", quoted(text)),
            Fault::BadLimit { text } => {
                write!(f, "{} is not a limit; write a number or \"2/cpu\"", quoted(text))
            }
            Fault::EmptyList { key, instead } => write!(f, "{} is empty; {instead}", quoted(key)),
            Fault::Repeated { word } => write!(f, "{} stands here twice", quoted(word)),
            Fault::EmptyEntry => write!(f, "an empty entry matches nothing"),
            Fault::BadName { name } => {
                write!(
                    f,
                    "{} is not a name: letters, digits, \"_\", \"-\" and, not at its start, \".\"",
                    quoted(name)
                )
            }
            Fault::DuplicateRule { name, .. } => write!(f, "a second rule is called {}", quoted(name)),
            Fault::UnknownRepository { name, nearest } => {
                write!(f, "unknown repository {}{}", quoted(name), suggestion(nearest.as_ref()))
            }
            Fault::AmbiguousRepository { name, .. } => {
                write!(f, "several files define a repository {}; give one of them another name", quoted(name))
            }
            Fault::UnknownRule { name, nearest } => {
                write!(f, "unknown rule {}{}", quoted(name), suggestion(nearest.as_ref()))
            }
            Fault::UnknownAlias { name, nearest } => {
                let nearest = nearest.as_ref().map(|nearest| format!("@{nearest}"));
                write!(f, "unknown alias {}{}", quoted(&format!("@{name}")), suggestion(nearest.as_ref()))
            }
            Fault::AmbiguousAlias { name, .. } => {
                write!(f, "several files define an alias {}; give one of them another name", quoted(name))
            }
            Fault::AliasLoop { name } => write!(f, "alias {} leads back to itself", quoted(name)),
            Fault::DuplicateCommand { name, .. } => {
                write!(f, "command {} is defined a second time", quoted(name))
            }
            Fault::ConflictingDefault { key, .. } => {
                write!(f, "another file gives \"{key}\" a different default")
            }
            Fault::Negation { entry, key } => {
                let without = quoted(entry.trim_start_matches('!'));
                write!(f, "{} excludes nothing; write except = [{{ {key} = [{without}] }}]", quoted(entry))
            }
            Fault::BadPattern { reason } => write!(f, "this is no pattern: {reason}"),
            Fault::IdTooLarge => write!(f, "no user or group can have this number"),
            Fault::EmptyRange => write!(f, "the range is empty: its end is below its start"),
            Fault::RelativeCommand { entry } => write!(
                f,
                "{} can match no path, because paths begin with \"/\"; write the name alone, or {}",
                quoted(entry),
                quoted(&format!("/**/{entry}"))
            ),
            Fault::RelativeDirectory { entry } => write!(
                f,
                "{} can match no directory, because directories begin with \"/\"; did you mean {}?",
                quoted(entry),
                quoted(&format!("/**/{entry}"))
            ),
            Fault::BadWindow { reason } => write!(f, "this is no time: {reason}"),
            Fault::UnknownZone { name } => write!(f, "this system knows no time zone {}", quoted(name)),
            Fault::BadVariable { name } => write!(f, "{} cannot be the name of a variable", quoted(name)),
            Fault::EmptyException => {
                write!(f, "an exception without selectors would take the rule out altogether")
            }
            Fault::RelativePath { key } => write!(f, "\"{key}\" must be an absolute path"),
            Fault::EmptyPath => write!(f, "the path names no file"),
            Fault::DotsInPath => write!(f, "\".\" and \"..\" are not allowed in this path"),
            Fault::LongName { most } => write!(f, "this name is longer than {most} bytes"),
            Fault::ControlCharacter => write!(f, "control characters are not allowed in a path"),
            Fault::OpenBrace => {
                write!(f, "\"{{\" opens a placeholder that is not closed, or \"}}\" closes none")
            }
            Fault::UnknownPlaceholder { name, nearest } => {
                let nearest = nearest.as_ref().map(|nearest| format!("{{{nearest}}}"));
                write!(
                    f,
                    "unknown placeholder {}{}",
                    quoted(&format!("{{{name}}}")),
                    suggestion(nearest.as_ref())
                )
            }
            Fault::PlaceholderInDirectory => {
                write!(
                    f,
                    "the directory must be the same for every launch; only {{runtime}} may stand at its start"
                )
            }
            Fault::RuntimeNotFirst => {
                write!(f, "{{runtime}} is a directory and can only stand at the start of a path")
            }
            Fault::SamePath { name, .. } => {
                write!(f, "repository {} has the same path and other settings", quoted(name))
            }
            Fault::Contradiction { key, other } => write!(f, "\"{key}\" and {other} do not go together"),
            Fault::NeedsKey { key, needs } => write!(f, "\"{key}\" says nothing without {needs}"),
            Fault::NothingToDo => {
                write!(f, "the rule says nothing to do; write acquire, or action = \"deny\" or \"exempt\"")
            }
            Fault::ExemptInFamily => {
                write!(
                    f,
                    "an exempt rule would free the launch of every other rule too; in first_of write acquire = []"
                )
            }
            Fault::GroupWithoutGroups { repository } => {
                write!(
                    f,
                    "repository {} has a file for each group, so the rule needs \"groups\"",
                    quoted(repository)
                )
            }
            Fault::ChargeAllInAnyOf { repository } => write!(
                f,
                "repository {} would charge several groups at once, which an alternative cannot; write charge = \
                 \"first\" or \"any\"",
                quoted(repository)
            ),
            Fault::EndNeedsSupervisor => write!(
                f,
                "only a supervisor knows when a program ends; write hold = \"supervisor\" or \"tree\" beside it"
            ),
            Fault::LimitsWithoutMember => {
                write!(
                    f,
                    "\"limits\" needs a repository with a file for each of one thing, such as per = \"user\""
                )
            }
            Fault::SlotsAboveLimit { slots, limit, repository } => {
                write!(
                    f,
                    "{slots} slots can never be had of repository {}, which gives {limit}",
                    quoted(repository)
                )
            }
            Fault::ReservedAboveLimit { reserved, limit } => {
                write!(f, "{reserved} slots are reserved of a limit of {limit}")
            }
            Fault::LendAboveSlots { lend, slots } => {
                write!(f, "{lend} of {slots} reserved slots cannot be lent")
            }
            Fault::Loosens { what } => {
                write!(f, "{what} would loosen the system's policy; a policy added to it may only tighten")
            }
        }
    }
}

impl Fault {
    /// Another place that belongs to it, and what to say there.
    pub(super) fn second(&self) -> Option<(At, &'static str)> {
        match self {
            Fault::DuplicateKey { first, .. }
            | Fault::DuplicateRule { first, .. }
            | Fault::AmbiguousRepository { first, .. }
            | Fault::AmbiguousAlias { first, .. }
            | Fault::DuplicateCommand { first, .. }
            | Fault::ConflictingDefault { first, .. }
            | Fault::SamePath { first, .. } => Some((*first, "first defined here")),
            _ => None,
        }
    }
}
