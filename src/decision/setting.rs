//! A wait or a hold, as far as the policy settles it. What rules and repositories say is binding; the defaults only hold
//! where nobody asks for something else on the command line.

use std::time::Duration;

use crate::policy::{Hold, Wait};

/// What the policy says about a wait or a hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Setting<T> {
    /// The strictest that a rule or a repository says.
    pub said: Option<T>,
    /// The strictest default of the layers whose rules and repositories are silent.
    pub default: Option<T>,
}

impl Setting<Wait> {
    /// The wait that counts, where the command line asks for `asked`. Without a word from anybody there is none.
    pub fn resolve(self, asked: Option<Wait>) -> Wait {
        let open = asked.or(self.default);
        self.said.into_iter().chain(open).min().unwrap_or(Wait::For(Duration::ZERO))
    }
}

impl Setting<Hold> {
    /// The hold that counts, where the command line asks for `asked`.
    pub fn resolve(self, asked: Option<Hold>) -> Hold {
        let open = asked.or(self.default);
        self.said.into_iter().chain(open).max().unwrap_or_default()
    }
}

/// Puts together what the layers say: `stricter` picks the one of two that counts.
pub(super) fn settle<T: Copy>(
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
