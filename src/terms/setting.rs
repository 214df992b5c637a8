//! A wait or a hold, as far as the policy settles it: what binds every launch, and what is replaced by an
//! option of the command line. For a wait `max_wait` of the repository binds, and every `wait` is replaced by
//! `-w`. For a hold what rules and repositories say binds, and only the default is replaced.

use super::{hold::Hold, span_of_time::Wait};

/// What the policy says about a wait or a hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Setting<T> {
    /// The strictest value that binds.
    pub bound: Option<T>,
    /// The strictest value that the command line replaces, or the value of the command line.
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
        Self { bound: None, default: None }
    }
}

impl Setting<Wait> {
    /// The wait that counts: none where neither the policy nor the command line names one.
    pub fn resolve(self) -> Wait {
        let wait = self.default.unwrap_or(Wait::NONE);
        self.bound.map_or(wait, |longest| wait.min(longest))
    }

    /// The longest wait that the policy allows, where that is less than the command line asks for.
    pub fn cut(self, asked: Option<Wait>) -> Option<Wait> {
        self.bound.filter(|longest| asked.is_some_and(|asked| *longest < asked))
    }

    /// Whether the policy allows no wait, whatever the command line asks for.
    pub fn is_forbidden(self) -> bool {
        self.bound == Some(Wait::NONE)
    }
}

impl Setting<Hold> {
    /// The hold that counts.
    pub fn resolve(self) -> Hold {
        self.bound.into_iter().chain(self.default).max().unwrap_or_default()
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
    let mut setting = Setting { bound: None, default: None };
    for (said, default) in layers {
        setting.bound = both(setting.bound, said);
        if said.is_none() {
            setting.default = both(setting.default, default);
        }
    }
    setting
}
