//! How long launches waited for repositories, as far as the log tells.

use std::{cell::RefCell, collections::BTreeMap};

use crate::{
    cli::Span,
    launch::{log::event::Event, situation::Situation},
    tools::logs::{
        reading::{self, single_tables},
        statistics::{
            distribution::Distribution,
            fate::Fate,
            joiner::{Joiner, Launched, Reading, Run, Sink},
        },
    },
};

/// How far back the log counts: what was long ago says little about today.
const DAYS: u32 = 30;

/// The waits of the last days.
pub(super) struct Past {
    /// By repository.
    pub(super) waits: BTreeMap<String, Waits>,
    /// Why the log tells nothing.
    pub(super) failure: Option<String>,
}

/// The waits for one repository.
#[derive(Default)]
pub(super) struct Waits {
    /// Of those that started.
    pub(super) took: Distribution,
    /// How many gave up.
    pub(super) gave_up: u64,
}

impl Past {
    pub(super) const DAYS: u32 = DAYS;

    /// What the log of the policy tells.
    pub(super) fn of_policy(situation: &Situation) -> Self {
        let tables = match situation.load_silently() {
            Ok(policy) => Reading { is_by_host: false, single: single_tables(&policy) },
            Err(_) => Reading::default(),
        };
        let span = Span { since: Some(format!("{DAYS}d")), until: None };
        let joiner = RefCell::new((Joiner::new(tables), Self { waits: BTreeMap::new(), failure: None }));
        let read = reading::each_of(situation, &[], &span, &mut |event| {
            let (joiner, past) = &mut *joiner.borrow_mut();
            joiner.see(event, past)
        });
        let (joiner, mut past) = joiner.into_inner();
        joiner.finish(&mut past);
        past.failure = read.err().map(|error| error.what().to_owned());
        past
    }
}

impl Sink for Past {
    fn launched(&mut self, launch: &Launched<'_>) {
        match launch.fate {
            Fate::Waited => {
                for taken in launch.taken {
                    self.waits.entry(taken.repository.to_owned()).or_default().took.add(launch.wait());
                }
            }
            Fate::TimedOut => {
                for name in launch.event.names_of_repositories() {
                    self.waits.entry(name.to_owned()).or_default().gave_up += 1;
                }
            }
            Fate::AtOnce | Fate::Refused => {}
        }
    }

    fn freed(&mut self, _table: u32, _repository: &str, _at: u64) {}

    fn ended(&mut self, _run: &Run) {}

    fn noted(&mut self, _event: &Event, _at: u64) {}
}
