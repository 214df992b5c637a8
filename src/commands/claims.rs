//! From the claims of a decision to claims on lock files: the one place where the words of judgement become those of
//! mechanism.

use std::path::Path;

use crate::{
    decision::{self, Demand},
    policy::{self, EXPIRE_GRACE, ElapsedFrom, ExpireKill, Pace, TooSoon},
    repository::{
        claim::{self, Admit, Claim, Expiry, Pause},
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
    pub(super) fn of(demands: &'p [Demand<'p>], runtime: &Path) -> Self {
        let mut judged = Vec::new();
        let demands = demands
            .iter()
            .map(|demand| match demand {
                Demand::One(one) => {
                    judged.push(one);
                    claim::Demand::One(translate(one, runtime))
                }
                Demand::AnyOf(several) => {
                    judged.extend(several);
                    claim::Demand::AnyOf(several.iter().map(|one| translate(one, runtime)).collect())
                }
            })
            .collect();
        Self { demands, judged }
    }
}

fn translate(judged: &decision::Claim<'_>, runtime: &Path) -> Claim {
    let limit = u64::from(judged.effective_limit());
    Claim {
        name: judged.repository.shown_name().to_owned(),
        path: judged.path.clone(),
        creation: Creation {
            base: judged.base.clone(),
            create_base: judged.create_base,
            private: judged.base.starts_with(runtime).then(|| runtime.to_owned()),
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
        pause: pause(judged.repository.pace()),
        expiry: expiry(judged.repository.pace()),
        rule: judged.rules.first().map_or_else(String::new, |rule| rule.shown_name().to_owned()),
    }
}

fn pause(pace: &Pace) -> Option<Pause> {
    Some(Pause {
        length: pace.if_elapsed?,
        from_end: pace.if_elapsed_from == ElapsedFrom::End,
        silent: pace.too_soon == TooSoon::Ok,
    })
}

/// When and how a holder of a repository is ended.
pub(super) fn expiry(pace: &Pace) -> Option<Expiry> {
    Some(Expiry {
        after: pace.expire_after?,
        grace: pace.expire_grace.unwrap_or(EXPIRE_GRACE),
        group: pace.expire_kill == ExpireKill::Group,
    })
}

/// A single zone from the first slot to the limit is none at all: the search may then begin anywhere. Without any zone
/// everything is kept for others, which is something else.
fn zones(judged: &decision::Claim<'_>, limit: u64) -> Option<Vec<std::ops::RangeInclusive<u64>>> {
    match judged.zones.as_slice() {
        [zone] if zone.first == 1 && u64::from(zone.last) >= limit => None,
        zones => Some(zones.iter().map(|zone| u64::from(zone.first)..=u64::from(zone.last)).collect()),
    }
}
