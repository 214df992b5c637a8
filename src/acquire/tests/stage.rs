//! Tables in memory, those who use them already, and launches.

use std::{
    cell::{Cell, RefCell},
    ops::RangeInclusive,
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime},
};

use crate::{
    acquire::{
        AcquireContext, Acquisition, Alternative, Blocked, Clock, Decided, DryRun, Grant, Outcome,
        QueuePosition, Reason, Refusal, Refused, Room, Unmet, Wants, dry_run::outlook, waiting::acquire,
    },
    judge::terms::{
        Admit, Amount, Claim, Demand, ElapsedFrom, Hold, Launch, Location, Nested, Origin, Pace, Pause,
        Place, Queue, Reserved, Setting, Slots, TooSoon, Wait,
    },
    keeper::{BaseDirectories, Class, Keepers, Number, PATIENCE, Store, memory},
    sys::Inherited,
    text::SourceText,
};

/// The generation of the policy in force.
pub(super) const GENERATION: u16 = 7;

/// What is there when a launch comes.
pub(in crate::acquire) struct Tables {
    pub(super) store: Store,
    pub(super) now: SystemTime,
    others: Vec<memory::Held>,
    pub(super) line: Vec<memory::Place>,
    inherited: Inherited,
}

/// Nothing yet.
pub(in crate::acquire) fn tables() -> Tables {
    Tables {
        store: Store::default(),
        now: SystemTime::now(),
        others: Vec::new(),
        line: Vec::new(),
        inherited: Inherited::default(),
    }
}

impl Tables {
    /// Others hold these slots.
    pub(super) fn held(mut self, name: &str, slots: RangeInclusive<u64>) -> Self {
        self.others.extend(self.store.table(name).take(&slots.collect::<Vec<_>>()));
        self
    }

    /// A launch with this number and capacity waits, by the policy of this generation.
    pub(super) fn waiting(mut self, name: &str, number: u64, generation: u16, capacity: u64) -> Self {
        let mut place = self.store.table(name).take_place(Number(number)).expect("a number of its own");
        place.stand(&[Class { generation, capacity }]);
        self.line.push(place);
        self
    }

    /// The last of them also waits as another class.
    pub(super) fn also(mut self, generation: u16, capacity: u64) -> Self {
        let place = self.line.last_mut().expect("a launch that waits");
        let classes = [place.classes(), &[Class { generation, capacity }]].concat();
        place.stand(&classes);
        self
    }

    /// The last start was so many seconds ago.
    pub(super) fn started(self, name: &str, ago: u64) -> Self {
        self.store.table(name).started(&[], self.now - Duration::from_secs(ago));
        self
    }

    /// The last end was so many seconds ago.
    pub(super) fn ended(self, name: &str, ago: u64) -> Self {
        self.store.table(name).ended(self.now - Duration::from_secs(ago));
        self
    }

    pub(in crate::acquire) fn asks<T>(&self, ask: impl FnOnce(&AcquireContext<'_>) -> T) -> T {
        self.asks_and_ends(ask).0
    }

    /// The same, with the processes that were to be ended for the launch.
    pub(super) fn asks_and_ends<T>(&self, ask: impl FnOnce(&AcquireContext<'_>) -> T) -> (T, Vec<i32>) {
        let ended = RefCell::new(Vec::new());
        let launch =
            Launch { command: "matlab", host: "ws1", uid: 1000, ancestors: &[], hold: Hold::Process };
        let keepers = Keepers { inherited: &self.inherited, memory: self.store.clone() };
        let answer = ask(&AcquireContext {
            launch,
            keepers,
            generation: GENERATION,
            on_expired: &|_, overdue, _| ended.borrow_mut().push(overdue.pid),
            clock: Clock::default(),
        });
        (answer, ended.into_inner())
    }

    /// What is foreseen.
    pub(super) fn outlook<'c>(&self, demands: &'c [Demand]) -> DryRun<'c> {
        self.asks(|asker| outlook(demands, asker))
    }

    /// What a launch gets that looks once, and looks at nobody in the queue a second time.
    pub(super) fn attempt<'c>(&self, demands: &'c [Demand]) -> Result<Grant<'c>, Blocked<'c>> {
        self.asks(|asker| {
            let mut acquisition = Acquisition::open(demands, asker, &[]).expect("tables in memory");
            let position = QueuePosition::newcomer(asker.generation, None);
            match acquisition.attempt(position, PATIENCE).expect("tables in memory").0 {
                Decided::Granted(grant) => Ok(grant),
                Decided::Blocked(blocked) => Err(blocked),
            }
        })
    }

    /// What it gets in the end.
    pub(super) fn acquire<'c>(&self, demands: &'c [Demand]) -> Result<Grant<'c>, Refusal<'c>> {
        match self.asks(|asker| acquire(demands, asker)).expect("tables in memory") {
            Outcome::Granted(grant) => Ok(grant),
            Outcome::Refused(refusal) => Err(refusal),
            Outcome::Interrupted => panic!("nobody watches"),
        }
    }

    /// Compares what it gets with a line of words, and with what was foreseen.
    #[track_caller]
    pub(super) fn gives(&self, demands: &[Demand], expected: &str) {
        let foreseen = self.outlook(demands).refusal.expect("tables in memory");
        let got = if self.line.is_empty() {
            self.acquire(demands).map_err(|refusal| shown(&refusal))
        } else {
            let refusal = |blocked: Blocked<'_>| shown(&Refusal { unmet: blocked.unmet, waited: None });
            self.attempt(demands).map_err(refusal)
        };
        let refused = got.as_ref().err().cloned();
        assert_eq!(got.map_or_else(|refused| refused, |grant| granted(&grant)), expected);
        assert_eq!(foreseen.as_ref().map(shown), refused, "what was foreseen");
    }

    /// Compares the room that each claim finds.
    #[track_caller]
    pub(super) fn finds(&self, demands: &[Demand], expected: &[Room]) {
        let prospects = self.outlook(demands).prospects.into_iter();
        let rooms: Vec<Room> =
            prospects.filter_map(|prospect| prospect.found.expect("a table").room).collect();
        assert_eq!(rooms, expected);
    }

    /// How many slots are held.
    pub(super) fn used(&self, name: &str) -> u64 {
        self.store.table(name).occupancy().held()
    }

    /// How often tables are opened for these demands.
    pub(super) fn opened(&self, demands: &[Demand]) -> (usize, usize) {
        let count = Cell::new(0);
        self.asks(|asker| {
            let wants = Wants::open(demands, |claim| {
                count.set(count.get() + 1);
                asker.keepers.open(claim, &asker.launch, &BaseDirectories::default())
            });
            (count.get(), wants.expect("tables in memory").tables.len())
        })
    }
}

/// `seats 4,5, gpus 1`, with `(sync unenforced)` for what need not be available.
pub(super) fn granted(grant: &Grant<'_>) -> String {
    let slots = grant.slots().iter().map(|named| format!("{} {}", named.name, named.slots));
    let unenforced = grant.unenforced().iter().map(|claim| format!("({} unenforced)", claim.repository));
    slots.chain(unenforced).collect::<Vec<_>>().join(", ")
}

/// `75: seats full or gpus too soon; licences never`.
pub(super) fn shown(refusal: &Refusal<'_>) -> String {
    let why = |refused: &Refused<'_>| {
        let reason = match &refused.reason {
            Reason::Never => "never",
            Reason::TooSoon { .. } => "too soon",
            Reason::Full(full) if full.is_behind => "behind",
            Reason::Full(_) => "full",
        };
        format!("{} {reason}", refused.claim.repository)
    };
    let unmet = |unmet: &Unmet<'_>| {
        let together = |alternative: &Alternative<'_>| {
            alternative.refused.iter().map(why).collect::<Vec<_>>().join(" and ")
        };
        unmet.alternatives.iter().map(together).collect::<Vec<_>>().join(" or ")
    };
    let all: Vec<String> = refusal.unmet.iter().map(unmet).collect();
    format!("{}: {}", refusal.status() as u8, all.join("; "))
}

/// One slot of so many, for which it waits until it is its turn.
pub(in crate::acquire) fn claim(name: &'static str, limit: u64) -> Claim {
    Claim {
        repository: name.into(),
        member: Vec::new(),
        origins: vec![Origin::outside_the_policy("--limit")],
        location: Location::Memory(name.to_owned()),
        amount: Amount::plain(Slots::Number(1), limit),
        limit_of: None,
        kept: Vec::new(),
        reserved: Reserved::default(),
        names: Arc::default(),
        out_of_order: Vec::new(),
        pace: Pace::default(),
        nested: Nested::Take,
        wait: Setting { bound: None, default: Some(Wait::Forever) },
        queue: Queue::default(),
        unclear: None,
        outside: None,
    }
}

/// Changes to a claim.
pub(super) trait But: Sized {
    fn slots(self, slots: u32) -> Self;
    fn all(self) -> Self;
    fn ceiling(self, ceiling: u64) -> Self;
    fn zones(self, zones: &[RangeInclusive<u64>]) -> Self;
    fn admit(self, admit: Admit) -> Self;
    /// A pause of so many seconds.
    fn pause(self, length: u64, from: ElapsedFrom, too_soon: TooSoon) -> Self;
    /// Another repository's name, and the same table.
    fn called(self, name: &'static str) -> Self;
    /// By a rule of the policy.
    fn by_a_rule(self) -> Self;
    /// Waited for so many milliseconds.
    fn waits(self, milliseconds: u64) -> Self;
    /// In a line that ends behind so many.
    fn queue(self, most: u32) -> Self;
    fn not_again_within(self, length: u64) -> Self {
        self.pause(length, ElapsedFrom::Start, TooSoon::Refuse)
    }
    fn silently_not_within(self, length: u64) -> Self {
        self.pause(length, ElapsedFrom::Start, TooSoon::Ok)
    }
    fn unenforced(self) -> Self {
        self.admit(Admit::Unenforced)
    }
}

impl But for Claim {
    fn slots(mut self, slots: u32) -> Self {
        self.amount.slots = Slots::Number(slots);
        self
    }

    fn all(mut self) -> Self {
        self.amount.slots = Slots::All;
        self
    }

    fn ceiling(mut self, ceiling: u64) -> Self {
        self.amount.ceiling = Some(ceiling);
        self
    }

    fn zones(mut self, zones: &[RangeInclusive<u64>]) -> Self {
        self.amount.zones = zones.to_vec();
        self
    }

    fn admit(mut self, admit: Admit) -> Self {
        self.amount.admit = admit;
        self
    }

    fn pause(mut self, length: u64, from: ElapsedFrom, too_soon: TooSoon) -> Self {
        self.pace.pause = Some(Pause { length: Duration::from_secs(length), from, too_soon });
        self
    }

    fn called(mut self, name: &'static str) -> Self {
        self.repository = name.into();
        self
    }

    fn waits(mut self, milliseconds: u64) -> Self {
        self.wait.bound = Some(Wait::For(Duration::from_millis(milliseconds)));
        self
    }

    fn queue(mut self, most: u32) -> Self {
        self.queue.most = Some(most);
        self
    }

    fn by_a_rule(mut self) -> Self {
        static PLACE: LazyLock<Place> =
            LazyLock::new(|| Place::new(&SourceText::new("/p.toml", "[[rule]]").into(), 0));
        self.origins =
            vec![Origin { rule: "seats".into(), place: Some(PLACE.clone()), message: None, contact: None }];
        self
    }
}

/// This must be available.
pub(super) fn one(claim: Claim) -> Demand {
    Demand::One(claim)
}

/// One of these must be available.
pub(super) fn any_of<const N: usize>(claims: [Claim; N]) -> Demand {
    Demand::AnyOf(claims.into_iter().map(|claim| vec![claim]).collect())
}

/// One of these lists must be available as a whole.
pub(super) fn any_list_of<const N: usize>(lists: [Vec<Claim>; N]) -> Demand {
    Demand::AnyOf(lists.into())
}
