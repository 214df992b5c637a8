//! Why a claim is made: the rule behind it, for records and for people.

use super::place::Place;

/// A rule that asks for a claim, or something that stands in for one, such as `--limit`.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'p> {
    /// The rule's name, as it is shown.
    pub rule: &'p str,
    /// Where the rule stands; none for what is no rule.
    pub place: Option<&'p Place>,
    /// What its author wants to say to whoever it refuses.
    pub message: Option<&'p str>,
}

impl<'p> Origin<'p> {
    /// Something that is no rule of a policy.
    pub fn outside_the_policy(name: &'p str) -> Self {
        Self { rule: name, place: None, message: None }
    }
}
