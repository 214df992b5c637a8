//! Every fault of a policy, as a value with its evidence, a stable code, and its text: in lower case and
//! without a full stop; the likely intention comes last.

use std::time::Duration;

use super::{
    At,
    coded::{coded, quoted, suggestion},
};
use crate::text::Show;

coded! {
    /// A fault of a policy: with it, nothing of the policy is applied.
    Fault {
        // Files.
        Unreadable { reason: String } = "unreadable-file", (format!("cannot be read: {reason}"));
        Untrusted { reason: String } = "untrusted-file", (format!("cannot be trusted: {reason}"));
        Missing = "missing-file", "there is no such file";
        Empty = "empty-file",
            "is empty, perhaps because a write was interrupted; to limit nothing, write: version = 1";
        NotText { what: String } = "not-utf-8", (format!("{what}; save it as UTF-8"));
        Syntax { reason: String } = "syntax", (reason.shown().to_string());
        DuplicateKey { name: String, first: At } = "duplicate-key", "{name} is defined a second time";
        UnknownVersion = "unknown-version", "unsupported version; this rungate supports version 1";
        // Keys and the shape of values.
        UnknownKey { key: String, what: &'static str, nearest: Option<String> } = "unknown-key",
            "unknown key {key} in {what}{nearest}";
        MissingKey { key: &'static str, what: &'static str } = "missing-key", "{what} needs \"{key}\"";
        NoLimit { name: String } = "no-limit",
            "repository {name} has no limit; write how many may run at once: limit = 5";
        WrongType { key: String, expected: &'static str, found: &'static str } = "wrong-type",
            "{key} is {found}; it must be {expected}";
        UnknownWord { key: String, word: String, words: Vec<&'static str>, nearest: Option<String> } = "unknown-word",
            "{word} is not a value of {key}; known are {words}{nearest}";
        OutOfRange { key: String, least: i64, most: i64 } = "out-of-range", "{key} must be from {least} to {most}";
        BadDuration { key: String, text: String } = "bad-duration",
            "{text} is not a duration for {key}; write \"10m\" or \"1h30m\"";
        TooShort { key: &'static str, least: Duration } = "too-short", "\"{key}\" cannot be shorter than {least}";
        TooLong { key: &'static str, most: Duration } = "too-long",
            "\"{key}\" cannot be longer than a quarter of \"ttl\", {most}";
        BadEndpoint { text: String } = "bad-endpoint",
            "{text} is not the address of an etcd member; write https://HOST:PORT";
        TooManyForSite { most: u32 } = "too-many-for-site",
            "with keeper = \"site\" a launch can take at most {most} slots at once, because one \
             transaction of etcd cannot be larger";
        TableTooGreatForSite { most: u32 } = "table-too-great-for-site",
            "with keeper = \"site\" a launch can take at most {most} slots at once: divide limit and table by \
             the same number";
        NotANumber { text: String } = "not-a-number",
            "{text} is not a number from 1 on: a table has the slots for each number";
        OutsideOfDelegation = "outside-of-delegation",
            "a delegated drop-in cannot have \"outside\", because root would run its command; ask the administrator \
             to define this repository in the system's policy";
        OutsideOfWhom = "outside-of-whom",
            "a sample knows users and hosts only: with \"outside\", \"per\" and \"shared_by\" must be \"user\", \
             \"host\", or both";
        BadMode { text: String } = "bad-mode", "{text} is not a file mode; write \"0666\"";
        BadContact { text: String } = "bad-contact",
            "{text} is not a contact; write one line of at most 200 characters, such as \"help@example.org\"";
        BadShare { key: String, text: String } = "bad-share",
            "{text} is not valid for {key}; write a number of slots, or \"60%\"";
        BadLimit { text: String } = "bad-limit", "{text} is not a limit; write a number or \"2/cpu\"";
        EmptyList { key: String, instead: &'static str } = "empty-list", "{key} is empty; {instead}";
        EmptyEntry = "empty-entry", "an empty entry matches nothing";
        Repeated { word: String } = "repeated", "{word} occurs twice";
        // Names.
        BadName { name: String } = "bad-name",
            "{name} is not a valid name; use letters, digits, \"_\", \"-\" and, not first, \".\"";
        DuplicateRule { name: String, first: At } = "duplicate-rule", "two rules are called {name}";
        UnknownRepository { name: String, nearest: Option<String> } = "unknown-repository",
            "unknown repository {name}{nearest}";
        AmbiguousRepository { name: String, first: At } = "ambiguous-repository",
            "several files define a repository {name}; give one of them another name";
        UnknownRule { name: String, nearest: Option<String> } = "unknown-rule", "unknown rule {name}{nearest}";
        UnknownAlias { name: String, nearest: Option<String> } = "unknown-alias", ({
            let nearest = nearest.as_ref().map(|nearest| format!("@{nearest}"));
            format!("unknown alias {}{}", quoted(&format!("@{name}")), suggestion(nearest.as_ref()))
        });
        AmbiguousAlias { name: String, first: At } = "ambiguous-alias",
            "several files define an alias {name}; give one of them another name";
        AliasLoop { name: String } = "alias-loop", "alias {name} refers to itself";
        AliasTooDeep { name: String, most: usize } = "alias-too-deep",
            "alias {name} is within {most} others; write its entries there";
        TooManyEntries = "too-many-entries",
            "the lists of this file have too many entries, with aliases replaced; a pattern counts as many entries";
        DuplicateCommand { name: String, first: At } = "duplicate-command", "command {name} is defined a second time";
        ConflictingDefault { key: &'static str, first: At } = "conflicting-default",
            "another file gives \"{key}\" a different default";
        // Entries of selectors.
        Negation { entry: String, key: &'static str } = "negation", ({
            let without = quoted(entry.trim_start_matches('!'));
            format!("{} excludes nothing; write except = [{{ {key} = [{without}] }}]", quoted(entry))
        });
        BadPattern { reason: String } = "bad-pattern", (format!("invalid pattern: {}", reason.shown()));
        IdTooLarge = "id-too-large", "no user or group can have this number";
        EmptyRange = "empty-range", "the range is empty: its end is below its start";
        RelativeCommand { entry: String } = "relative-command", (relative_command(entry));
        RelativeDirectory { entry: String } = "relative-directory-pattern", (format!(
            "{} can match no directory, because directories begin with \"/\"; did you mean {}?",
            quoted(entry),
            quoted(&format!("/**/{entry}"))
        ));
        BadWindow { reason: String } = "bad-time", (format!("invalid time: {}", reason.shown()));
        UnknownZone { name: String } = "unknown-time-zone", "unknown time zone {name}";
        BadVariable { name: String } = "bad-variable", "{name} cannot be the name of a variable";
        EmptyException = "empty-exception", "an exception without selectors would exclude every launch";
        // Captures.
        PartialCapture { name: String } = "partial-capture",
            (format!("{{{}}} must be a whole part of the path, or the end of the argument", name.shown()));
        CaptureAfterPattern { name: String } = "capture-after-pattern",
            (format!("only literal text may precede {{{}}}", name.shown()));
        CaptureOfPlaceholder { name: String } = "capture-of-placeholder", (format!(
            "{{{0}}} is a placeholder in every path; use another name for the capture: {{the_{0}}}",
            name.shown()
        ));
        UnevenCaptures { name: String, key: &'static str } = "uneven-captures",
            (format!("every entry of \"{key}\" must capture {{{}}}, or none", name.shown()));
        CapturedTwice { name: String, first: At } = "captured-twice",
            (format!("{{{}}} is captured a second time", name.shown()));
        UnusedCapture { name: String } = "unused-capture",
            (format!("nothing uses the capture {{{0}}}; to match the word itself, write {0}", name.shown()));
        NotCaptured { repository: String, name: String } = "not-captured",
            (format!("{} needs {{{}}}, which this rule does not capture", quoted(repository), name.shown()));
        // Paths.
        RelativePath { key: &'static str } = "relative-path", "\"{key}\" must be an absolute path";
        EmptyPath = "empty-path", "the path names no file";
        DotsInPath = "dots-in-path", "\".\" and \"..\" are not allowed in this path";
        LongName { most: usize } = "name-too-long", "this name is longer than {most} bytes";
        ControlCharacter = "control-character", "control characters are not allowed in a path";
        OpenBrace = "open-brace", "\"{{\" opens a placeholder that is not closed, or \"}}\" closes none";
        UnknownPlaceholder { name: String, nearest: Option<String> } = "unknown-placeholder", ({
            let nearest = nearest.as_ref().map(|nearest| format!("{{{nearest}}}"));
            format!("unknown placeholder {}{}", quoted(&format!("{{{name}}}")), suggestion(nearest.as_ref()))
        });
        PlaceholderInDirectory = "placeholder-in-directory",
            "the directory must be the same for every launch; only {{runtime}} is allowed, at its start";
        PlaceholderInLog = "placeholder-in-log", "only {{host}} is allowed in the path of a log";
        RuntimeNotFirst = "runtime-not-first",
            "{{runtime}} is a directory and is only allowed at the start of a path";
        SamePath { name: String, first: At } = "same-path", "repository {name} has the same path and other settings";
        PathsMeet { name: String, first: At } = "paths-meet",
            "this repository and {name} can have the same path, and would share slots; give one of them another \
             name or path";
        // Keys that exclude each other.
        Contradiction { key: &'static str, other: &'static str } = "contradiction",
            "\"{key}\" and {other} do not go together";
        NeedsKey { key: &'static str, needs: &'static str } = "needs-key", "\"{key}\" has no effect without {needs}";
        NothingToDo = "nothing-to-do", "the rule does nothing; write acquire, or action = \"deny\" or \"exempt\"";
        ExemptInFamily = "exempt-in-first-of",
            "an exempt rule would exempt the launch from every other rule too; in first_of write acquire = []";
        SharedSlots { most: u64 } = "shared-slots",
            "with \"shared_by\" a launch takes at most {most} slots; write that as \"slots\", or as \"most\" of \
             slots_from";
        SharedOverHosts = "shared-over-hosts",
            "with keeper = \"site\" launches share slots only on one host; add \"host\" to \"shared_by\"";
        GroupWithoutGroups { repository: String } = "group-without-groups",
            "repository {repository} has a file for each group, so the rule needs \"groups\"";
        ChargeAllInAnyOf { repository: String } = "charge-in-any-of",
            "repository {repository} would charge several groups at once, which an alternative cannot; write charge = \
             \"first\" or \"any\"";
        NoAlternative = "no-alternative", "an alternative is a claim or a list of claims";
        NoSlotsFrom = "no-slots-from", "slots = 0 needs \"slots_from\"";
        WaitWithoutClaim = "wait-without-claim", "\"wait\" needs a claim";
        WaitAboveMax { longest: String, repository: String } = "wait-above-max",
            (format!("the max_wait of repository {} is only {longest}", quoted(repository)));
        EndNeedsSupervisor = "end-needs-supervisor",
            "only a supervisor knows when a program ends; write hold = \"supervisor\" or \"tree\" beside it";
        AgentOutsideSystem { keeper: &'static str } = "agent-outside-system-policy",
            "keeper = \"{keeper}\" is allowed only in the system's policy, because the agent reads no other";
        RepositoryOfAgent { repository: String } = "agent-repository-outside-system-policy",
            "the agent keeps {repository}, and reads only the system's policy: write this rule there";
        MixedKeepers { repository: String } = "mixed-keepers",
            "repository {repository} has another keeper than the first alternative; all alternatives need the same";
        LimitsWithoutMember = "limits-without-member",
            "a table of \"limits\" needs a repository with a file for each of one thing, such as per = \"user\"; for \
             others write a list: limits = [{{ users = [\"ann\"], limit = 8 }}]";
        LimitsSelector { entry: String, selects: &'static str, by: &'static str } = "limits-selector",
            "{entry} selects {selects}; this repository is by {by}";
        LimitsNegation { entry: String } = "limits-negation",
            "{entry} excludes nothing; the first entry that matches counts";
        LimitsNotBy { key: &'static str, of: &'static str, members: Option<String> } = "limits-not-by", ({
            let instead = |member| format!("; for members write users = [{}]", quoted(member));
            format!("\"{key}\" needs per = \"{of}\"{}", members.as_deref().map_or_else(String::new, instead))
        });
        LimitForAll = "limit-for-all", "this is the limit of all members; write it as \"limit\"";
        SlotsAboveLimit { slots: u32, limit: u32, repository: String } = "slots-above-limit",
            "no launch can get {slots} slots of repository {repository}, which has {limit}";
        KeptForEverybody { when: bool } = "kept-for-everybody", ({
            let kept = if *when { "\"when\" alone reserves" } else { "this reserves" };
            format!("{kept} slots for all users; add \"users\" or \"hosts\"")
        });
        ReservedAboveLimit { reserved: u32, limit: u32 } = "reserved-above-limit",
            "{reserved} slots are reserved of a limit of {limit}";
        LendAboveSlots { lend: u32, slots: u32 } = "lend-above-slots",
            "{lend} of {slots} reserved slots cannot be lent";
        LimitAboveNames { limit: u32, names: u32 } = "limit-above-names", "limit {limit} is above {names} names";
        NameTwice { name: String } = "name-twice", "two slots are called {name}";
        BadSlotName { name: String } = "bad-slot-name", "{name} cannot be the name of a slot: no blanks and no commas";
        UnknownName { name: String, nearest: Option<String> } = "unknown-name", "no slot is called {name}{nearest}";
        BeyondNames { repository: String } = "beyond-names",
            "action = \"count\" may need more slots than repository {repository} has names";
        // Layers.
        BadDelegate { name: String } = "bad-delegate",
            "{name} is not the name of a drop-in; use letters, digits, \"_\", \"-\" and \".\", and \".toml\" at its end";
        BadOwner { name: String } = "bad-owner", "{name} is not one user; write a name or a uid";
        DelegateElsewhere = "delegate-elsewhere", "only the system's main file can delegate";
        DelegatedKey { key: &'static str } = "delegated-key", "a delegated file may not contain \"{key}\"";
        DelegatedPath = "delegated-path",
            "a delegated file has its repositories in a directory of its own; write a relative path";
        MayOnlyLower { repository: String } = "may-only-lower",
            "a delegated file can only lower {repository}: write ceiling";
        Loosens { what: &'static str } = "loosens",
            "{what} would loosen the system's policy; a policy added to it may only tighten";
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

/// What to write instead of a command with a slash that is not at its begin.
fn relative_command(entry: &str) -> String {
    if entry.starts_with(['~', '$']) {
        let (start, rest) = entry.split_once('/').unwrap_or((entry, ""));
        return format!(
            "{} can match no path, because \"{}\" is not expanded here; write the name alone, or {}",
            quoted(entry),
            start.shown(),
            quoted(&format!("/home/*/{rest}"))
        );
    }
    format!(
        "{} can match no path, because paths begin with \"/\"; write the name alone, or {}",
        quoted(entry),
        quoted(&format!("/**/{entry}"))
    )
}
