//! Every fault a policy can have, as a value that carries its evidence, with its stable code. How each is
//! worded is in `fault_text`.

use std::time::Duration;

use super::{coded::coded, place::At};

coded! {
    /// What is wrong with a policy, so that nothing of it may be applied.
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
        // Keys that do not go together.
        Contradiction { key: &'static str, other: &'static str } = "contradiction",
        NeedsKey { key: &'static str, needs: &'static str } = "needs-key",
        NothingToDo = "nothing-to-do",
        ExemptInFamily = "exempt-in-first-of",
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
    /// Another place that belongs to it, and what to say there.
    pub(super) fn second(&self) -> Option<(At, &'static str)> {
        match self {
            Fault::DuplicateKey { first, .. }
            | Fault::DuplicateRule { first, .. }
            | Fault::AmbiguousRepository { first, .. }
            | Fault::AmbiguousAlias { first, .. }
            | Fault::DuplicateCommand { first, .. }
            | Fault::CapturedTwice { first, .. }
            | Fault::ConflictingDefault { first, .. }
            | Fault::SamePath { first, .. } => Some((*first, "first defined here")),
            _ => None,
        }
    }
}
