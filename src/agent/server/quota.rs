//! What each user uses of the agent, counted continuously, so that a check costs nothing. Root has no quota.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use crate::{agent::ledger::holding::Holding, judge::terms::Hold, policy::AgentLimits};

/// The quota that a user has exhausted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::agent) enum Quota {
    Connections,
    Launches,
    Slots,
    Places,
    Members,
    Descriptors,
    Memory,
}

impl fmt::Display for Quota {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, where_from) = match self {
            Self::Connections => ("too many launches of this user are connected", "[agent] connections"),
            Self::Launches => ("too many launches of this user have slots", "[agent] launches"),
            Self::Slots => ("this user would have too many slots", "[agent] slots"),
            Self::Places => ("this user would have too many positions in queues", "[agent] places"),
            Self::Members => ("this user would have too many tables", "[agent] members"),
            Self::Descriptors => {
                return formatter.write_str(
                    "too many launches of this user are connected or have slots: the agent may not open \
                        more descriptors (LimitNOFILE)",
                );
            }
            Self::Memory => {
                return formatter.write_str("the requests of this user take too much memory");
            }
        };
        write!(formatter, "{what} ({where_from} in /etc/rungate/agent.toml)")
    }
}

/// The usage of one user, or of one connection or holding.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::agent) struct Share {
    pub(super) connections: usize,
    pub(super) launches: usize,
    pub(super) slots: usize,
    pub(super) descriptors: usize,
    /// Places in lines.
    pub(super) places: usize,
    /// Bytes of unanswered requests.
    pub(super) bytes: usize,
    /// Bytes of unread answers.
    pub(super) owed: usize,
    /// Bytes of memory of a request that may have to be judged again, and of the evictions for it.
    pub(super) question: usize,
}

impl Share {
    /// For a holder of slots: a process, and a FIFO if it has one.
    pub(in crate::agent) fn of(holding: &Holding) -> Self {
        let own = holding.saved.tables.iter().filter(|table| !table.is_shared);
        Self {
            launches: 1,
            slots: own.map(|table| table.slots.len()).sum(),
            descriptors: 1 + usize::from(holding.saved.hold > Hold::Process),
            ..Self::default()
        }
    }

    /// For FIFOs of scripts that keep no slots yet.
    pub(in crate::agent) fn of_unused(fifos: usize) -> Self {
        Self { descriptors: fifos, ..Self::default() }
    }

    /// Replaces the previous count by this one.
    fn change(&mut self, before: Self, now: Self) {
        let change = |has: &mut usize, before: usize, now: usize| {
            *has = has.saturating_sub(before).saturating_add(now);
        };
        change(&mut self.connections, before.connections, now.connections);
        change(&mut self.launches, before.launches, now.launches);
        change(&mut self.slots, before.slots, now.slots);
        change(&mut self.descriptors, before.descriptors, now.descriptors);
        change(&mut self.places, before.places, now.places);
        change(&mut self.bytes, before.bytes, now.bytes);
        change(&mut self.owed, before.owed, now.owed);
        change(&mut self.question, before.question, now.question);
    }

    fn memory(&self) -> usize {
        self.bytes.saturating_add(self.owed).saturating_add(self.question)
    }
}

/// All users.
#[derive(Debug)]
pub(in crate::agent) struct Quotas {
    limits: AgentLimits,
    /// The maximum number of descriptors.
    descriptors: usize,
    users: BTreeMap<u32, Share>,
    /// The usage of all users.
    all: Share,
    declined: Cell<u64>,
}

/// How many messages of full length may be kept for the connections of one user.
const MOST_MESSAGES: usize = 16;

/// Bytes of unread answers beyond which a user's next requests are not read.
const MOST_OWED: usize = 1024 * 1024;

/// How soon this is checked again.
const UNTIL_READ: Duration = Duration::from_millis(50);

/// Bytes that may be kept for the connections of all users.
const MEMORY: usize = 48 * 1024 * 1024;

/// One user may use at most this share of what the others leave. So something is left for them: after one
/// user at least four fifths.
const PART: usize = 4;

/// Descriptors reserved for files, judges and the site.
const OWN_DESCRIPTORS: usize = 64;

impl Quotas {
    /// For a process with this maximum number of descriptors.
    pub(in crate::agent) fn new(limits: AgentLimits, descriptors: usize) -> Self {
        // If there are very few, it reserves fewer.
        let own = OWN_DESCRIPTORS.min(descriptors / 2);
        Self {
            limits,
            descriptors: descriptors.saturating_sub(own),
            users: BTreeMap::new(),
            all: Share::default(),
            declined: Cell::new(0),
        }
    }

    /// Declines a question. Says why.
    pub(in crate::agent) fn decline(&self, quota: Quota) -> String {
        self.declined.set(self.declined.get().saturating_add(1));
        quota.to_string()
    }

    /// How many questions were declined.
    pub(super) fn declined(&self) -> u64 {
        self.declined.get()
    }

    /// How many launches wait.
    pub(super) fn waiting(&self) -> usize {
        self.all.places
    }

    /// How many launches hold slots.
    pub(super) fn holding(&self) -> usize {
        self.all.launches
    }

    /// The maximum.
    pub(in crate::agent) fn limits(&self) -> &AgentLimits {
        &self.limits
    }

    /// Whether a user is below the quota of a shared resource of this size.
    fn check_part(
        &self,
        uid: u32,
        of: usize,
        has: impl Fn(&Share) -> usize,
        quota: Quota,
    ) -> Result<(), Quota> {
        let left = of.saturating_sub(has(&self.all));
        let is_over = uid != 0 && self.users.get(&uid).map_or(0, has) >= left / PART;
        if is_over { Err(quota) } else { Ok(()) }
    }

    fn check(
        &self,
        uid: u32,
        has: impl Fn(&Share) -> usize,
        more: usize,
        most: u32,
        quota: Quota,
    ) -> Result<(), Quota> {
        let has = self.users.get(&uid).map_or(0, has);
        let is_over = uid != 0 && has.saturating_add(more) > count(most);
        if is_over { Err(quota) } else { Ok(()) }
    }

    /// Replaces the counted usage of a user; a user without any is forgotten.
    pub(in crate::agent) fn change(&mut self, uid: u32, before: Share, now: Share) {
        if before == now {
            return;
        }
        self.all.change(before, now);
        let share = self.users.entry(uid).or_default();
        share.change(before, now);
        if *share == Share::default() {
            self.users.remove(&uid);
        }
    }

    /// Whether a user may have one more connection.
    pub(super) fn may_connect(&self, uid: u32) -> Result<(), Quota> {
        self.check(uid, |share| share.connections, 1, self.limits.connections, Quota::Connections)?;
        self.may_open(uid)
    }

    /// Whether the agent may open one more descriptor for a user.
    pub(in crate::agent) fn may_open(&self, uid: u32) -> Result<(), Quota> {
        self.check_part(uid, self.descriptors, |share| share.descriptors, Quota::Descriptors)
    }

    /// Whether a user may also have these slots.
    pub(in crate::agent) fn may_have(&self, holding: &Holding) -> Result<(), Quota> {
        let uid = holding.saved.uid;
        self.check(uid, |share| share.slots, Share::of(holding).slots, self.limits.slots, Quota::Slots)
    }

    /// Whether a user may have one more launch with slots.
    pub(in crate::agent) fn may_launch(&self, uid: u32) -> Result<(), Quota> {
        self.check(uid, |share| share.launches, 1, self.limits.launches, Quota::Launches)?;
        self.may_open(uid)
    }

    /// Whether a user who has `has` tables may have `more` of them.
    pub(in crate::agent) fn may_have_tables(&self, uid: u32, has: usize, more: usize) -> Result<(), Quota> {
        let is_over = uid != 0 && self.are_too_many_tables(has, more);
        if is_over { Err(Quota::Members) } else { Ok(()) }
    }

    /// Whether this many more tables exceed the quota of any user.
    pub(in crate::agent) fn are_too_many_tables(&self, has: usize, more: usize) -> bool {
        more > 0 && has.saturating_add(more) > count(self.limits.members)
    }

    /// Whether any launch waits in a queue.
    pub(in crate::agent) fn somebody_waits(&self) -> bool {
        self.all.places > 0
    }

    /// Whether a user is within the quota of positions.
    pub(super) fn check_places(&self, uid: u32) -> Result<(), Quota> {
        self.check(uid, |share| share.places, 0, self.limits.places, Quota::Places)
    }

    /// Until when a connection is not read that was too fast, or whose user has unread answers; none if it
    /// may continue.
    pub(in crate::agent) fn pause(&self, uid: u32, rate: Rate) -> Option<Instant> {
        let owed = self.users.get(&uid).map_or(0, |share| share.owed);
        match uid {
            0 => None,
            _ if owed > MOST_OWED => Instant::now().checked_add(UNTIL_READ),
            _ => rate.pause(self.limits.rate),
        }
    }

    /// Whether the pending requests of a user could leave others short of memory.
    pub(in crate::agent) fn has_said_too_much(&self, uid: u32) -> bool {
        let bytes = self.users.get(&uid).map_or(0, |share| share.bytes);
        uid != 0 && bytes > MOST_MESSAGES * count(self.limits.message)
    }

    /// Whether the requests of a user may be kept until they are answered.
    pub(in crate::agent) fn may_ask(&self, uid: u32) -> Result<(), Quota> {
        self.check_part(uid, MEMORY, Share::memory, Quota::Memory)
    }
}

/// As a number.
pub(in crate::agent) fn count(limit: u32) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// How many messages may come at once after a silence.
const BURST: u32 = 50;

/// The recent rate of one connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::agent) struct Rate {
    /// When a client at the maximum rate would have sent all of it.
    said: Instant,
}

impl Rate {
    /// For a new connection.
    pub(in crate::agent) fn new() -> Self {
        Self { said: Instant::now() }
    }

    /// One message more.
    pub(in crate::agent) fn say(&mut self, a_second: u32) {
        self.said = self.said.max(Instant::now()) + each(a_second);
    }

    /// Until when it is not read; none if it may continue.
    pub(in crate::agent) fn pause(&self, a_second: u32) -> Option<Instant> {
        let until = self.said.checked_sub(each(a_second) * BURST)?;
        (until > Instant::now()).then_some(until)
    }
}

fn each(a_second: u32) -> Duration {
    Duration::from_secs(1) / a_second.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{
        ledger::state::{SavedHolding, SavedSlots},
        tests::{holding, saved, slots},
    };

    #[test]
    fn whoever_says_much_at_once_is_heard_again_when_others_would_have_said_as_much() {
        let mut rate = Rate::new();
        for _ in 0..=BURST {
            assert_eq!(rate.pause(1), None);
            rate.say(1);
        }
        let until = rate.pause(1).expect("a pause");
        assert!(until <= Instant::now() + Duration::from_secs(1));
        rate.say(1);
        assert_eq!(rate.pause(1), Some(until + Duration::from_secs(1)));
    }

    const USER: u32 = 1000;
    const OTHER: u32 = 1001;

    /// Quotas under which these users have something.
    fn in_use(limits: AgentLimits, descriptors: usize, has: &[(u32, Share)]) -> Quotas {
        let mut quotas = Quotas::new(limits, descriptors);
        for (uid, share) in has {
            quotas.change(*uid, Share::default(), *share);
        }
        quotas
    }

    /// A user may have as much as the settings say, and no more. Root may have more of everything.
    #[test]
    fn a_user_has_as_much_as_the_settings_say() {
        let limits =
            AgentLimits { connections: 2, launches: 3, places: 4, members: 5, ..AgentLimits::default() };
        let with = |connections, launches, places| {
            let share = Share { connections, launches, places, ..Share::default() };
            in_use(limits, 1000, &[(USER, share), (0, share)])
        };
        let (fits, full) = (with(1, 2, 4), with(2, 3, 5));
        assert_eq!((fits.may_connect(USER), full.may_connect(USER)), (Ok(()), Err(Quota::Connections)));
        assert_eq!((fits.may_launch(USER), full.may_launch(USER)), (Ok(()), Err(Quota::Launches)));
        assert_eq!((fits.check_places(USER), full.check_places(USER)), (Ok(()), Err(Quota::Places)));
        assert_eq!((full.may_connect(0), full.may_launch(0), full.check_places(0)), (Ok(()), Ok(()), Ok(())));
        assert_eq!((full.may_connect(OTHER), full.may_launch(OTHER)), (Ok(()), Ok(())));
        assert_eq!((fits.may_have_tables(USER, 4, 1), fits.may_have_tables(0, 5, 1)), (Ok(()), Ok(())));
        assert_eq!(fits.may_have_tables(USER, 4, 2), Err(Quota::Members));
        assert!(!fits.are_too_many_tables(6, 0), "no table more");
        let strictest = AgentLimits { connections: 1, launches: 1, ..AgentLimits::default() };
        let unused = in_use(strictest, 1000, &[]);
        assert_eq!((unused.may_connect(USER), unused.may_launch(USER)), (Ok(()), Ok(())));
    }

    /// One user may use a quarter of the descriptors that all users leave. Some are reserved for the agent.
    #[test]
    fn a_user_has_a_quarter_of_the_descriptors_that_are_left() {
        let of = |descriptors| Share { descriptors, ..Share::default() };
        let most = 1000 + OWN_DESCRIPTORS;
        for (has, other, may_open) in [(199, 1, true), (200, 0, false), (159, 200, true), (160, 200, false)] {
            let quotas = in_use(AgentLimits::default(), most, &[(USER, of(has)), (OTHER, of(other))]);
            assert_eq!(quotas.may_open(USER).is_ok(), may_open, "{has}, and another user {other}");
        }
        let few = in_use(AgentLimits::default(), 8, &[]);
        assert_eq!(few.may_open(USER), Ok(()), "there is one for a user who has none");
        // An agent that may open few of them reserves half.
        for (has, may_open) in [(9, true), (10, false)] {
            let quotas = in_use(AgentLimits::default(), 100, &[(USER, of(has))]);
            assert_eq!(quotas.may_open(USER).is_ok(), may_open, "{has}");
        }
    }

    /// One user may use a quarter of the memory that all users leave: by requests, and by unread answers.
    #[test]
    fn a_user_has_a_quarter_of_the_memory_that_is_left() {
        const PART_OF_ALL: usize = MEMORY / 15;
        for (bytes, owed, question) in [(1, 1, 1), (3, 0, 0), (0, 3, 0), (0, 0, 3)] {
            let of = |part: usize| {
                let [bytes, owed, question] = [bytes, owed, question].map(|parts| parts * part);
                Share { bytes, owed, question, ..Share::default() }
            };
            let [little, much] = [of(PART_OF_ALL - 4096), of(PART_OF_ALL)];
            let quotas = in_use(AgentLimits::default(), 1000, &[(USER, little)]);
            assert_eq!(quotas.may_ask(USER), Ok(()));
            let quotas = in_use(AgentLimits::default(), 1000, &[(USER, much), (0, much)]);
            assert_eq!((quotas.may_ask(USER), quotas.may_ask(0)), (Err(Quota::Memory), Ok(())));
        }
    }

    /// A user who has too many unread answers is not read for a while, and one who has said too much is cut
    /// off. Root is neither.
    #[test]
    fn a_user_who_leaves_too_much_unread_is_not_heard() {
        let limits = AgentLimits { message: 100, ..AgentLimits::default() };
        for (owed, bytes, is_too_much) in [(MOST_OWED, 1600, false), (MOST_OWED + 1, 1601, true)] {
            let share = Share { bytes, owed, ..Share::default() };
            let quotas = in_use(limits, 1000, &[(USER, share), (0, share)]);
            let is_paused = |uid| quotas.pause(uid, Rate::new()).is_some();
            assert_eq!((is_paused(USER), is_paused(0), is_paused(OTHER)), (is_too_much, false, false));
            let says_too_much = |uid| quotas.has_said_too_much(uid);
            assert_eq!((says_too_much(USER), says_too_much(0)), (is_too_much, false));
        }
    }

    /// A holder counts with its own slots, not with those of an ancestor, and with the descriptors of its
    /// process and its FIFO.
    #[test]
    fn a_holder_counts_with_its_own_slots() {
        for (hold, descriptors) in [(Hold::Process, 1), (Hold::Descriptor, 2), (Hold::Tree, 2)] {
            let shared = SavedSlots { is_shared: true, ..slots("other", vec![7]) };
            let tables = vec![slots("seats", vec![1, 4]), shared, slots("third", vec![2])];
            let saved = SavedHolding { tables, ..saved(1, hold) };
            let expected = Share { launches: 1, slots: 3, descriptors, ..Share::default() };
            assert_eq!(Share::of(&holding(saved, None)), expected);
        }
    }

    /// What a user has no more is not counted, and a user who has nothing is forgotten.
    #[test]
    fn what_is_given_back_is_not_counted() {
        let share = Share {
            connections: 1,
            launches: 2,
            slots: 3,
            descriptors: 4,
            places: 5,
            bytes: 6,
            owed: 7,
            question: 8,
        };
        let mut quotas = in_use(AgentLimits::default(), 1000, &[(USER, share), (OTHER, share)]);
        assert_eq!((quotas.waiting(), quotas.holding(), quotas.somebody_waits()), (10, 4, true));
        quotas.change(USER, share, Share { slots: 9, ..Share::default() });
        assert_eq!(quotas.users[&USER], Share { slots: 9, ..Share::default() });
        quotas.change(USER, Share { slots: 9, ..Share::default() }, Share::default());
        assert_eq!((quotas.users.contains_key(&USER), quotas.all), (false, share));
        quotas.change(OTHER, share, Share::default());
        assert_eq!((quotas.waiting(), quotas.holding(), quotas.somebody_waits()), (0, 0, false));
        assert_eq!(quotas.declined(), 0);
        quotas.decline(Quota::Slots);
        quotas.decline(Quota::Places);
        assert_eq!(quotas.declined(), 2);
    }
}
