//! The messages between a launch and the agent. A launch asks one question at a time. Only a wait has more
//! than one answer, one for each beat. Statements of a launch about itself count only for the rules: its
//! identity comes from the kernel.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, SystemTime},
};

use super::{
    Wire,
    wire::{fields, wire},
};
use crate::{
    judge::terms::{ExpireKill, Hold, Wait},
    keeper::{self, Class, Overdue, UnverifiedTarget, Waiter, WaitingProcess},
    sys::{Signal, accounts},
    text::{Show, word},
};

wire! {
    /// What is asked.
    enum Request {
        /// Slots for a launch of this process.
        Take(Take) = 1,
        /// The program is about to start: from now on nothing but its end releases the slots.
        Started = 2,
        /// The slots are not needed, or no longer; whether a program had them.
        GiveBack(bool) = 3,
        /// The waiting launch is alive.
        Beat = 4,
        /// It waits no longer.
        Leave = 5,
        /// These tables, or all.
        Look(Vec<String>) = 6,
        /// Make these tables forget when they were last used.
        Reset(Vec<String>) = 7,
        /// End holders: any for root, their own for all other users.
        Evict(Evict) = 8,
        /// What the agent says of itself.
        About = 9,
        /// The number of a challenge, sent with the credentials of this process.
        Response(u128) = 10,
        /// The programs with slots whose end it has seen recently.
        Ends = 11,
        /// The program is this child of the process.
        RunsAs(i32) = 12,
        /// A new FIFO for a script, which opens it before it requests slots.
        Open = 13,
        /// The slots that the FIFO with this number keeps.
        Keeps(u64) = 14,
    }
}

wire! {
    /// A launch, with all facts that rules can use, and the options that tighten them.
    struct Take {
        /// The command as typed, or as `--as` names it.
        typed: OsString,
        /// The path that would be executed.
        path: OsString,
        /// The same with every link resolved.
        canonical: OsString,
        /// The working directory.
        directory: OsString,
        /// The arguments, without the command.
        arguments: Vec<OsString>,
        /// The environment variables that the launch's own judgement used, set or not.
        environment: Vec<(String, Option<OsString>)>,
        /// The environment's hint about slots that ancestors hold.
        held: OsString,
        /// What must keep the slots, if the policy allows it.
        hold: Hold,
        /// How long it may wait, if the command line says so.
        wait: Option<Wait>,
        /// Whether holders that are overdue may be ended for it, which takes time.
        may_end: bool,
        /// Whether an answer to the same request was lost: slots that it granted are released first.
        is_again: bool,
        /// The number of the FIFO that the caller's script has open to keep the slots, if it is a script.
        opened: Option<u64>,
        /// The number of the script's descriptor for it.
        through: Option<i32>,
    }
}

wire! {
    enum Answer {
        /// Everything was taken.
        Granted(Granted) = 1,
        /// Nothing was taken.
        Refused(Refused) = 2,
        /// Nothing yet: the launch waits in the queue.
        Waits(WaitState) = 3,
        /// The agent's judgement differs: for example, a rule refuses.
        Differs(String) = 4,
        /// The request was carried out; whether there was anything to do.
        Done(bool) = 5,
        Tables(Vec<Table>) = 6,
        /// It cannot be done, for this reason.
        Failed(String) = 7,
        /// Nothing yet: overdue holders are being ended, and the launch is not in the queue. Or it is, and
        /// cannot be judged now.
        Ends(Refused) = 8,
        /// One of them has ended, or continues.
        Expired(Expired) = 9,
        /// What it says of itself.
        About(About) = 10,
        /// Nothing yet: the kernel cannot give the process at the other end, which has to say this number.
        Challenge(u128) = 11,
        /// Earlier messages belong to an earlier request: slots that they granted are released. What follows
        /// is for the one that came last.
        Anew = 12,
        /// The ends that it has seen last, oldest first.
        Ended(Vec<End>) = 13,
        /// The policy has these faults; whether a launch in the queue keeps its place meanwhile.
        Faulty((String, bool)) = 14,
        /// The path of a new FIFO.
        Opened(OsString) = 15,
    }
}

wire! {
    /// The end of a program that had slots.
    struct End {
        /// The process that asked for them.
        pid: i32,
        /// Since when it had them.
        since: SystemTime,
        /// Until when.
        until: SystemTime,
    }
}

wire! {
    /// The outcome of a holder that was to be ended.
    struct Expired {
        table: String,
        /// The holder, with the first of its slots.
        holder: Holder,
        /// How many slots it had there.
        slots: u64,
        /// By how much it was overdue, if that was why.
        by: Option<Duration>,
        /// Whether it runs on another host.
        is_elsewhere: bool,
        fate: EvictionOutcome,
    }
}

wire! {
    /// Its outcome; with the number of the last signal.
    enum EvictionOutcome {
        Ended((i32, Delivery)) = 1,
        /// It ended, and others that cannot be ended keep the slot.
        LeftOthers(i32) = 2,
        /// It had ended before.
        HadLeft = 3,
        /// It may not be ended.
        NotPermitted = 4,
        /// It runs a set-id program.
        Privileged = 5,
        /// It cannot be inspected.
        OutOfSight = 6,
        /// It starts nevertheless.
        Survived = 7,
        /// Another host was given notice of it.
        Noticed = 8,
        /// By the policy of another host it is not overdue.
        NotOverdueThere = 9,
        /// It has ended, and what keeps its slot lies in the queue of a socket.
        InTransit = 10,
        /// It had ended, and its slot lingered: it is free now.
        Freed = 11,
    }
}

wire! {
    /// The processes that got a signal.
    enum Delivery {
        /// All that were meant.
        Full = 1,
        /// Processes alone where their groups were meant.
        NoGroup = 2,
        /// Some of them.
        Partly = 3,
    }
}

wire! {
    /// Which holders of one table must be ended, and how.
    struct Evict {
        table: String,
        which: Which,
        /// The time between two signals.
        grace: Duration,
        /// What is ended.
        kill: ExpireKill,
    }
}

/// How many holders are ended by one request, at most.
pub const MOST_CHOSEN: usize = 1024;

wire! {
    /// Which holders are meant.
    enum Which {
        /// Those of this host that have had their slots for longer than this.
        Overdue(Duration) = 1,
        /// These, also on other hosts: at most [`MOST_CHOSEN`].
        These(Vec<Chosen>) = 2,
    }
}

wire! {
    /// A holder as a listing showed it, and no later one with the same slot or process id.
    struct Chosen {
        slot: u64,
        pid: i32,
        /// Since when it had the slot.
        since: SystemTime,
    }
}

wire! {
    /// What a launch got.
    struct Granted {
        /// Each repository's name and its slots, as `RUNGATE_HELD` writes them.
        slots: Vec<(String, String)>,
        /// The tables in which no slots were acquired, because their limits are not enforced.
        without: Vec<String>,
        /// What keeps the slots. More than the process itself keeps them by a descriptor, which comes with
        /// this answer.
        hold: Hold,
        /// Whether the launch waited before.
        has_waited: bool,
        /// Those of the slots that other programs of its group have, if any, in the same form.
        joined: Option<Vec<(String, String)>>,
    }
}

wire! {
    /// Why a launch got nothing.
    struct Refused {
        /// Each table that blocks the launch.
        obstacles: Vec<Obstacle>,
        /// How they look: the oldest holders are described.
        tables: Vec<Table>,
        /// Whether the launch waited until its wait timed out.
        has_waited: bool,
    }
}

wire! {
    /// The same for a launch in the queue.
    struct WaitState {
        /// What it waits for.
        refused: Refused,
        /// How many come first.
        ahead: u32,
    }
}

wire! {
    /// A table that blocks the launch.
    struct Obstacle {
        /// Its name.
        table: String,
        /// Why.
        reason: Reason,
        /// Why it is not waited for, if that is so.
        unwaited: Option<Unwaited>,
        /// How many slots are in use outside rungate, if any.
        outside: Option<u64>,
    }
}

wire! {
    /// Why something is not waited for, or not any more.
    enum Unwaited {
        /// No launch may wait for it.
        Never = 1,
        /// The launch has waited for it as long as it may.
        Over(Duration) = 2,
        /// How many wait, and how many may.
        Queue((u32, u32)) = 3,
        /// How many launches of this user wait, and how many may.
        OwnQueue((u32, u32)) = 4,
    }
}

wire! {
    /// Why nothing is available in a table.
    enum Reason {
        /// The limit is reached, or what is left is for others.
        Full = 1,
        /// Older launches wait for what there is.
        Behind = 2,
        /// Only ancestors of the launch hold it.
        Ancestors = 3,
        /// More is wanted than there can ever be.
        Never = 4,
        /// The pause since then is not over; with the user who started, if known.
        TooSoon((SystemTime, Option<u32>)) = 5,
    }
}

wire! {
    struct Table {
        name: String,
        /// First and last of the slots that are held.
        held: Vec<(u64, u64)>,
        /// Its holders, as far as they are named here.
        holders: Vec<Holder>,
        /// The waiters, oldest first.
        waiting: Vec<Waiter>,
        /// When a program was last started.
        last_start: Option<SystemTime>,
        /// When one last ended.
        last_end: Option<SystemTime>,
        /// How many more wait, of all users and of the caller; absent if the agent lists all of them.
        unlisted: Option<(u64, u64)>,
        /// Which slots groups have.
        groups: Option<Vec<Grouped>>,
        /// The other members that share slots with these holders, if known.
        others: Option<Vec<Holder>>,
    }
}

wire! {
    /// A slot of a group.
    struct Grouped {
        slot: u64,
        rank: u64,
        /// The number of the group: its values may be secret.
        group: u64,
    }
}

wire! {
    /// The holder of a slot, or of neighbouring ones.
    struct Holder {
        /// First and last.
        slots: (u64, u64),
        pid: i32,
        /// Its real user.
        uid: u32,
        /// The node name.
        host: String,
        /// Since when.
        since: SystemTime,
        /// The same as time since boot.
        taken: Option<Duration>,
        /// What keeps the slots.
        hold: Hold,
        command: String,
        /// The rule that asked for them.
        rule: String,
        /// Until when they stay taken, if its program has ended.
        lingers_until: Option<SystemTime>,
    }
}

fields!(Waiter { number, class, wants, is_away, process });
fields!(WaitingProcess { pid, host, user, command, since });
fields!(Class { generation, capacity });

// The launch of a request for slots: whether two requests are for the same one, and its memory.

impl Take {
    /// Whether both requests are for the same launch. If the variables are also the same, only a change of
    /// the policy can change its needs.
    pub fn is_of_same_launch(&self, other: &Self) -> bool {
        (self.launch(), &self.held) == (other.launch(), &other.held)
    }

    /// Whether a judge finds the same variables in both. A launch names those that its own judgement used, so
    /// they change with the policy and the hour.
    pub fn has_same_variables(&self, other: &Self) -> bool {
        self.variables() == other.variables()
    }

    /// A number that another launch can have only by chance, because the salt is secret.
    pub fn fingerprint(&self, salt: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (salt, self.launch(), self.variables(), &self.held).hash(&mut hasher);
        hasher.finish()
    }

    /// The requested launch, for every request and caller.
    fn launch(&self) -> impl Eq + Hash {
        let Self { typed, path, canonical, directory, arguments, .. } = self;
        (typed, path, canonical, directory, arguments)
    }

    /// The variables as a judge finds them: the first one of a name counts, and one that is not named is not
    /// set.
    fn variables(&self) -> BTreeMap<&str, Option<&OsStr>> {
        let last_first = self.environment.iter().rev();
        let mut variables: BTreeMap<_, _> =
            last_first.map(|(name, value)| (name.as_str(), value.as_deref())).collect();
        variables.retain(|_, value| value.is_some());
        variables
    }

    /// About how much memory it takes: a list of short texts takes many times what it took on the wire.
    pub fn size(&self) -> usize {
        let Self { typed, path, canonical, directory, arguments, environment, held, .. } = self;
        // The size of a text, rounded up, because memory is allocated in pieces.
        let text = |length: usize| size_of::<OsString>().saturating_add(length.next_multiple_of(32));
        let texts = [typed, path, canonical, directory, held].into_iter().chain(arguments);
        let variable = |(name, value): &(String, Option<OsString>)| {
            text(name.len()).saturating_add(text(value.as_ref().map_or(0, |value| value.len())))
        };
        let sizes = texts.map(|one| text(one.len())).chain(environment.iter().map(variable));
        sizes.fold(size_of::<Self>(), usize::saturating_add)
    }
}

// A holder on its way.

/// The holder of a table as messages have it; none if something is not known of it.
pub(super) fn described(holder: keeper::Holder) -> Option<Holder> {
    let keeper::Holder { slots, pid, uid, host, since, taken, hold, command, rule, lingers_until, .. } =
        holder;
    Some(Holder {
        slots,
        pid: pid?,
        uid: uid?,
        host: host?,
        since: since?,
        taken,
        hold: hold?,
        command: command?,
        rule: rule?,
        lingers_until,
    })
}

/// The same as a table has it.
pub(super) fn shown(holder: &Holder) -> keeper::Holder {
    let Holder { slots, pid, uid, host, since, taken, hold, command, rule, lingers_until } = holder.clone();
    keeper::Holder {
        slots,
        pid: Some(pid),
        // A process of another host has its number there, and one that has ended keeps nothing.
        keeper: (lingers_until.is_none() && is_this_host(&host)).then_some(pid),
        uid: Some(uid),
        host: Some(host),
        since: Some(since),
        taken,
        hold: Some(hold),
        command: Some(command),
        rule: Some(rule),
        lingers_until,
        others: Vec::new(),
    }
}

fn is_this_host(host: &str) -> bool {
    accounts::name().is_ok_and(|name| name.to_string_lossy() == host)
}

// The outcome of overdue holders, reported to the launch that needs their slots.

impl Expired {
    /// For a holder; none if it is unknown.
    pub fn of(table: &str, overdue: &Overdue, fate: keeper::EvictionOutcome) -> Option<Self> {
        let Overdue { holder, elsewhere, by, slots, .. } = overdue;
        let holder = described(holder.clone())?;
        let (table, is_elsewhere) = (table.to_owned(), elsewhere.is_some());
        Some(Self { table, holder, slots: *slots, by: *by, is_elsewhere, fate: sent(fate) })
    }

    /// The same as if this process had ended it; none if the text makes no sense.
    pub fn told(&self) -> Option<(Overdue, keeper::EvictionOutcome)> {
        let fate = told(&self.fate)?;
        let job = match fate {
            keeper::EvictionOutcome::NotProved(doubt) => Err(doubt),
            _ => Ok(self.holder.pid),
        };
        let holder = shown(&self.holder);
        let overdue = Overdue {
            elsewhere: holder.host.clone().filter(|_| self.is_elsewhere),
            holder,
            pid: self.holder.pid,
            by: self.by,
            slots: self.slots,
            job,
            may_be_signalled: fate != keeper::EvictionOutcome::NotPermitted,
            with: Vec::new(),
        };
        Some((overdue, fate))
    }
}

fn sent(fate: keeper::EvictionOutcome) -> EvictionOutcome {
    match fate {
        keeper::EvictionOutcome::Ended(signal, delivery) => {
            EvictionOutcome::Ended((signal as i32, delivery.into()))
        }
        keeper::EvictionOutcome::LeftOthers(signal) => EvictionOutcome::LeftOthers(signal as i32),
        keeper::EvictionOutcome::HadLeft | keeper::EvictionOutcome::NotProved(UnverifiedTarget::Gone) => {
            EvictionOutcome::HadLeft
        }
        keeper::EvictionOutcome::NotPermitted => EvictionOutcome::NotPermitted,
        keeper::EvictionOutcome::NotProved(UnverifiedTarget::Privileged) => EvictionOutcome::Privileged,
        keeper::EvictionOutcome::NotProved(UnverifiedTarget::InTransit) => EvictionOutcome::InTransit,
        keeper::EvictionOutcome::NotProved(UnverifiedTarget::OutOfSight | UnverifiedTarget::NoGuardian) => {
            EvictionOutcome::OutOfSight
        }
        keeper::EvictionOutcome::Survived => EvictionOutcome::Survived,
        keeper::EvictionOutcome::Noticed => EvictionOutcome::Noticed,
        keeper::EvictionOutcome::NotOverdueThere => EvictionOutcome::NotOverdueThere,
        keeper::EvictionOutcome::Freed => EvictionOutcome::Freed,
    }
}

fn told(fate: &EvictionOutcome) -> Option<keeper::EvictionOutcome> {
    let signal = |number: i32| Signal::try_from(number).ok();
    Some(match fate {
        EvictionOutcome::Ended((number, delivery)) => {
            keeper::EvictionOutcome::Ended(signal(*number)?, delivery.into())
        }
        EvictionOutcome::LeftOthers(number) => keeper::EvictionOutcome::LeftOthers(signal(*number)?),
        EvictionOutcome::HadLeft => keeper::EvictionOutcome::HadLeft,
        EvictionOutcome::NotPermitted => keeper::EvictionOutcome::NotPermitted,
        EvictionOutcome::Privileged => keeper::EvictionOutcome::NotProved(UnverifiedTarget::Privileged),
        EvictionOutcome::OutOfSight => keeper::EvictionOutcome::NotProved(UnverifiedTarget::OutOfSight),
        EvictionOutcome::InTransit => keeper::EvictionOutcome::NotProved(UnverifiedTarget::InTransit),
        EvictionOutcome::Survived => keeper::EvictionOutcome::Survived,
        EvictionOutcome::Noticed => keeper::EvictionOutcome::Noticed,
        EvictionOutcome::NotOverdueThere => keeper::EvictionOutcome::NotOverdueThere,
        EvictionOutcome::Freed => keeper::EvictionOutcome::Freed,
    })
}

impl From<keeper::Delivery> for Delivery {
    fn from(delivery: keeper::Delivery) -> Self {
        match delivery {
            keeper::Delivery::Full => Self::Full,
            keeper::Delivery::NoGroup => Self::NoGroup,
            keeper::Delivery::Partly => Self::Partly,
        }
    }
}

impl From<&Delivery> for keeper::Delivery {
    fn from(delivery: &Delivery) -> Self {
        match delivery {
            Delivery::Full => Self::Full,
            Delivery::NoGroup => Self::NoGroup,
            Delivery::Partly => Self::Partly,
        }
    }
}

// The agent's report about itself: its version, and the state of its connection to the site.

wire! {
    struct About {
        version: String,
        /// Its state beside others; none if it shares nothing.
        site: Option<AboutSite>,
        /// What it has done since it started; absent from an older agent.
        work: Option<AboutWork>,
    }
}

wire! {
    /// What an agent has done since it started, and what it keeps now.
    struct AboutWork {
        /// From a launch's request to its first answer: slots, a refusal, or a place in a queue.
        decisions: Latency,
        /// How many requests were declined because of a quota.
        declined: u64,
        /// How many clients are connected.
        connections: u64,
        /// How many launches wait.
        waiting: u64,
        /// How many launches hold slots.
        holding: u64,
    }
}

wire! {
    /// How long something took, each time that it was done.
    struct Latency {
        /// How often it took longer than the bound before and at most as long as each of
        /// [`Latency::BOUNDS`].
        counts: Vec<u64>,
        /// How often it took longer than all of them.
        longer: u64,
        /// All of it together.
        sum: Duration,
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self { counts: vec![0; Self::BOUNDS.len()], longer: 0, sum: Duration::ZERO }
    }
}

impl Latency {
    /// In microseconds. A decision takes less than the first, a round trip to etcd as long as those in the
    /// middle.
    pub const BOUNDS: [u64; 8] = [250, 1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000, 4_000_000];

    /// Counts one more.
    pub fn add(&mut self, took: Duration) {
        let bound = Self::BOUNDS.iter().position(|bound| took <= Duration::from_micros(*bound));
        let count = bound.and_then(|bound| self.counts.get_mut(bound)).unwrap_or(&mut self.longer);
        *count = count.saturating_add(1);
        self.sum = self.sum.saturating_add(took);
    }
}

wire! {
    /// The site, as this agent sees it.
    struct AboutSite {
        /// The name of its own host.
        host: String,
        /// The members of etcd.
        endpoints: Vec<String>,
        /// The prefix of all keys.
        prefix: String,
        /// How long a host may be silent.
        ttl: Duration,
        /// Whether slots are granted now.
        is_open: bool,
        /// How long ago the last read was sent that found this host's key.
        seen: Option<Duration>,
        /// How long until others may consider it dead.
        left: Option<Duration>,
        /// How far the mirror is behind; none if it was never current.
        lag: Option<Duration>,
        /// How often the lease was lost since the agent started.
        leases_lost: u64,
        /// What is wrong, if anything is.
        trouble: Option<AboutTrouble>,
        /// The state of etcd itself, if it was ever checked.
        store: Option<AboutStore>,
        /// Every known host.
        hosts: Vec<AboutHost>,
        /// The first of the slots with unreadable values: no host frees them.
        unreadable: Vec<UnreadableSlot>,
        /// How long etcd took for its answers; absent from an older agent.
        requests: Option<Latency>,
    }
}

wire! {
    /// A slot that is held by a value which no agent wrote.
    struct UnreadableSlot {
        /// Its table, as its host calls it.
        table: String,
        slot: u64,
        /// Its key in etcd.
        key: String,
    }
}

wire! {
    /// How etcd is.
    struct AboutStore {
        /// How large the largest database of a member is, in bytes.
        size: u64,
        /// The maximum size, if known.
        quota: Option<u64>,
        /// Whether it accepts no writes.
        is_full: bool,
        /// How many changes it has kept, if it has kept all of them.
        uncompacted: Option<u64>,
    }
}

wire! {
    /// What is wrong.
    struct AboutTrouble {
        text: String,
        /// What to do about it, if known.
        advice: Option<String>,
        /// For how long.
        lasts: Duration,
    }
}

wire! {
    struct AboutHost {
        name: String,
        /// The version of its agent, if it ever said so.
        version: Option<String>,
        /// Its lease; none if it does not exist.
        lease: Option<u64>,
        /// For how long it has been absent, and how long until its slots are free.
        absent: Option<(Duration, Duration)>,
        /// How many of its launches wait.
        waiting: u64,
        /// How many slots it has of each table.
        held: Vec<(String, u64)>,
        /// The settings of its policy for each repository of the site, a line for each key.
        repositories: Vec<(String, String)>,
    }
}

impl UnreadableSlot {
    /// What is wrong with it.
    pub fn text(&self) -> String {
        format!(
            "a slot has no readable holder: the value of {} was not written by an agent",
            self.key.shown()
        )
    }

    /// What to do about it.
    pub fn advice(&self) -> String {
        format!("if no program of the site runs for it: etcdctl del {}", word(&self.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request whose texts are empty.
    fn empty() -> Take {
        Take {
            typed: OsString::new(),
            path: OsString::new(),
            canonical: OsString::new(),
            directory: OsString::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            held: OsString::new(),
            hold: Hold::Process,
            wait: None,
            may_end: true,
            is_again: false,
            opened: None,
            through: None,
        }
    }

    /// Each text of a request counts with the memory that it takes, which is given in pieces. A variable that
    /// is not set takes as much as an empty one.
    #[test]
    fn each_text_of_a_request_counts() {
        let least = empty().size();
        for (length, pieces) in [(1, 1), (32, 1), (33, 2)] {
            let typed = "x".repeat(length).into();
            assert_eq!(Take { typed, ..empty() }.size(), least + 32 * pieces, "{length}");
        }
        let arguments = vec![OsString::new()];
        let argument = Take { arguments, ..empty() }.size() - least;
        let with_variable = |value: Option<&str>| {
            let environment = vec![("A".to_owned(), value.map(OsString::from))];
            Take { environment, ..empty() }.size()
        };
        assert!(argument > 0);
        assert_eq!(with_variable(None), least + 2 * argument + 32);
        assert_eq!(with_variable(Some("")), with_variable(None));
        assert_eq!(with_variable(Some("x")), with_variable(None) + 32);
    }

    /// Two requests have the same variables if a judge finds the same ones, in whatever order they are named.
    #[test]
    fn variables_are_the_same_if_a_judge_finds_the_same() {
        type Named = (&'static str, Option<&'static str>);
        const A: Named = ("A", Some("1"));
        const B: Named = ("B", Some("2"));
        let with = |variables: &[Named]| {
            let named = variables.iter().map(|(name, value)| ((*name).to_owned(), value.map(OsString::from)));
            Take { environment: named.collect(), ..empty() }
        };
        for (variables, are_same) in [
            (&[B, A][..], true),
            (&[("C", None), A, B], true),
            (&[A, ("A", Some("3")), ("A", None), B], true),
            (&[("A", Some("3")), A, B], false),
            (&[("A", None), A, B], false),
            (&[A], false),
            (&[A, B, ("C", Some(""))], false),
        ] {
            let (one, other) = (with(&[A, B]), with(variables));
            assert_eq!(one.has_same_variables(&other), are_same, "{variables:?}");
            assert_eq!(one.fingerprint(5) == other.fingerprint(5), are_same, "{variables:?}");
            assert!(one.is_of_same_launch(&other), "{variables:?}");
            let held = Take { held: "seats=1".into(), ..one.clone() };
            assert!(!held.is_of_same_launch(&one) && held.fingerprint(5) != one.fingerprint(5));
        }
    }

    /// A holder of this host is shown with the process that keeps its slots, as long as it has not ended. A
    /// process of another host has its number there.
    #[test]
    fn a_holder_of_this_host_is_shown_with_its_process() {
        let own = accounts::name().expect("a name").to_string_lossy().into_owned();
        let ended = Some(SystemTime::UNIX_EPOCH);
        for (host, lingers_until, keeper) in
            [(own.as_str(), None, Some(7)), (own.as_str(), ended, None), ("no.such.host.", None, None)]
        {
            let holder = Holder {
                slots: (1, 1),
                pid: 7,
                uid: 1000,
                host: host.to_owned(),
                since: SystemTime::UNIX_EPOCH,
                taken: None,
                hold: Hold::Process,
                command: "matlab".to_owned(),
                rule: "seats".to_owned(),
                lingers_until,
            };
            assert_eq!((shown(&holder).keeper, shown(&holder).pid), (keeper, Some(7)), "{host}");
            assert_eq!(described(shown(&holder)), Some(holder));
        }
    }

    /// What took exactly as long as a bound is counted there, and what took longer than all bounds by itself.
    #[test]
    fn each_duration_is_counted_once() {
        let mut latency = Latency::default();
        for micros in [0, 250, 251, 4_000_000, 4_000_001] {
            latency.add(Duration::from_micros(micros));
        }
        assert_eq!((latency.counts, latency.longer), (vec![2, 1, 0, 0, 0, 0, 0, 1], 1));
        assert_eq!(latency.sum, Duration::from_micros(8_000_502));
    }
}
