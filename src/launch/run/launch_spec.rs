//! What a launch requests after judgement: its claims, how long it may wait, and what keeps its slots. The
//! command line replaces the waits of the policy, up to `max_wait`. It never weakens the hold that a rule or
//! a repository requires.

use std::path::Path;

use super::launch_options::LaunchOptions;
use crate::{
    acquire::{AcquireContext, Refusal},
    judge::{
        Start,
        terms::{Admit, Amount, Claim, Creation, Demand, FileLocation, Hold, Nested, Slots},
    },
    launch::Situation,
    policy::Wait,
    sys::regular_file,
};

/// What a launch asks for.
pub(crate) struct LaunchSpec {
    /// Claims of the agent come first, and those of the command line last.
    pub(crate) demands: Vec<Demand>,
    pub(crate) hold: Hold,
    /// How long the whole launch may wait, if the command line says so.
    pub(crate) longest: Option<Wait>,
}

impl LaunchSpec {
    /// What a start depends on, with what the command line adds.
    pub(crate) fn of(start: Start<'_>, options: &LaunchOptions, situation: &Situation) -> Self {
        let mut demands = start.demands;
        demands.extend(claim(options, situation).map(Demand::One));
        if options.wait.is_some() {
            for demand in &mut demands {
                demand.claims_mut().for_each(|claim| claim.wait = claim.wait.with(options.wait));
            }
        }
        if demands.iter().any(Demand::is_of_agent) {
            // It is asked first.
            demands.sort_by_key(|demand| !demand.is_of_agent());
        }
        Self { demands, hold: start.hold.with(options.hold).resolve(), longest: options.wait }
    }

    /// Claims of the agent, and of lock files.
    pub(crate) fn by_keeper(&self) -> (&[Demand], &[Demand]) {
        self.demands.split_at(self.demands.partition_point(Demand::is_of_agent))
    }

    pub(crate) fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.demands.iter().flat_map(Demand::claims)
    }

    /// The claims that had room when others were refused, as far as the refusal shows. The agent is asked
    /// before anything else is checked, and slots of an ancestor need no room.
    pub(crate) fn met(&self, refusal: &Refusal<'_>, asker: &AcquireContext<'_>) -> Vec<&Claim> {
        if !asker.launch.ancestors.is_empty() || self.demands.iter().any(Demand::is_of_agent) {
            return Vec::new();
        }
        let had_room = |demand: &'_ Demand| match demand {
            Demand::One(claim) if claim.amount.admit == Admit::WithinLimit => {
                !refusal.claims().any(|refused| std::ptr::eq(refused.claim, claim))
            }
            Demand::One(_) | Demand::AnyOf(_) => false,
        };
        self.demands.iter().filter(|demand| had_room(demand)).flat_map(Demand::claims).collect()
    }

    /// Whether the launch waits for anything.
    pub(crate) fn may_wait(&self) -> bool {
        self.claims().any(|claim| claim.wait.resolve() != Wait::NONE)
    }
}

// `rungate run --limit`: a limit of the launch itself. Rules of a policy that match it apply as well.

/// The claim of `--limit`. Without `--repository` the lock file is the caller's own, and named after
/// the command as rules see it.
pub(super) fn claim(options: &LaunchOptions, situation: &Situation) -> Option<Claim> {
    let cap = options.cap.as_ref()?;
    let location = match &cap.repository {
        Some(file) => FileLocation::named(situation.directory.join(file), regular_file::mode_for_new_files()),
        None => {
            let typed = options.name_for_rules();
            let name = Path::new(typed).file_name().unwrap_or(typed).to_string_lossy().into_owned();
            let base = situation.runtime.clone();
            FileLocation {
                path: base.join(format!("{name}.lock")),
                owner: None,
                creation: Creation {
                    private: Some(base.clone()),
                    base,
                    create_base: true,
                    file_mode: 0o600,
                    directory_mode: 0o700,
                    by_hand: false,
                },
            }
        }
    };
    let slots = Slots::Number(cap.slots.unwrap_or(1));
    let amount = Amount::plain(slots, cap.limit.into());
    Some(Claim { nested: Nested::Join, ..Claim::outside_the_policy(location, amount, "--limit") })
}
