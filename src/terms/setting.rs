//! A wait or a hold, as far as the policy settles it. What rules and repositories say is binding; the
//! defaults only hold where nobody asks for something else on the command line.

use super::{hold::Hold, span_of_time::Wait};

/// What the policy says about a wait or a hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Setting<T> {
    /// The strictest that is said of it: by a claim, a rule or a repository.
    pub said: Option<T>,
    /// The strictest default of the layers that say nothing else, or what the command line asks for instead.
    pub default: Option<T>,
}

impl<T> Setting<T> {
    /// The same, where the command line asks for `asked`.
    #[must_use]
    pub fn with(self, asked: Option<T>) -> Self {
        Self { default: asked.or(self.default), ..self }
    }
}

impl<T> Default for Setting<T> {
    fn default() -> Self {
        Self { said: None, default: None }
    }
}

impl Setting<Wait> {
    /// The wait that counts. Without a word from anybody there is none.
    pub fn resolve(self) -> Wait {
        self.said.into_iter().chain(self.default).min().unwrap_or(Wait::NONE)
    }
}

impl Setting<Hold> {
    /// The hold that counts.
    pub fn resolve(self) -> Hold {
        self.said.into_iter().chain(self.default).max().unwrap_or_default()
    }
}

/// Puts together what the layers say: `stricter` picks the one of two that counts.
pub(crate) fn settle<T: Copy>(
    layers: impl Iterator<Item = (Option<T>, Option<T>)>,
    stricter: impl Fn(T, T) -> T,
) -> Setting<T> {
    let both = |left: Option<T>, right: Option<T>| match (left, right) {
        (Some(left), Some(right)) => Some(stricter(left, right)),
        (left, right) => left.or(right),
    };
    let mut setting = Setting { said: None, default: None };
    for (said, default) in layers {
        setting.said = both(setting.said, said);
        if said.is_none() {
            setting.default = both(setting.default, default);
        }
    }
    setting
}
