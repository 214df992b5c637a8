//! What a question for slots says of its launch: whether two of them ask for the same one, and how much
//! memory it takes.

use std::{
    ffi::OsString,
    hash::{DefaultHasher, Hash, Hasher},
};

use super::message::Take;

impl Take {
    /// Whether it asks for the same launch as another one, so that nothing but the policy can make another
    /// need of it.
    pub fn is_of_same_launch(&self, other: &Self) -> bool {
        self.launch() == other.launch()
    }

    /// A number that another launch has only by chance, whoever makes it up: nobody else knows the salt.
    pub fn fingerprint(&self, salt: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (salt, self.launch()).hash(&mut hasher);
        hasher.finish()
    }

    /// What it asks for, whatever was asked before and whoever asks.
    fn launch(&self) -> impl Eq + Hash {
        let Self { typed, path, canonical, directory, arguments, environment, held, .. } = self;
        (typed, path, canonical, directory, arguments, environment, held)
    }

    /// About how much memory it takes: a list of short texts takes many times what it took on the wire.
    pub fn size(&self) -> usize {
        let Self { typed, path, canonical, directory, arguments, environment, held, .. } = self;
        // Where a text is, and where it lies: memory is given in pieces.
        let text = |length: usize| size_of::<OsString>().saturating_add(length.next_multiple_of(32));
        let texts = [typed, path, canonical, directory, held].into_iter().chain(arguments);
        let variable = |(name, value): &(String, Option<OsString>)| {
            text(name.len()).saturating_add(text(value.as_ref().map_or(0, |value| value.len())))
        };
        let sizes = texts.map(|one| text(one.len())).chain(environment.iter().map(variable));
        sizes.fold(size_of::<Self>(), usize::saturating_add)
    }
}
