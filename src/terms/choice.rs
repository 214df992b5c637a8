//! A value that is one of a few words. The words stand once, beside their type; reading, suggestions, the
//! schema and `policy show` all take them from there.

/// A type whose values have names in the policy.
pub(crate) trait Choice: Copy + PartialEq + 'static {
    /// Every word with its value, in the order in which they are to be listed.
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

    /// Every word.
    fn words() -> Vec<&'static str> {
        Self::WORDS.iter().map(|(word, _)| *word).collect()
    }
}
