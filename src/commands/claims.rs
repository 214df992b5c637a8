//! From the claims of a decision to claims on lock files: the one place where the words of judgement become those of
//! mechanism.

use crate::{
    decision::{self, Demand},
    policy,
    repository::{
        claim::{self, Admit, Claim},
        file::Creation,
    },
};

/// The claims of a decision, in two forms that are numbered alike.
pub(super) struct Claims<'p> {
    /// For the lock files.
    pub(super) demands: Vec<claim::Demand>,
    /// For people: with rules, places and messages.
    pub(super) judged: Vec<&'p decision::Claim<'p>>,
}

impl<'p> Claims<'p> {
    /// Translates what a decision demands.
    pub(super) fn of(demands: &'p [Demand<'p>]) -> Self {
        let mut judged = Vec::new();
        let demands = demands
            .iter()
            .map(|demand| match demand {
                Demand::One(one) => {
                    judged.push(one);
                    claim::Demand::One(translate(one))
                }
                Demand::AnyOf(several) => {
                    judged.extend(several);
                    claim::Demand::AnyOf(several.iter().map(translate).collect())
                }
            })
            .collect();
        Self { demands, judged }
    }
}

fn translate(judged: &decision::Claim<'_>) -> Claim {
    let limit = u64::from(judged.effective_limit());
    Claim {
        name: judged.repository.shown_name().to_owned(),
        path: judged.path.clone(),
        creation: Creation {
            base: judged.base.clone(),
            private: judged.create_base,
            file_mode: judged.create_mode,
            directory_mode: judged.directory_mode,
        },
        owner: judged.owner,
        limit,
        slots: match judged.slots {
            decision::Slots::Number(number) => claim::Slots::Number(u64::from(number)),
            decision::Slots::All => claim::Slots::All,
        },
        zones: zones(judged, limit),
        admit: if judged.admit_always {
            Admit::Always
        } else if judged.enforce {
            Admit::WithinLimit
        } else {
            Admit::Unenforced
        },
        nested: match judged.repository.nested() {
            policy::Nested::Join => claim::Nested::Join,
            policy::Nested::Take => claim::Nested::Take,
        },
        pause: None,
        expiry: None,
        rule: judged.rules.first().map_or_else(String::new, |rule| rule.shown_name().to_owned()),
    }
}

/// A single zone from the first slot to the limit is none at all: the search may then begin anywhere.
fn zones(judged: &decision::Claim<'_>, limit: u64) -> Vec<std::ops::RangeInclusive<u64>> {
    match judged.zones.as_slice() {
        [zone] if zone.first == 1 && u64::from(zone.last) >= limit => Vec::new(),
        zones => zones.iter().map(|zone| u64::from(zone.first)..=u64::from(zone.last)).collect(),
    }
}
