//! Every fault of a policy, as a value with its evidence and a stable code. Its text is in `fault_text`.

use std::{fmt, time::Duration};

use super::{At, coded::coded};
use crate::{judge::terms::show_duration, text::Show};

coded! {
    /// A fault of a policy: with it, nothing of the policy is applied.
    Fault {
        // Files.
        Unreadable { reason: String } = "unreadable-file",
        Untrusted { reason: String } = "untrusted-file",
        Missing = "missing-file",
        Empty = "empty-file",
        NotText { what: String } = "not-utf-8",
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
        TooShort { key: &'static str, least: Duration } = "too-short",
        TooLong { key: &'static str, most: Duration } = "too-long",
        BadEndpoint { text: String } = "bad-endpoint",
        TooManyForSite { most: u32 } = "too-many-for-site",
        TableTooGreatForSite { most: u32 } = "table-too-great-for-site",
        NotANumber { text: String } = "not-a-number",
        OutsideOfDelegation = "outside-of-delegation",
        OutsideOfWhom = "outside-of-whom",
        BadMode { text: String } = "bad-mode",
        BadContact { text: String } = "bad-contact",
        BadShare { key: String, text: String } = "bad-share",
        BadLimit { text: String } = "bad-limit",
        EmptyList { key: String, instead: &'static str } = "empty-list",
        EmptyEntry = "empty-entry",
        Repeated { word: String } = "repeated",
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
        // Captures.
        PartialCapture { name: String } = "partial-capture",
        CaptureAfterPattern { name: String } = "capture-after-pattern",
        CaptureOfPlaceholder { name: String } = "capture-of-placeholder",
        UnevenCaptures { name: String, key: &'static str } = "uneven-captures",
        CapturedTwice { name: String, first: At } = "captured-twice",
        UnusedCapture { name: String } = "unused-capture",
        NotCaptured { repository: String, name: String } = "not-captured",
        // Paths.
        RelativePath { key: &'static str } = "relative-path",
        EmptyPath = "empty-path",
        DotsInPath = "dots-in-path",
        LongName { most: usize } = "name-too-long",
        ControlCharacter = "control-character",
        OpenBrace = "open-brace",
        UnknownPlaceholder { name: String, nearest: Option<String> } = "unknown-placeholder",
        PlaceholderInDirectory = "placeholder-in-directory",
        PlaceholderInLog = "placeholder-in-log",
        RuntimeNotFirst = "runtime-not-first",
        SamePath { name: String, first: At } = "same-path",
        PathsMeet { name: String, first: At } = "paths-meet",
        // Keys that exclude each other.
        Contradiction { key: &'static str, other: &'static str } = "contradiction",
        NeedsKey { key: &'static str, needs: &'static str } = "needs-key",
        NothingToDo = "nothing-to-do",
        ExemptInFamily = "exempt-in-first-of",
        SharedSlots { most: u64 } = "shared-slots",
        SharedOverHosts = "shared-over-hosts",
        GroupWithoutGroups { repository: String } = "group-without-groups",
        ChargeAllInAnyOf { repository: String } = "charge-in-any-of",
        NoAlternative = "no-alternative",
        NoSlotsFrom = "no-slots-from",
        WaitWithoutClaim = "wait-without-claim",
        WaitAboveMax { longest: String, repository: String } = "wait-above-max",
        EndNeedsSupervisor = "end-needs-supervisor",
        AgentOutsideSystem { keeper: &'static str } = "agent-outside-system-policy",
        MixedKeepers { repository: String } = "mixed-keepers",
        LimitsWithoutMember = "limits-without-member",
        LimitsSelector { entry: String, selects: &'static str, by: &'static str } = "limits-selector",
        LimitsNegation { entry: String } = "limits-negation",
        LimitsNotBy { key: &'static str, of: &'static str, members: Option<String> } = "limits-not-by",
        LimitForAll = "limit-for-all",
        SlotsAboveLimit { slots: u32, limit: u32, repository: String } = "slots-above-limit",
        KeptForEverybody { when: bool } = "kept-for-everybody",
        ReservedAboveLimit { reserved: u32, limit: u32 } = "reserved-above-limit",
        LendAboveSlots { lend: u32, slots: u32 } = "lend-above-slots",
        LimitAboveNames { limit: u32, names: u32 } = "limit-above-names",
        NameTwice { name: String } = "name-twice",
        BadSlotName { name: String } = "bad-slot-name",
        UnknownName { name: String, nearest: Option<String> } = "unknown-name",
        BeyondNames { repository: String } = "beyond-names",
        // Layers.
        BadDelegate { name: String } = "bad-delegate",
        BadOwner { name: String } = "bad-owner",
        DelegateElsewhere = "delegate-elsewhere",
        DelegatedKey { key: &'static str } = "delegated-key",
        DelegatedPath = "delegated-path",
        MayOnlyLower { repository: String } = "may-only-lower",
        Loosens { what: &'static str } = "loosens",
    }
}

impl Fault {
    /// Another place that belongs to it, with its text.
    pub(super) fn second(&self) -> Option<(At, &'static str)> {
        match self {
            Fault::DuplicateKey { first, .. }
            | Fault::DuplicateRule { first, .. }
            | Fault::AmbiguousRepository { first, .. }
            | Fault::AmbiguousAlias { first, .. }
            | Fault::DuplicateCommand { first, .. }
            | Fault::CapturedTwice { first, .. }
            | Fault::ConflictingDefault { first, .. }
            | Fault::PathsMeet { first, .. }
            | Fault::SamePath { first, .. } => Some((*first, "first defined here")),
            _ => None,
        }
    }
}

// The wording of faults: in lower case and without a full stop; the likely intention comes last.

/// How much of a name or a value a message repeats. A string that is not closed extends to the end of the
/// file.
const REPEATED: usize = 60;

/// A name in a message.
fn quoted(name: &str) -> String {
    match name.char_indices().nth(REPEATED) {
        Some((end, _)) => format!("\"{}...\"", name.get(..end).unwrap_or(name).shown()),
        None => format!("\"{}\"", name.shown()),
    }
}

/// The likely intention, at the end of a message.
pub(super) fn suggestion(nearest: Option<&String>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean {}?", quoted(nearest)))
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unreadable { reason } => write!(f, "cannot be read: {reason}"),
            Fault::Untrusted { reason } => write!(f, "cannot be trusted: {reason}"),
            Fault::Missing => write!(f, "there is no such file"),
            Fault::Empty => f.write_str(
                "is empty, perhaps because a write was interrupted; to limit nothing, write: version = 1",
            ),
            Fault::BadMode { text } => write!(f, "{} is not a file mode; write \"0666\"", quoted(text)),
            Fault::NotText { what } => write!(f, "{what}; save it as UTF-8"),
            Fault::Syntax { reason } => write!(f, "{}", reason.shown()),
            Fault::DuplicateKey { name, .. } => write!(f, "{} is defined a second time", quoted(name)),
            Fault::UnknownVersion => write!(f, "unsupported version; this rungate supports version 1"),
            Fault::UnknownKey { key, what, nearest } => {
                write!(f, "unknown key {} in {what}{}", quoted(key), suggestion(nearest.as_ref()))
            }
            Fault::MissingKey { key, what } => write!(f, "{what} needs \"{key}\""),
            Fault::NoLimit { name } => {
                write!(
                    f,
                    "repository {} has no limit; write how many may run at once: limit = 5",
                    quoted(name)
                )
            }
            Fault::WrongType { key, expected, found } => {
                write!(f, "{} is {found}; it must be {expected}", quoted(key))
            }
            Fault::UnknownWord { key, word, words, nearest } => {
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                let one_of = words.join(", ");
                write!(f, "{} is not a value of {}; known are {one_of}", quoted(word), quoted(key))?;
                f.write_str(&suggestion(nearest.as_ref()))
            }
            Fault::OutOfRange { key, least, most } => {
                write!(f, "{} must be from {least} to {most}", quoted(key))
            }
            Fault::TooShort { key, least } => {
                write!(f, "\"{key}\" cannot be shorter than {}", show_duration(*least))
            }
            Fault::TooLong { key, most } => {
                write!(f, "\"{key}\" cannot be longer than a quarter of \"ttl\", {}", show_duration(*most))
            }
            Fault::BadEndpoint { text } => {
                write!(f, "{} is not the address of an etcd member; write https://HOST:PORT", quoted(text))
            }
            Fault::TooManyForSite { most } => write!(
                f,
                "with keeper = \"site\" a launch can take at most {most} slots at once, because one \
                    transaction of etcd cannot be larger"
            ),
            Fault::TableTooGreatForSite { most } => write!(
                f,
                "with keeper = \"site\" a launch can take at most {most} slots at once: divide limit and table by \
                 the same number"
            ),
            Fault::OutsideOfWhom => write!(
                f,
                "a sample knows users and hosts only: with \"outside\", \"per\" and \"shared_by\" must be \"user\", \
                 \"host\", or both"
            ),
            Fault::OutsideOfDelegation => write!(
                f,
                "a delegated drop-in cannot have \"outside\", because root would run its command; ask the administrator \
                 to define this repository in the system's policy"
            ),
            Fault::NotANumber { text } => {
                write!(f, "{} is not a number from 1 on: a table has the slots for each number", quoted(text))
            }
            Fault::BadDuration { key, text } => {
                write!(
                    f,
                    "{} is not a duration for {}; write \"10m\" or \"1h30m\"",
                    quoted(text),
                    quoted(key)
                )
            }
            Fault::BadContact { text } => write!(
                f,
                "{} is not a contact; write one line of at most 200 characters, such as \"help@example.org\"",
                quoted(text)
            ),
            Fault::BadShare { key, text } => write!(
                f,
                "{} is not valid for {}; write a number of slots, or \"60%\"",
                quoted(text),
                quoted(key)
            ),
            Fault::BadLimit { text } => {
                write!(f, "{} is not a limit; write a number or \"2/cpu\"", quoted(text))
            }
            Fault::EmptyList { key, instead } => write!(f, "{} is empty; {instead}", quoted(key)),
            Fault::Repeated { word } => write!(f, "{} occurs twice", quoted(word)),
            Fault::EmptyEntry => write!(f, "an empty entry matches nothing"),
            Fault::BadName { name } => {
                write!(
                    f,
                    "{} is not a valid name; use letters, digits, \"_\", \"-\" and, not first, \".\"",
                    quoted(name)
                )
            }
            Fault::DuplicateRule { name, .. } => write!(f, "two rules are called {}", quoted(name)),
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
            Fault::AliasLoop { name } => write!(f, "alias {} refers to itself", quoted(name)),
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
            Fault::BadPattern { reason } => write!(f, "invalid pattern: {}", reason.shown()),
            Fault::IdTooLarge => write!(f, "no user or group can have this number"),
            Fault::EmptyRange => write!(f, "the range is empty: its end is below its start"),
            Fault::RelativeCommand { entry } if entry.starts_with(['~', '$']) => write!(
                f,
                "{} can match no path, because \"{}\" is not expanded here; write the name alone, or {}",
                quoted(entry),
                entry.split('/').next().unwrap_or_default().shown(),
                quoted(&format!("/home/*/{}", entry.split_once('/').map_or("", |(_, rest)| rest)))
            ),
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
            Fault::BadWindow { reason } => write!(f, "invalid time: {}", reason.shown()),
            Fault::UnknownZone { name } => write!(f, "unknown time zone {}", quoted(name)),
            Fault::BadVariable { name } => write!(f, "{} cannot be the name of a variable", quoted(name)),
            Fault::EmptyException => {
                write!(f, "an exception without selectors would exclude every launch")
            }
            Fault::PartialCapture { name } => {
                write!(f, "{{{}}} must be a whole part of the path, or the end of the argument", name.shown())
            }
            Fault::CaptureAfterPattern { name } => {
                write!(f, "only literal text may precede {{{}}}", name.shown())
            }
            Fault::CaptureOfPlaceholder { name } => {
                let name = name.shown();
                write!(
                    f,
                    "{{{name}}} is a placeholder in every path; use another name for the capture: {{the_{name}}}"
                )
            }
            Fault::UnevenCaptures { name, key } => {
                write!(f, "every entry of \"{key}\" must capture {{{}}}, or none", name.shown())
            }
            Fault::CapturedTwice { name, .. } => write!(f, "{{{}}} is captured a second time", name.shown()),
            Fault::UnusedCapture { name } => {
                write!(
                    f,
                    "nothing uses the capture {{{0}}}; to match the word itself, write {0}",
                    name.shown()
                )
            }
            Fault::NotCaptured { repository, name } => write!(
                f,
                "{} needs {{{}}}, which this rule does not capture",
                quoted(repository),
                name.shown()
            ),
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
            Fault::PlaceholderInLog => write!(f, "only {{host}} is allowed in the path of a log"),
            Fault::PlaceholderInDirectory => {
                write!(
                    f,
                    "the directory must be the same for every launch; only {{runtime}} is allowed, at its \
                        start"
                )
            }
            Fault::RuntimeNotFirst => {
                write!(f, "{{runtime}} is a directory and is only allowed at the start of a path")
            }
            Fault::SamePath { name, .. } => {
                write!(f, "repository {} has the same path and other settings", quoted(name))
            }
            Fault::PathsMeet { name, .. } => write!(
                f,
                "this repository and {} can have the same path, and would share slots; give one of them another name or path",
                quoted(name)
            ),
            Fault::Contradiction { key, other } => write!(f, "\"{key}\" and {other} do not go together"),
            Fault::NeedsKey { key, needs } => write!(f, "\"{key}\" has no effect without {needs}"),
            Fault::NothingToDo => {
                write!(f, "the rule does nothing; write acquire, or action = \"deny\" or \"exempt\"")
            }
            Fault::ExemptInFamily => {
                write!(
                    f,
                    "an exempt rule would exempt the launch from every other rule too; in first_of write \
                        acquire = []"
                )
            }
            Fault::SharedOverHosts => write!(
                f,
                "with keeper = \"site\" launches share slots only on one host; add \"host\" to \"shared_by\""
            ),
            Fault::SharedSlots { most } => write!(
                f,
                "with \"shared_by\" a launch takes at most {most} slots; write that as \"slots\", or as \"most\" of \
                 slots_from"
            ),
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
            Fault::NoAlternative => write!(f, "an alternative is a claim or a list of claims"),
            Fault::NoSlotsFrom => write!(f, "slots = 0 needs \"slots_from\""),
            Fault::WaitWithoutClaim => write!(f, "\"wait\" needs a claim"),
            Fault::WaitAboveMax { longest, repository } => {
                write!(f, "the max_wait of repository {} is only {longest}", quoted(repository))
            }
            Fault::EndNeedsSupervisor => write!(
                f,
                "only a supervisor knows when a program ends; write hold = \"supervisor\" or \"tree\" beside it"
            ),
            Fault::AgentOutsideSystem { keeper } => write!(
                f,
                "keeper = \"{keeper}\" is allowed only in the system's policy, because the agent reads no other"
            ),
            Fault::MixedKeepers { repository } => write!(
                f,
                "repository {} has another keeper than the first alternative; all alternatives need the same",
                quoted(repository)
            ),
            Fault::LimitsWithoutMember => {
                write!(
                    f,
                    "a table of \"limits\" needs a repository with a file for each of one thing, such as \
                     per = \"user\"; for others write a list: limits = [{{ users = [\"ann\"], limit = 8 }}]"
                )
            }
            Fault::LimitsSelector { entry, selects, by } => {
                write!(f, "{} selects {selects}; this repository is by {by}", quoted(entry))
            }
            Fault::LimitsNegation { entry } => {
                write!(f, "{} excludes nothing; the first entry that matches counts", quoted(entry))
            }
            Fault::LimitsNotBy { key, of, members } => {
                write!(f, "\"{key}\" needs per = \"{of}\"")?;
                members
                    .as_ref()
                    .map_or(Ok(()), |member| write!(f, "; for members write users = [{}]", quoted(member)))
            }
            Fault::LimitForAll => write!(f, "this is the limit of all members; write it as \"limit\""),
            Fault::SlotsAboveLimit { slots, limit, repository } => {
                write!(
                    f,
                    "no launch can get {slots} slots of repository {}, which has {limit}",
                    quoted(repository)
                )
            }
            Fault::KeptForEverybody { when: true } => {
                write!(f, "\"when\" alone reserves slots for all users; add \"users\" or \"hosts\"")
            }
            Fault::KeptForEverybody { when: false } => {
                write!(f, "this reserves slots for all users; add \"users\" or \"hosts\"")
            }
            Fault::ReservedAboveLimit { reserved, limit } => {
                write!(f, "{reserved} slots are reserved of a limit of {limit}")
            }
            Fault::LendAboveSlots { lend, slots } => {
                write!(f, "{lend} of {slots} reserved slots cannot be lent")
            }
            Fault::LimitAboveNames { limit, names } => write!(f, "limit {limit} is above {names} names"),
            Fault::NameTwice { name } => write!(f, "two slots are called {}", quoted(name)),
            Fault::BadSlotName { name } => {
                write!(f, "{} cannot be the name of a slot: no blanks and no commas", quoted(name))
            }
            Fault::UnknownName { name, nearest } => {
                write!(f, "no slot is called {}{}", quoted(name), suggestion(nearest.as_ref()))
            }
            Fault::BeyondNames { repository } => {
                write!(
                    f,
                    "action = \"count\" may need more slots than repository {} has names",
                    quoted(repository)
                )
            }
            Fault::BadDelegate { name } => write!(
                f,
                "{} is not the name of a drop-in; use letters, digits, \"_\", \"-\" and \".\", and \
                    \".toml\" at its end",
                quoted(name)
            ),
            Fault::BadOwner { name } => {
                write!(f, "{} is not one user; write a name or a uid", quoted(name))
            }
            Fault::DelegateElsewhere => write!(f, "only the system's main file can delegate"),
            Fault::DelegatedKey { key } => write!(f, "a delegated file may not contain \"{key}\""),
            Fault::DelegatedPath => write!(
                f,
                "a delegated file has its repositories in a directory of its own; write a relative path"
            ),
            Fault::MayOnlyLower { repository } => {
                write!(f, "a delegated file can only lower {}: write ceiling", quoted(repository))
            }
            Fault::Loosens { what } => {
                write!(f, "{what} would loosen the system's policy; a policy added to it may only tighten")
            }
        }
    }
}
