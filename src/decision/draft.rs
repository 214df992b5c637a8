//! A claim while it is made: two rules that want slots of one table make one claim.

use crate::{
    policy::Repository,
    terms::{amount::Amount, claim::Claim, merged::common, setting::Setting, span_of_time::Wait},
};

/// A claim, and what only its making needs to know.
#[derive(Clone)]
pub(super) struct Draft<'p> {
    pub(super) claim: Claim<'p>,
    pub(super) repository: &'p Repository,
    /// The layers of the rules behind it.
    pub(super) layers: Vec<usize>,
    /// Whether its limit is more than tried out.
    pub(super) enforce: bool,
    /// The shortest wait that a claim, a rule or a repository names.
    pub(super) wait: Option<Wait>,
    /// The shortest default of the layers of which none of these names a wait.
    pub(super) default_wait: Option<Wait>,
}

impl<'p> Draft<'p> {
    /// Takes in another claim on the same table: the lowest limit, the most slots, the zones that both allow.
    /// The rule that binds first is the one to be named first.
    pub(super) fn merge(&mut self, other: Draft<'p>) {
        let (one, other_amount) = (&mut self.claim.amount, &other.claim.amount);
        let binds = other_amount.effective_limit() < one.effective_limit();
        let at = if binds { 0 } else { self.claim.origins.len() };
        self.claim.origins.splice(at..at, other.claim.origins);
        self.layers.extend(other.layers);
        if other_amount.limit < one.limit {
            self.claim.limit_of = other.claim.limit_of;
        }
        if self.claim.names.is_empty() {
            self.claim.names = other.claim.names;
        }
        self.claim.out_of_order = self.claim.out_of_order.max(other.claim.out_of_order);
        for kept in other.claim.kept {
            if !self.claim.kept.contains(&kept) {
                self.claim.kept.push(kept);
            }
        }
        let zones = common(one.reserved_zones(), other_amount.reserved_zones());
        one.ceiling = one.ceiling.into_iter().chain(other_amount.ceiling).min();
        one.limit = one.limit.min(other_amount.limit);
        one.zones = zones.unwrap_or_else(|| Amount::plain(one.slots, one.limit).zones);
        one.slots = one.slots.max(other_amount.slots);
        one.admit = one.admit.max(other_amount.admit);
        self.wait = shortest(self.wait, other.wait);
        self.default_wait = shortest(self.default_wait, other.default_wait);
        // A default is for where its layer says nothing.
        if self.wait.is_some() && self.layers.iter().all(|layer| self.layers.first() == Some(layer)) {
            self.default_wait = None;
        }
        self.claim.wait = Setting {
            bound: shortest(self.claim.wait.bound, other.claim.wait.bound),
            default: shortest(self.wait, self.default_wait),
        };
        self.claim.queue = self.claim.queue.and(other.claim.queue);
    }
}

fn shortest(one: Option<Wait>, other: Option<Wait>) -> Option<Wait> {
    one.into_iter().chain(other).min()
}
