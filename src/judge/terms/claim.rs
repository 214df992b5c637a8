//! What a launch wants of one repository. Code that carries out a claim need not know a policy: all values
//! are resolved here, and everything that messages show is part of the claim.

use std::{
    error::Error,
    fmt::{Display, Formatter},
    ops::RangeInclusive,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::{
    group::{Group, MOST_SHARED},
    keyword::{Admit, Hold, Keyword, Nested, Queue},
    location::{FileLocation, Location},
    outside::Outside,
    provenance::{self, Kept, Origin, Provenance},
    slots_wanted::{Amount, NamedSlots, Unclear, usable_slots},
    span_of_time::Wait,
};

/// A claim on one repository.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The repository's name, as messages and `RUNGATE_HELD` write it.
    pub repository: Arc<str>,
    /// The member of the table, one for each placeholder; empty if all share one.
    pub member: Vec<Member>,
    /// The rules behind it, the most binding first; never empty.
    pub origins: Vec<Origin>,
    /// Where the slots are kept.
    pub location: Location,
    /// How many.
    pub amount: Amount,
    /// Why the limit differs from that of all, if it does.
    pub limit_of: Option<Provenance>,
    /// Its slots that others may use, but not this launch.
    pub kept: Vec<Kept>,
    /// Which slots others have reserved.
    pub reserved: Reserved,
    /// The names of the slots, from the first on, if they have any.
    pub names: Arc<[String]>,
    /// Its slots that no launch gets, in ascending order.
    pub out_of_order: Vec<u32>,
    /// How use is known that rungate did not start, where it takes room.
    pub outside: Option<Outside>,
    /// When.
    pub pace: Pace,
    /// What a launch below a holder does.
    pub nested: Nested,
    /// How long it is waited for.
    pub wait: Setting<Wait>,
    /// The maximum length of its queue.
    pub queue: Queue,
    /// Why it can never be available, if the number of slots is unclear.
    pub unclear: Option<Unclear>,
}

/// Slots that are reserved for others than the claimant.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reserved {
    /// Those that others may not use.
    pub kept: Vec<RangeInclusive<u64>>,
    /// Those that others may borrow.
    pub lent: Vec<RangeInclusive<u64>>,
}

impl Claim {
    /// The rules behind it; none for one of the command line.
    pub fn rules(&self) -> impl Iterator<Item = &Origin> {
        self.origins.iter().filter(|origin| origin.place.is_some())
    }

    /// The name of the most binding rule behind it.
    pub fn rule(&self) -> &str {
        self.origins.first().map_or("", |origin| &origin.rule)
    }

    /// A claim on a lock file that no policy names. It is named after the file, and never shares a slot.
    pub fn outside_the_policy(file: FileLocation, amount: Amount, because: &str) -> Self {
        let name = file.path.file_stem().unwrap_or(file.path.as_os_str()).to_string_lossy();
        Self {
            repository: name.replace([' ', '=', ','], "_").into(),
            member: Vec::new(),
            origins: vec![Origin::outside_the_policy(because)],
            location: Location::File(file),
            amount,
            limit_of: None,
            kept: Vec::new(),
            reserved: Reserved::default(),
            names: Arc::default(),
            out_of_order: Vec::new(),
            outside: None,
            pace: Pace::default(),
            nested: Nested::Take,
            wait: Setting::default(),
            queue: Queue::default(),
            unclear: None,
        }
    }

    /// `seats-per-user [ann]`, `cache [ann, /opt/matlab/bin]`: for people.
    pub fn title(&self, names: &dyn Names) -> String {
        let member = self.member_name(names).map_or_else(String::new, |member| format!(" [{member}]"));
        format!("{}{member}", self.repository)
    }

    /// The member of the table, as tests and programs write it: `ann`, `cad`, `ann, ws17`. Names that cannot
    /// be found are numbers.
    pub fn member_name(&self, names: &dyn Names) -> Option<String> {
        (!self.member.is_empty()).then(|| shown(&self.member, names))
    }

    /// `limit of %power, 1 out of order`, if this launch's limit differs from that of all.
    pub fn reason_of_limit(&self) -> Option<String> {
        let binds = self.amount.effective_limit() >= self.amount.limit;
        let limit_of = self.limit_of.as_ref().map(Provenance::limit);
        provenance::reason(limit_of, self.out_of_order.len()).filter(|_| binds)
    }

    /// The pause that can refuse a launch.
    pub fn enforced_pause(&self) -> Option<Pause> {
        self.pace.pause.filter(|_| self.amount.admit != Admit::Unenforced)
    }
}

/// One thing that the launch needs to start.
#[derive(Clone, Debug)]
pub enum Demand {
    One(Claim),
    /// The first alternative that is completely available.
    AnyOf(Vec<Vec<Claim>>),
}

impl Demand {
    /// Whether the agent keeps what it asks for. Alternatives all have one keeper.
    pub fn is_of_agent(&self) -> bool {
        self.claims().any(|claim| matches!(claim.location, Location::Agent(_)))
    }

    /// Alternatives, in order of preference.
    pub fn alternatives(&self) -> impl Iterator<Item = &[Claim]> {
        let (only, several) = match self {
            Self::One(claim) => (Some(std::slice::from_ref(claim)), None),
            Self::AnyOf(alternatives) => (None, Some(alternatives)),
        };
        only.into_iter().chain(several.into_iter().flatten().map(Vec::as_slice))
    }

    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.alternatives().flatten()
    }

    /// Every claim, to be changed.
    pub fn claims_mut(&mut self) -> impl Iterator<Item = &mut Claim> {
        let (only, several) = match self {
            Self::One(claim) => (Some(claim), None),
            Self::AnyOf(alternatives) => (None, Some(alternatives)),
        };
        only.into_iter().chain(several.into_iter().flatten().flatten())
    }

    /// The same with its claims changed.
    #[must_use]
    pub fn map(self, change: impl Fn(Claim) -> Claim) -> Self {
        match self {
            Self::One(claim) => Self::One(change(claim)),
            Self::AnyOf(alternatives) => {
                let changed = |claims: Vec<Claim>| claims.into_iter().map(&change).collect();
                Self::AnyOf(alternatives.into_iter().map(changed).collect())
            }
        }
    }
}

// The claims of a launch on one table are one claim: the lowest limit, the most slots (not their sum), the
// zones that all of them allow.

/// The highest slot that has a byte of its own, and so the highest limit.
pub const LAST_SLOT: u64 = 1_048_575;

/// The terms on one table.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    /// How many slots may be held at once, this launch included.
    pub limit: u64,
    /// How many are wanted.
    pub slots: u64,
    /// Where they may be taken, in order of preference; anywhere within the limit if there are no
    /// reservations.
    pub zones: Option<Vec<RangeInclusive<u64>>>,
    /// The strictest.
    pub admit: Admit,
    /// The group whose slots count as this launch's own; none where the claims are of several.
    pub group: Option<Group>,
}

impl Terms {
    /// For claims on one table; none if there are no claims. A claim that is not enforced adds nothing to one
    /// that is.
    pub fn merge<'a>(amounts: impl IntoIterator<Item = &'a Amount, IntoIter: Clone>) -> Option<Self> {
        let amounts = amounts.into_iter();
        let enforced = amounts.clone().any(|amount| amount.admit != Admit::Unenforced);
        let count = amounts.filter(|amount| !enforced || amount.admit != Admit::Unenforced);
        count.map(Self::of).reduce(|mut terms, other| {
            terms.limit = terms.limit.min(other.limit);
            terms.slots = terms.slots.max(other.slots);
            terms.admit = terms.admit.min(other.admit);
            terms.zones = common(terms.zones.as_deref(), other.zones.as_deref());
            terms.group = terms.group.filter(|group| other.group.as_ref() == Some(group));
            terms
        })
    }

    fn of(amount: &Amount) -> Self {
        let limit = amount.effective_limit();
        let zones = amount.reserved_zones().map(<[_]>::to_vec);
        let slots = amount.slots.under(limit);
        let group = amount.group.clone().filter(|group| group.is_of_heirs() || slots <= MOST_SHARED);
        Self { limit, slots, zones, admit: amount.admit, group }
    }

    /// The same, if the group already has slots: only the difference is wanted.
    #[must_use]
    pub fn beyond(&self, shared: &[u64]) -> Self {
        Self { slots: self.slots.saturating_sub(shared.len() as u64), ..self.clone() }
    }

    /// How many slots there are for this launch at all. It counts in the queue: a launch that may not use
    /// reserved slots must not block launches that may.
    pub fn usable_slots(&self) -> u64 {
        self.zones.as_ref().map_or(self.limit, |zones| usable_slots(self.limit, zones))
    }

    /// The most slots that this launch can ever get. One that is always admitted also gets slots beyond the
    /// limit.
    pub fn attainable_slots(&self) -> u64 {
        match self.admit {
            Admit::Always => {
                let order = self.search_order(1).into_iter();
                order.map(|slots| slots.end().saturating_add(1).saturating_sub(*slots.start())).sum()
            }
            Admit::WithinLimit | Admit::Unenforced => self.usable_slots(),
        }
    }

    /// Whether this slot may be taken.
    pub fn allows(&self, slot: u64) -> bool {
        self.zones.as_ref().is_none_or(|zones| zones.iter().any(|zone| zone.contains(&slot)))
    }

    /// The slots to look at, in order, each once. A limit that is lower than the repository's says how many
    /// slots may be held, not which of them, so zones continue above it. `cursor` is where to begin if any
    /// slot will do.
    pub fn search_order(&self, cursor: u64) -> Vec<RangeInclusive<u64>> {
        let mut order: Vec<RangeInclusive<u64>> = match &self.zones {
            None => {
                let start = if (1..=self.limit).contains(&cursor) { cursor } else { 1 };
                vec![start..=self.limit, 1..=start.saturating_sub(1)]
            }
            Some(zones) => zones.clone(),
        };
        if self.admit == Admit::Always {
            let highest = order.iter().map(|range| *range.end()).max().unwrap_or(0);
            order.push(highest.max(self.limit).saturating_add(1)..=LAST_SLOT);
        }
        order
    }
}

/// The slots that both of two claims on one table may take, in the order of the first. Without reservations,
/// all may be taken.
pub fn common(
    first: Option<&[RangeInclusive<u64>]>,
    second: Option<&[RangeInclusive<u64>]>,
) -> Option<Vec<RangeInclusive<u64>>> {
    let (Some(first), Some(second)) = (first, second) else { return first.or(second).map(<[_]>::to_vec) };
    let within = |zone: &RangeInclusive<u64>, other: &RangeInclusive<u64>| {
        *zone.start().max(other.start())..=*zone.end().min(other.end())
    };
    let both = first.iter().flat_map(|zone| second.iter().map(move |other| within(zone, other)));
    Some(both.filter(|zone| !zone.is_empty()).collect())
}

// A wait or a hold as the policy defines it: the value that binds every launch, and the value that an option
// of the command line replaces. For a wait `max_wait` of the repository binds, and every `wait` is replaced
// by `-w`. For a hold, the values of rules and repositories bind, and only the default is replaced.

/// The values of the policy for a wait or a hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Setting<T> {
    /// The strictest value that binds.
    pub bound: Option<T>,
    /// The strictest value that the command line replaces, or the value of the command line.
    pub default: Option<T>,
}

impl<T> Setting<T> {
    /// The same, if the command line asks for `asked`.
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
    /// The wait that counts: none if neither the policy nor the command line names one.
    pub fn resolve(self) -> Wait {
        let wait = self.default.unwrap_or(Wait::NONE);
        self.bound.map_or(wait, |longest| wait.min(longest))
    }

    /// The longest wait that the policy allows, if that is less than the command line asks for.
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

// A launch, as the keepers of slots see it: the requesting process, and what must keep the slots.

/// The process that requests slots.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The command as typed, for the records.
    pub command: &'a str,
    /// The node name, for the records.
    pub host: &'a str,
    /// The real user.
    pub uid: u32,
    /// The environment's hint about slots that ancestors hold, which proves nothing.
    pub ancestors: &'a [NamedSlots],
    /// What has to keep the slots.
    pub hold: Hold,
}

// Too soon and too late: a pause between two launches (`IfElapsed` of adaptive locks), and the end of
// holders that block others for too long (`ExpireAfter`).

/// What a pause counts from.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ElapsedFrom {
    /// The last start.
    #[default]
    Start,
    /// The last end.
    End,
}

impl Keyword for ElapsedFrom {
    const WORDS: &'static [(&'static str, Self)] =
        &[("start", ElapsedFrom::Start), ("end", ElapsedFrom::End)];
}

/// What happens to a start that comes too soon.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum TooSoon {
    /// It is refused.
    #[default]
    Refuse,
    /// No program is started; rungate prints nothing and exits with 0.
    Ok,
}

impl Keyword for TooSoon {
    const WORDS: &'static [(&'static str, Self)] = &[("refuse", TooSoon::Refuse), ("ok", TooSoon::Ok)];
}

/// What is ended when a holder is overdue.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ExpireKill {
    /// The holder.
    #[default]
    Process,
    /// Its process group.
    Group,
}

impl Keyword for ExpireKill {
    const WORDS: &'static [(&'static str, Self)] =
        &[("process", ExpireKill::Process), ("group", ExpireKill::Group)];
}

/// A time that has to pass between two launches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pause {
    /// How long.
    pub length: Duration,
    /// What it counts from.
    pub from: ElapsedFrom,
    /// Whether a launch within it is a failure.
    pub too_soon: TooSoon,
}

impl Pause {
    /// Whether the pause is not over at `now`, if it began at `last`. A moment in the future counts as long
    /// ago: a clock that was set back must not refuse launches.
    pub fn is_on(&self, last: SystemTime, now: SystemTime) -> bool {
        now.duration_since(last).is_ok_and(|ago| ago < self.length)
    }
}

/// When and how a holder that blocks others is ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Expiry {
    /// A holder older than this is overdue.
    pub after: Duration,
    /// The time between the signals that end it.
    pub grace: Duration,
    /// What is ended.
    pub kill: ExpireKill,
}

impl Expiry {
    /// The default time between the signals.
    pub const GRACE: Duration = Duration::from_secs(5);

    /// The default for a holder that is ended at a user's request, which may have any age.
    pub const AT_REQUEST: Self =
        Self { after: Duration::ZERO, grace: Self::GRACE, kill: ExpireKill::Process };
}

/// Both, where a repository has them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pace {
    /// Not again within this time.
    pub pause: Option<Pause>,
    /// No longer than this.
    pub expiry: Option<Expiry>,
}

impl Pace {
    /// Of two claims on one table: the longer pause, and the first expiry.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let pauses = self.pause.into_iter().chain(other.pause);
        Self { pause: pauses.max_by_key(|pause| pause.length), expiry: self.expiry.or(other.expiry) }
    }
}

// What judgement asks about users and groups. A trait keeps the evaluator pure: the launcher answers from
// the databases of the system, tests from a table. Absence (`Ok(None)`) and failure (`Err`) differ: a failed
// look-up refuses the launch, an absent name only matches nothing.

/// Look-ups in the databases of users, groups and netgroups. Each may cost hundreds of microseconds, so the
/// evaluator asks only for rules whose other selectors already match.
pub trait Names {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError>;
    /// The uid of a user's name. Only `policy check` asks.
    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError>;
    /// The gid of a group's name.
    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError>;
    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError>;
    /// Whether `netgroup` holds this host and this user.
    fn in_netgroup(&self, netgroup: &str, host: &str, user: &str) -> Result<bool, LookupError>;
}

/// A look-up that failed, which is not the same as one that found nothing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LookupError {
    /// The call, as a person can grep for it: `getgrnam("students")`.
    pub call: String,
    /// What the system said: `Connection timed out`.
    pub error: String,
}

impl Display for LookupError {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.call, self.error)
    }
}

impl Error for LookupError {}

// The member of a lock file, if a repository has one for each.

/// Several of them, for people: `ann, /opt/matlab/bin`.
pub fn shown(members: &[Member], names: &dyn Names) -> String {
    members.iter().map(|member| member.name(names)).collect::<Vec<_>>().join(", ")
}

/// The member of a file of a `per` repository.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Member {
    /// A user, by uid.
    User(u32),
    /// A group, by gid.
    Group(u32),
    /// A host, a command, a directory, an argument.
    Text {
        /// As it was, before it was made safe for a file name.
        value: Vec<u8>,
        /// For people. Different values never look the same.
        shown: String,
    },
}

impl Member {
    /// The value, if it is known by one.
    pub fn value(&self) -> &[u8] {
        match self {
            Member::Text { value, .. } => value,
            Member::User(_) | Member::Group(_) => &[],
        }
    }

    /// The name for people; a number where none can be found.
    pub fn name(&self, names: &dyn Names) -> String {
        match self {
            Member::User(uid) => names.user_name(*uid).ok().flatten().unwrap_or_else(|| uid.to_string()),
            Member::Group(gid) => names.group_name(*gid).ok().flatten().unwrap_or_else(|| gid.to_string()),
            Member::Text { shown, .. } => shown.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::judge::terms::{Slots, claim::*};

    #[test]
    fn zones_only_get_fewer_whichever_claim_comes_last() {
        let others: Option<&[RangeInclusive<u64>]> = Some(&[6..=10, 4..=5]);
        let case = |second: &[RangeInclusive<u64>], both: &[RangeInclusive<u64>]| {
            assert_eq!(common(others, Some(second)).as_deref(), Some(both));
        };
        case(&[1..=5, 6..=10], &[6..=10, 4..=5]);
        case(&[1..=3], &[]);
        case(&[], &[]);
        case(&[1..=4, 8..=20], &[8..=10, 4..=4]);
        assert_eq!(common(others, None).as_deref(), others);
        assert_eq!(common(None, others).as_deref(), others);
        assert_eq!(common(None, None), None);
    }

    /// A group has a limited number of slots: a launch that wants more shares none of them. It can take over
    /// any number.
    #[test]
    fn a_launch_shares_no_more_slots_than_a_group_can_have() {
        let group_of = |group: &Group, slots: u32| {
            let plain = Amount::plain(Slots::Number(slots), 100);
            let amount = Amount { group: Some(group.clone()), ..plain };
            Terms::merge([&amount]).expect("a claim").group
        };
        let (shared, heirs) = (Group::of("ann"), Group::of_heirs("ann"));
        assert_eq!(group_of(&shared, 64).as_ref(), Some(&shared));
        assert_eq!(group_of(&shared, 65), None);
        assert_eq!(group_of(&heirs, 65).as_ref(), Some(&heirs));
    }

    /// Of the claims on one table the lowest limit, the most slots and the strictest effect count.
    #[test]
    fn the_claims_on_one_table_are_one() {
        let of = |limit: u64, slots: u32, admit: Admit, group: &str| {
            let plain = Amount::plain(Slots::Number(slots), limit);
            Amount { admit, group: Some(Group::of(group)), ..plain }
        };
        let (one, other) = (of(5, 2, Admit::Always, "ann"), of(3, 4, Admit::WithinLimit, "bob"));
        for amounts in [[&one, &other], [&other, &one]] {
            let terms = Terms::merge(amounts).expect("a claim");
            assert_eq!((terms.limit, terms.slots, terms.admit), (3, 4, Admit::WithinLimit));
            assert_eq!((terms.zones, terms.group), (None, None));
        }
        assert_eq!(Terms::merge([&one, &one]).expect("a claim").group, Some(Group::of("ann")));
        let reserved = Amount { zones: vec![4..=5, 2..=2], ..one.clone() };
        for amounts in [[&one, &reserved], [&reserved, &one]] {
            assert_eq!(Terms::merge(amounts).expect("a claim").zones, Some(vec![4..=5, 2..=2]));
        }
    }

    /// The search begins at the cursor and comes to each slot once. A launch that is always admitted then
    /// looks beyond the limit.
    #[test]
    fn each_slot_is_looked_at_once() {
        let terms = |admit: Admit, zones: Option<Vec<RangeInclusive<u64>>>| Terms {
            limit: 5,
            slots: 1,
            zones,
            admit,
            group: None,
        };
        let order = |terms: &Terms, cursor: u64| {
            let order = terms.search_order(cursor);
            order.into_iter().filter(|slots| !slots.is_empty()).collect::<Vec<_>>()
        };
        let plain = terms(Admit::WithinLimit, None);
        assert_eq!(order(&plain, 3), [3..=5, 1..=2]);
        assert_eq!(order(&plain, 5), [5..=5, 1..=4]);
        for cursor in [0, 1, 6] {
            assert_eq!(order(&plain, cursor), [1..=5]);
        }
        assert_eq!(order(&terms(Admit::Always, None), 3), [3..=5, 1..=2, 6..=LAST_SLOT]);
        let zones = |zones| terms(Admit::Always, Some(zones));
        assert_eq!(order(&zones(vec![7..=9, 2..=3]), 3), [7..=9, 2..=3, 10..=LAST_SLOT]);
        assert_eq!(order(&zones(vec![2..=3]), 3), [2..=3, 6..=LAST_SLOT]);
        let reserved = zones(vec![7..=9, 2..=3]);
        assert_eq!((reserved.usable_slots(), plain.usable_slots()), (5, 5));
        assert_eq!((zones(vec![2..=3]).usable_slots(), plain.allows(9)), (2, true));
        assert_eq!((reserved.attainable_slots(), plain.attainable_slots()), (LAST_SLOT - 4, 5));
        assert_eq!(terms(Admit::Always, None).attainable_slots(), LAST_SLOT);
        assert!(reserved.allows(2) && reserved.allows(9) && !reserved.allows(4));
        assert_eq!([&[][..], &[4], &[4, 5]].map(|shared| plain.beyond(shared).slots), [1, 0, 0]);
    }

    /// A claim that is not enforced adds nothing to one that is, whichever comes first. Alone it counts.
    #[test]
    fn a_claim_that_is_not_enforced_counts_alone() {
        let of = |limit: u64, admit: Admit| Amount { admit, ..Amount::plain(Slots::Number(1), limit) };
        let merged = |amounts: [&Amount; 2]| {
            let terms = Terms::merge(amounts).expect("a claim");
            (terms.limit, terms.admit)
        };
        let (enforced, tried) = (of(5, Admit::WithinLimit), of(2, Admit::Unenforced));
        assert_eq!(merged([&enforced, &tried]), (5, Admit::WithinLimit));
        assert_eq!(merged([&tried, &enforced]), (5, Admit::WithinLimit));
        assert_eq!(merged([&tried, &of(3, Admit::Unenforced)]), (2, Admit::Unenforced));
    }

    /// Claims are on one table if the same keeper has it under the same name.
    #[test]
    fn a_table_is_known_by_its_keeper_and_its_name() {
        let memory = |name: &str| Location::Memory(name.into());
        assert!(memory("a").is_same_table(&memory("a")) && !memory("a").is_same_table(&memory("b")));
    }

    /// The policy shortens a wait if the longest that it allows is shorter than the wait asked for.
    #[test]
    fn a_wait_is_cut_by_a_shorter_one_alone() {
        let minutes = |minutes: u64| Wait::For(Duration::from_secs(60 * minutes));
        let setting = Setting { bound: Some(minutes(10)), default: None };
        assert_eq!(setting.cut(Some(minutes(11))), Some(minutes(10)));
        assert_eq!(setting.cut(Some(Wait::Forever)), Some(minutes(10)));
        assert_eq!((setting.cut(Some(minutes(10))), setting.cut(None)), (None, None));
    }

    /// A pause is over when its length has passed. A moment in the future counts as long ago.
    #[test]
    fn a_pause_is_on_for_its_length() {
        let length = Duration::from_secs(60);
        let pause = Pause { length, from: ElapsedFrom::Start, too_soon: TooSoon::Refuse };
        let last = SystemTime::UNIX_EPOCH + 9 * length;
        assert!(pause.is_on(last, last) && pause.is_on(last, last + length - Duration::from_nanos(1)));
        assert!(!pause.is_on(last, last + length) && !pause.is_on(last + length, last));
    }
}
