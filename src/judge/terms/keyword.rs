//! A value that is one of a few words. The words are listed once, beside their type; reading, suggestions,
//! the schema and `policy show` use this list.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A type whose values have names in the policy.
pub(crate) trait Keyword: Copy + PartialEq + 'static {
    /// Every word with its value, in the order of listings.
    const WORDS: &'static [(&'static str, Self)];

    /// The value of a word.
    fn of(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
    }

    /// The word of a value.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }

    /// The word of a value that is not the default.
    fn unless_default(self) -> Option<&'static str>
    where
        Self: Default,
    {
        (self != Self::default()).then(|| self.word())
    }

    fn words() -> Vec<&'static str> {
        Self::WORDS.iter().map(|(word, _)| *word).collect()
    }
}

// What happens to a claim when its limit is reached.

/// From the strictest on.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Admit {
    /// The launch is refused.
    #[default]
    WithinLimit,
    /// The launch starts without the slot, and the log says so.
    Unenforced,
    /// A slot beyond the limit is taken.
    Always,
}

// What keeps a slot taken. The holds are ordered: several rules and repositories may set one for a launch,
// and the strongest counts.

/// From the weakest to the strongest.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    /// The program itself: free again when it ends or closes the descriptor. No child keeps it.
    #[default]
    Process,
    /// Every process that inherited the descriptor.
    Descriptor,
    /// A parent that waits for the command and then releases the slot.
    Supervisor,
    /// The same, until all descendants have ended.
    Tree,
}

impl Keyword for Hold {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("process", Hold::Process),
        ("descriptor", Hold::Descriptor),
        ("supervisor", Hold::Supervisor),
        ("tree", Hold::Tree),
    ];
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

// Who keeps the slots of a repository.

/// A key of repositories, with its default for all of them.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Keeper {
    /// A lock file.
    #[default]
    File,
    /// The agent of this host.
    Agent,
    /// The agents of all hosts together.
    Site,
}

impl Keyword for Keeper {
    const WORDS: &'static [(&'static str, Self)] =
        &[("file", Keeper::File), ("agent", Keeper::Agent), ("site", Keeper::Site)];
}

// What a launch below a holder of the same repository does.

/// A key of repositories.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Nested {
    /// It uses the ancestor's slot, if that was taken for the same command and no other launch uses it.
    #[default]
    Join,
    /// It takes a slot of its own.
    Take,
}

impl Keyword for Nested {
    const WORDS: &'static [(&'static str, Self)] = &[("join", Nested::Join), ("take", Nested::Take)];
}

// What happens to programs when their host loses the site that keeps their slots.

/// A key of repositories that the site keeps.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnLost {
    /// They continue, and their slots are taken again when the site is back.
    #[default]
    Keep,
    /// They are ended before others can get their slots.
    Stop,
}

impl Keyword for OnLost {
    const WORDS: &'static [(&'static str, Self)] = &[("keep", OnLost::Keep), ("stop", OnLost::Stop)];
}

// The maximum length of a queue.

/// The maximum length of the queue of one table; none if there is no maximum.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Queue {
    /// The longest queue that a newcomer joins.
    pub most: Option<u32>,
    /// How many launches of one user may wait.
    pub per_user: Option<u32>,
}

impl Queue {
    /// What two claims on one table allow.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let lower = |one: Option<u32>, other: Option<u32>| one.into_iter().chain(other).min();
        Self { most: lower(self.most, other.most), per_user: lower(self.per_user, other.per_user) }
    }

    /// How many wait, and how many may: `3`, `3 of 20`.
    pub fn show(self, waiting: usize) -> String {
        self.most.map_or_else(|| waiting.to_string(), |most| format!("{waiting} of {most}"))
    }

    /// Whether it lasts for ever.
    pub fn is_endless(self) -> bool {
        self == Self::default()
    }
}

// What happens to a launch when the keeper of a repository cannot be reached.

/// A key of repositories that the agent keeps.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unreachable {
    /// It is refused.
    #[default]
    Refuse,
    /// It starts without a slot, and the log says so.
    Start,
}

impl Keyword for Unreachable {
    const WORDS: &'static [(&'static str, Self)] =
        &[("refuse", Unreachable::Refuse), ("start", Unreachable::Start)];
}
