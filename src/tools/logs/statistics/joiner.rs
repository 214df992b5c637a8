//! From the events of a log to launches and runs: starts are joined with their waits and their ends.
//!
//! An unseen end has bounds. A slot that is taken again was free before. A decision that saw the held slots
//! proves which programs had ended by then, and which had not. So no slot ever has two holders, and use above
//! the number of slots cannot be counted. If a supervisor logs an end late, that does not move the end.
//!
//! The exception is a slot that the log says was joined: the programs of a group have it together. It is in
//! use from the start of the first to the end of the last.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    mem,
    sync::Arc,
};

use super::tables::{Holder, Holders, Tables};
use crate::{
    judge::terms::Runs,
    launch::log::event::{Event, Kind, NOT_EXECUTED, TableSeen},
    policy::HIGHEST_LIMIT,
};

/// Bounds that are no wider than this are as good as exact, in microseconds.
pub const EXACT: u64 = 1_000_000;

/// How many slots of one launch in one repository are followed.
const MOST_SLOTS: u64 = 4096;

/// The same of all its repositories together.
const MOST_OF_LAUNCH: u64 = 4 * MOST_SLOTS;

/// How many holders all decisions that wait to be explained have together.
const MOST_LOOKED_AT: usize = 1 << 18;

/// No group has more slots, so more joined ones are not believed.
const MOST_JOINED: u64 = 64;

/// Beyond this many programs with unknown ends, the oldest are dropped.
const MOST_RUNS: usize = 65_536;

/// Events before 2000 or after 2200 are ignored, because users who may append to a log can write any time.
const POSSIBLE: std::ops::Range<u64> = 946_684_800_000_000..7_258_118_400_000_000;

/// An event is logged at most this long after its decision, in microseconds.
const DAY: u64 = 86_400_000_000;

/// The known facts about the tables of a log before it is read.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Whether each host has lock files of its own.
    pub is_by_host: bool,
    /// Repositories with one table, because each launch has the same lock file.
    pub single: HashSet<String>,
}

/// The events of a log, in the order in which it was decided. Ends come later, when nothing can change them
/// any more.
pub trait Sink {
    /// A launch started or was refused.
    fn launched(&mut self, launch: &Launched<'_>);
    /// A slot of a table has been free again since then at the latest.
    fn freed(&mut self, table: u32, repository: &str, at: u64);
    /// The known facts about a program that has ended, or still runs when the log ends.
    fn ended(&mut self, run: &Run);
    /// Something else happened, at this moment.
    fn noted(&mut self, event: &Event, at: u64);
}

/// A launch that started or was refused.
pub struct Launched<'a> {
    /// How many came before.
    pub number: usize,
    /// Its facts in the log.
    pub event: &'a Event,
    /// When it was decided, in microseconds since 1970.
    pub at: u64,
    /// When it came.
    pub arrived: u64,
    pub fate: LaunchOutcome,
    /// The tables in which it has slots of its own.
    pub taken: &'a [Taken<'a>],
}

impl Launched<'_> {
    /// How long it waited, in microseconds.
    pub fn wait(&self) -> u64 {
        match self.fate {
            LaunchOutcome::Refused => 0,
            LaunchOutcome::AtOnce | LaunchOutcome::Waited | LaunchOutcome::TimedOut => {
                self.at.saturating_sub(self.arrived)
            }
        }
    }
}

/// Slots of a table that a launch has taken.
pub struct Taken<'a> {
    pub repository: &'a str,
    /// The table of the repository, if known.
    pub table: Option<u32>,
    /// How many slots.
    pub count: u64,
    /// Its state as the launch saw it.
    pub seen: Option<&'a TableSeen>,
    /// How many of its slots are not known to be free.
    pub occupied: u64,
}

/// How well an end is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// It is in the log.
    Seen,
    /// It is not: the program ended within its bounds, and no process saw when.
    Missed,
    /// The program still ran when the log ended.
    Running,
}

/// A program that had slots.
#[derive(Debug)]
pub struct Run {
    /// The number of its launch.
    pub launch: usize,
    /// When it began, in microseconds since 1970.
    pub began: u64,
    /// It had not ended before this moment.
    pub from: u64,
    /// It had ended by this one.
    pub to: u64,
    /// How well its end is known.
    pub end: End,
    /// Whether each of its tables is known, so that the bounds hold.
    pub is_bounded: bool,
    /// How long it ran, as its supervisor measured it.
    pub told: Option<u64>,
    /// Whether its program was executed. Otherwise it had slots for a moment, and does not show how long such
    /// programs run.
    pub is_executed: bool,
    pub slots: Vec<Held>,
}

/// Slots of one table.
#[derive(Debug)]
pub struct Held {
    pub table: u32,
    pub repository: Arc<str>,
    pub slots: Runs,
    /// Whether the table is known, so that no slot of it has two holders.
    pub is_one: bool,
    /// Whether other programs of its group have, or had, some of them at the same time.
    pub is_shared: bool,
    /// When they were in use, if that is not the time of the run: slots of a group count once, with its last
    /// program, and not with the others.
    pub time: Option<Time>,
}

/// When slots of a group were in use.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// When the first program took them.
    pub began: u64,
    /// The last one had not ended before this moment.
    pub from: u64,
    /// It had ended by this one.
    pub to: u64,
}

/// The time of a slot that several programs have had together, as far as known.
#[derive(Debug)]
struct Session {
    time: Time,
    /// How many of its programs can still change that.
    left: usize,
}

impl Run {
    /// How long it ran, in microseconds, if the log has its end.
    pub fn length(&self) -> Option<u64> {
        let middle = self.from.midpoint(self.to).saturating_sub(self.began);
        // Bounds that are wide in relation to the duration are not useful.
        let is_known = self.end == End::Seen && self.to - self.from <= EXACT.max(middle / 10);
        self.told.or_else(|| is_known.then_some(middle)).filter(|_| self.is_executed)
    }
}

struct Open {
    run: Run,
    process: Process,
    /// When one of its slots was taken again, or was seen to be free.
    gone: Option<u64>,
    /// Whether a launch of another host took it.
    is_taken_elsewhere: bool,
    /// Whether it was closed, and only later events can correct it.
    is_closed: bool,
}

/// A host, by the hash of its name, and the number of a process.
type Process = (u64, i32);

struct Waited {
    micros: Option<u64>,
    arrived: Option<u64>,
}

/// A decision that found fewer held slots than known: some of these launches had ended, and that was not
/// logged yet.
struct Look {
    at: u64,
    table: u32,
    /// How many slots were held at most.
    most: u64,
    /// Whether it shows which of the launches have ended.
    tells_which: bool,
    /// Their holders, one for each slot.
    holders: Vec<Holder>,
}

/// The remaining results at the end of a log.
#[derive(Clone, Debug, Default)]
pub struct Closing {
    /// The first event and the last, in microseconds since 1970; none if there was none.
    pub span: Option<(u64, u64)>,
    /// A repository in which two hosts held one slot at the same time, each in its own lock file.
    pub of_each_host: Option<String>,
    /// Events with an impossible time.
    pub impossible: u64,
    /// Programs that ended, and had started before the first event: their slots are in no figure.
    pub started_before: u64,
    /// Whether there may be more of them, because the events begin where the caller wanted.
    pub is_cut: bool,
}

/// Joins events.
pub struct Joiner {
    reading: Reading,
    pending: InOrder,
    next: usize,
    running: HashMap<Process, usize>,
    /// The processes whose ends were seen. A sweep may log an end again: if it looked at that moment, or if
    /// the program was evicted.
    ended: HashSet<Process>,
    runs: BTreeMap<usize, Open>,
    waited: HashMap<Process, Waited>,
    tables: Tables,
    /// The slots that groups have had, by table, slot and the first launch; and which launches had them, with
    /// that first one.
    sessions: HashMap<(u32, u64, usize), Session>,
    members: HashMap<(u32, u64, usize), usize>,
    looks: VecDeque<Look>,
    /// How many holders they have.
    looked_at: usize,
    /// Closed runs with their times, until no event can correct them any more.
    closed: VecDeque<(u64, usize)>,
    closing: Closing,
}

impl Joiner {
    /// For a log that was not read yet.
    pub fn new(reading: Reading) -> Self {
        Self {
            reading,
            pending: InOrder::default(),
            next: 0,
            running: HashMap::new(),
            ended: HashSet::new(),
            runs: BTreeMap::new(),
            waited: HashMap::new(),
            tables: Tables::default(),
            sessions: HashMap::new(),
            members: HashMap::new(),
            looks: VecDeque::new(),
            looked_at: 0,
            closed: VecDeque::new(),
            closing: Closing::default(),
        }
    }

    /// One event more. Events of one process come in the order in which they happened. Releases one that is
    /// no longer needed.
    pub fn see(&mut self, mut event: Event, sink: &mut dyn Sink) -> Option<Event> {
        believe(&mut event);
        if !POSSIBLE.contains(&event.micros()) {
            self.closing.impossible += 1;
            return Some(event);
        }
        self.pending.add(event);
        let mut spent = None;
        while let Some(event) = self.pending.due() {
            self.happened(&event, sink);
            spent = Some(event);
        }
        spent
    }

    /// After the last event.
    pub fn finish(mut self, sink: &mut dyn Sink) -> Closing {
        for event in mem::take(&mut self.pending).into_rest() {
            self.happened(&event, sink);
        }
        self.explain_looks(u64::MAX, sink);
        self.tell_closed(u64::MAX, sink);
        let (_, last) = self.closing.span.unwrap_or_default();
        let gone: Vec<usize> =
            self.runs.iter().filter(|(_, open)| open.gone.is_some()).map(|(number, _)| *number).collect();
        for number in gone {
            self.tell(number, last, sink);
        }
        // The rest still runs, or its ends are not logged.
        while let Some((number, open)) = self.runs.first_key_value() {
            let number = *number;
            let are_seen = open.run.slots.iter().any(|held| {
                self.tables.get(held.table).is_some_and(|table| table.seen > 0 && table.seen >= table.missed)
            });
            if are_seen && let Some(open) = self.runs.get_mut(&number) {
                (open.run.from, open.run.end) = (last, End::Running);
            }
            self.tell(number, last, sink);
        }
        self.closing
    }

    fn happened(&mut self, event: &Event, sink: &mut dyn Sink) {
        let now = event.micros();
        self.explain_looks(now.saturating_sub(2 * LATE), sink);
        self.tell_closed(now.saturating_sub(4 * LATE), sink);
        let (first, last) = self.closing.span.unwrap_or((now, now));
        self.closing.span = Some((first.min(now), last.max(now)));
        let process = (hash_of(&event.host), event.pid);
        match event.event {
            Kind::Started => self.start(process, event, sink),
            Kind::Refused | Kind::TooSoon => self.refuse(process, event, sink),
            Kind::Waited => {
                if self.waited.len() >= MOST_RUNS {
                    self.waited.clear();
                }
                self.waited.insert(process, Waited { micros: micros_of(event), arrived: event.arrived });
            }
            // The end of an earlier part of a script: the start of the next part has already shown it.
            Kind::Ended if event.between.is_some_and(|(_, to)| self.began(process) > Some(to)) => {}
            Kind::Ended => {
                if event.status.as_deref() == Some(NOT_EXECUTED)
                    && let Some(open) = self.running.get(&process).and_then(|run| self.runs.get_mut(run))
                {
                    open.run.is_executed = false;
                }
                let (from, to) = event.between.unwrap_or((now, now));
                let told = micros_of(event);
                let is_known = self.running.contains_key(&process) || self.ended.contains(&process);
                // A sweep only finds programs of which it has read the start, and does not know how long they
                // ran.
                let is_before = told.map_or(event.between.is_some(), |told| {
                    now.saturating_sub(told).saturating_add(EXACT) < first
                });
                self.closing.started_before += u64::from(is_before && !is_known);
                self.end(process, (from, to), told, now, sink);
            }
            Kind::Expired | Kind::Evicted => {
                if event.has_left()
                    && let Some(holder) = event.holder
                {
                    self.end((process.0, holder), (now, now), None, now, sink);
                }
                sink.noted(event, now);
            }
            Kind::WouldRefuse | Kind::Measured => sink.noted(event, now),
        }
    }

    /// When the last launch of a process began, if it has slots.
    fn began(&self, process: Process) -> Option<u64> {
        self.runs.get(self.running.get(&process)?).map(|open| open.run.began)
    }

    fn start(&mut self, process: Process, event: &Event, sink: &mut dyn Sink) {
        let began = event.micros();
        // Another process has got the number, so the previous one has ended.
        if let Some(before) = self.running.remove(&process) {
            self.had_ended(before, began, sink);
            self.close(before, began);
        }
        let (fate, arrived) = match self.waited.remove(&process) {
            None => (LaunchOutcome::AtOnce, began),
            Some(Waited { micros, arrived }) => {
                (LaunchOutcome::Waited, came(began, arrived.or(event.arrived), micros))
            }
        };
        let launch = self.next;
        let mut slots = Vec::new();
        let mut taken = Vec::new();
        let (mut is_bounded, mut followed) = (true, 0_u64);
        for Own { repository, slots: own, joined, seen } in own_tables(event) {
            let count = own.as_ref().map_or(1, Runs::count);
            let own = own.filter(|own| own.count() <= MOST_SLOTS.min(MOST_OF_LAUNCH - followed));
            followed += own.as_ref().map_or(0, Runs::count);
            let table = own.as_ref().and_then(|_| self.table(repository, seen, &event.host));
            let (Some(own), Some(number)) = (own, table) else {
                is_bounded = false;
                taken.push(Taken { repository, table, count, seen, occupied: count });
                continue;
            };
            let mut is_shared = false;
            for slot in own.slots() {
                let holder = Holder { launch, session: launch, began, host: process.0, runs: true };
                let Some(table) = self.tables.with_room(number, slot) else {
                    is_bounded = false;
                    continue;
                };
                is_bounded &= table.is_one;
                if joined.has(slot)
                    && let Some(first) = table.join(slot, holder)
                {
                    is_shared = true;
                    self.share(number, slot, first, launch);
                    continue;
                }
                let before = table.take(slot, holder).filter(|_| table.is_one);
                for before in before.into_iter().flat_map(Holders::into_all) {
                    if let Some(open) = self.runs.get_mut(&before.launch) {
                        open.is_taken_elsewhere |= before.host != process.0;
                    }
                    self.had_ended(before.launch, began.saturating_sub(1), sink);
                }
            }
            let Some(table) = self.tables.get(number) else { continue };
            taken.push(Taken { repository, table: Some(number), count, seen, occupied: table.running });
            slots.push(Held {
                table: number,
                repository: Arc::clone(&table.repository),
                slots: own,
                is_one: table.is_one,
                is_shared,
                time: None,
            });
        }
        self.look(began, event);
        self.next += 1;
        sink.launched(&Launched { number: launch, event, at: began, arrived, fate, taken: &taken });
        let run = Run {
            launch,
            began,
            from: began,
            to: u64::MAX,
            end: End::Missed,
            is_bounded,
            told: None,
            is_executed: true,
            slots,
        };
        self.runs
            .insert(launch, Open { run, process, gone: None, is_taken_elsewhere: false, is_closed: false });
        self.running.insert(process, launch);
        while self.runs.len() > MOST_RUNS
            && let Some((oldest, _)) = self.runs.first_key_value()
        {
            let oldest = *oldest;
            self.tell(oldest, began, sink);
        }
    }

    /// A launch has joined a slot of `first`'s, which is another launch's too.
    fn share(&mut self, table: u32, slot: u64, first: Holder, launch: usize) {
        let began = first.began;
        let session = self.sessions.entry((table, slot, first.session));
        let session = session.or_insert(Session { time: Time { began, from: began, to: began }, left: 0 });
        if let Some(open) = self.runs.get_mut(&first.launch) {
            let before = self.members.insert((table, slot, first.launch), first.session);
            session.left += usize::from(before.is_none());
            open.run
                .slots
                .iter_mut()
                .filter(|held| held.table == table)
                .for_each(|held| held.is_shared = true);
        }
        session.left += 1;
        self.members.insert((table, slot, launch), first.session);
    }

    /// Moves the slots that a launch shared with others from its use to that of the last of them.
    fn leave_groups(&mut self, run: &mut Run) {
        let mut together: Vec<Held> = Vec::new();
        for held in run.slots.iter_mut().filter(|held| held.is_shared) {
            let (mut own, table) = (Vec::new(), held.table);
            for slot in held.slots.slots() {
                let Some(first) = self.members.remove(&(table, slot, run.launch)) else {
                    own.push(slot);
                    continue;
                };
                let Some(session) = self.sessions.get_mut(&(table, slot, first)) else { continue };
                let Time { began, from, to } = session.time;
                session.time =
                    Time { began: began.min(run.began), from: from.max(run.from), to: to.max(run.to) };
                session.left = session.left.saturating_sub(1);
                let time = Some(session.time);
                if session.left == 0 {
                    self.sessions.remove(&(table, slot, first));
                    let (repository, slots) = (Arc::clone(&held.repository), Runs::of(&[slot]));
                    together.push(Held { repository, slots, time, ..*held });
                }
            }
            held.slots = Runs::of(&own);
        }
        run.slots.extend(together);
    }

    fn refuse(&mut self, process: Process, event: &Event, sink: &mut dyn Sink) {
        self.waited.remove(&process);
        let at = event.micros();
        let arrived = came(at, event.arrived, micros_of(event));
        let fate = if event.seconds.is_some() { LaunchOutcome::TimedOut } else { LaunchOutcome::Refused };
        self.look(at, event);
        let number = self.next;
        self.next += 1;
        sink.launched(&Launched { number, event, at, arrived, fate, taken: &[] });
    }

    /// A program has ended between these moments, as the log says now.
    fn end(
        &mut self,
        process: Process,
        (from, to): (u64, u64),
        told: Option<u64>,
        now: u64,
        sink: &mut dyn Sink,
    ) {
        let Some(number) = self.running.remove(&process) else { return };
        if self.ended.len() >= MOST_RUNS {
            self.ended.clear();
        }
        self.ended.insert(process);
        let Some(open) = self.runs.get_mut(&number) else { return };
        let run = &mut open.run;
        // A slot has two holders for longer only in tables of different hosts.
        let is_elsewhere =
            open.is_taken_elsewhere && open.gone.is_some_and(|gone| from.saturating_sub(gone) > LATE);
        if is_elsewhere || to < run.to {
            run.to = to;
        }
        let from = if to.saturating_sub(from) > EXACT { from } else { to };
        run.from = run.from.max(from).min(run.to);
        (run.end, run.told) = (End::Seen, told);
        let (launch, at) = (run.launch, run.to);
        for held in &open.run.slots {
            let table = self.tables.get_mut(held.table);
            let is_free = table.is_none_or(|table| {
                table.seen += 1;
                table.give_back(launch, &held.slots)
            });
            if is_elsewhere && !self.reading.is_by_host {
                self.closing.of_each_host.get_or_insert_with(|| held.repository.as_ref().to_owned());
            }
            if is_free {
                sink.freed(held.table, &held.repository, at);
            }
        }
        self.close(number, now);
    }

    /// It had ended by then, whatever is recorded later.
    fn had_ended(&mut self, number: usize, by: u64, sink: &mut dyn Sink) {
        let Some(open) = self.runs.get_mut(&number) else { return };
        let run = &mut open.run;
        if open.is_closed {
            // The process that saw the end was late. A much later time belongs to another table.
            if run.to > by && run.to - by <= LATE {
                run.to = by.max(run.began);
                run.from = run.from.min(run.to);
            }
            return;
        }
        if open.gone.is_some_and(|gone| gone <= by) {
            return;
        }
        open.gone = Some(by);
        run.to = run.to.min(by.max(run.began));
        was_alive(run, &self.tables);
        let (launch, to) = (run.launch, run.to);
        for held in &open.run.slots {
            let table = self.tables.get_mut(held.table);
            if table.is_none_or(|table| table.give_back(launch, &held.slots)) {
                sink.freed(held.table, &held.repository, to);
            }
        }
    }

    fn close(&mut self, number: usize, now: u64) {
        if let Some(open) = self.runs.get_mut(&number).filter(|open| !open.is_closed) {
            open.is_closed = true;
            self.closed.push_back((now, number));
        }
    }

    /// The state of the tables that a decision saw.
    fn look(&mut self, at: u64, event: &Event) {
        for seen in event.tables.iter().filter(|seen| !seen.shared) {
            let Some(number) = self.table(&seen.repository, Some(seen), &event.host) else { continue };
            match seen.held.as_deref().map(Runs::parse) {
                Some(Some(held)) => {
                    self.look_at(number, &held, at, event);
                    if event.event == Kind::Started {
                        self.look_for(number, seen.limit, seen.limit, at);
                    }
                }
                _ => {
                    if let Some(most) = seen.most_held() {
                        self.look_for(number, most, seen.limit, at);
                    }
                }
            }
        }
    }

    /// A launch was decided then, and saw the held slots a moment later.
    fn look_at(&mut self, number: u32, held: &Runs, at: u64, event: &Event) {
        let Some(table) = self.tables.get_mut(number).filter(|table| table.is_compared()) else { return };
        if table.running == held.count() && table.running().all(|(slot, _)| held.has(slot)) {
            table.all_alive = at.saturating_add(1).max(table.all_alive);
            return;
        }
        // Another host's slots cannot be seen where each has lock files of its own.
        let host = hash_of(&event.host);
        let (there, gone): (Vec<_>, Vec<_>) = table.running().partition(|(slot, _)| held.has(*slot));
        let gone = gone.into_iter().flat_map(|(_, holders)| holders.all());
        let holders: Vec<Holder> = gone.filter(|holder| holder.host == host).copied().collect();
        // Which of several programs still have a slot is not seen.
        let there = there.into_iter().filter_map(|(_, holders)| holders.only());
        let there: Vec<usize> =
            there.filter(|holder| holder.host == host).map(|holder| holder.launch).collect();
        for launch in there {
            if let Some(open) = self.runs.get_mut(&launch).filter(|open| !open.is_closed) {
                open.run.from = open.run.from.max(at.saturating_add(1)).min(open.run.to);
            }
        }
        if !holders.is_empty() {
            // A refusal sees the slots that the launch could have had, and not the others.
            let tells_which = event.event == Kind::Started;
            self.explain_later(Look { at: event.written(), table: number, most: 0, tells_which, holders });
        }
    }

    /// The maximum number of held slots up to this one that a launch saw.
    fn look_for(&mut self, number: u32, most: u64, up_to: u64, at: u64) {
        let Some(table) = self.tables.get(number) else { return };
        if table.running <= most || !table.is_compared() {
            return;
        }
        let holders: Vec<Holder> = table
            .running()
            .filter(|(slot, _)| *slot <= up_to)
            .filter_map(|(_, of)| of.only().copied())
            .collect();
        if holders.len() as u64 > most {
            self.explain_later(Look { at, table: number, most, tells_which: false, holders });
        }
    }

    fn explain_later(&mut self, look: Look) {
        if self.looked_at + look.holders.len() <= MOST_LOOKED_AT {
            self.looked_at += look.holders.len();
            self.looks.push_back(look);
        }
    }

    /// Resolves earlier decisions, now that the ends near them are known: the run with the next known end
    /// after such a decision had ended by then. If the decision shows it, a run without an end in the log had
    /// ended too.
    fn explain_looks(&mut self, before: u64, sink: &mut dyn Sink) {
        while self.looks.front().is_some_and(|look| look.at < before) {
            let Some(look) = self.looks.pop_front() else { return };
            self.looked_at -= look.holders.len();
            let all_alive = self.tables.get(look.table).map_or(0, |table| table.all_alive);
            let mut still: Vec<(u64, usize)> = Vec::new();
            for holder in &look.holders {
                let Some(open) = self.runs.get(&holder.launch) else { continue };
                let is_shared =
                    || open.run.slots.iter().any(|held| held.table == look.table && held.is_shared);
                let is_alive = open.run.from > look.at && !open.is_closed
                    || holder.began < all_alive && all_alive > look.at && !is_shared();
                if open.run.to >= look.at && !is_alive {
                    still.push((open.run.to, holder.launch));
                }
            }
            let excess =
                usize::try_from((still.len() as u64).saturating_sub(look.most)).unwrap_or(usize::MAX);
            still.sort_unstable();
            let (mut explained, by) = (0, look.at.saturating_sub(1));
            for (end, launch) in still.into_iter().take(excess) {
                let is_late = end != u64::MAX && end - look.at <= LATE;
                if is_late || look.tells_which && end == u64::MAX {
                    if let Some(open) = self.runs.get_mut(&launch).filter(|open| open.run.end != End::Seen) {
                        open.run.from = open.run.from.max(all_alive.min(by));
                    }
                    self.had_ended(launch, by, sink);
                    explained += 1;
                }
            }
            if let Some(table) = self.tables.get_mut(look.table) {
                table.unexplained = if explained == excess { 0 } else { table.unexplained + 1 };
            }
        }
    }

    /// Reports the runs that were closed before then.
    fn tell_closed(&mut self, before: u64, sink: &mut dyn Sink) {
        while self.closed.front().is_some_and(|(at, _)| *at < before) {
            let Some((_, number)) = self.closed.pop_front() else { return };
            self.tell(number, before, sink);
        }
    }

    /// Reports one, which lasted until `last` at most.
    fn tell(&mut self, number: usize, last: u64, sink: &mut dyn Sink) {
        let Some(Open { mut run, process, .. }) = self.runs.remove(&number) else { return };
        if self.running.get(&process) == Some(&number) {
            self.running.remove(&process);
        }
        if run.to == u64::MAX {
            run.to = last.max(run.began);
            was_alive(&mut run, &self.tables);
        }
        run.from = run.from.clamp(run.began.min(run.to), run.to);
        if run.end == End::Missed {
            for held in &run.slots {
                if let Some(table) = self.tables.get_mut(held.table) {
                    table.missed += 1;
                }
            }
        }
        if !self.members.is_empty() {
            self.leave_groups(&mut run);
        }
        sink.ended(&run);
    }

    /// The number of a table.
    fn table(&mut self, repository: &str, seen: Option<&TableSeen>, host: &str) -> Option<u32> {
        let mut hasher = DefaultHasher::new();
        (repository, seen.and_then(|seen| seen.member.as_deref())).hash(&mut hasher);
        if self.reading.is_by_host {
            host.hash(&mut hasher);
        }
        let is_one = seen.is_some() || self.reading.single.contains(repository);
        self.tables.number(hasher.finish(), repository, is_one)
    }
}

/// Makes numbers possible: users who may append to a log can write any. A decision is about as old as its
/// event, nothing ended after its event, and no limit is higher than the highest.
fn believe(event: &mut Event) {
    let told = event.time.saturating_mul(1000);
    event.decided = event.decided.filter(|decided| decided.abs_diff(told) <= DAY);
    let by = event.written();
    event.between = event.between.map(|(from, to)| (from.min(by), to.min(by)));
    for seen in &mut event.tables {
        let numbers = [&mut seen.limit, &mut seen.kept, &mut seen.lent];
        let known = [&mut seen.used, &mut seen.limit_of_all, &mut seen.room];
        for number in numbers.into_iter().chain(known.into_iter().flatten()) {
            *number = (*number).min(u64::from(HIGHEST_LIMIT));
        }
    }
}

/// A launch that saw all known slots held also saw this run.
fn was_alive(run: &mut Run, tables: &Tables) {
    let own = run.slots.iter().filter(|held| !held.is_shared);
    let seen = own.filter_map(|held| tables.get(held.table)).map(|table| table.all_alive);
    run.from = seen.chain([run.from]).max().unwrap_or(run.from).min(run.to);
}

/// A repository of a start with the launch's own slots, and the state of the table that it saw. A log without
/// replay has no tables.
struct Own<'e> {
    repository: &'e str,
    slots: Option<Runs>,
    /// Those of them that other programs of its group had.
    joined: Runs,
    seen: Option<&'e TableSeen>,
}

fn own_tables(event: &Event) -> Vec<Own<'_>> {
    let mut before: Vec<&str> = Vec::new();
    let mut own = Vec::new();
    for text in &event.repositories {
        let (name, slots) = text.split_once('=').unwrap_or((text, ""));
        let mut seen: Vec<&TableSeen> =
            event.tables.iter().filter(|table| table.repository == name).collect();
        // Several rules may have asked for slots of one table.
        let mut members = HashSet::new();
        seen.retain(|table| members.insert(&table.member));
        let nth = before.iter().filter(|known| **known == name).count();
        before.push(name);
        let table = seen.get(nth).copied();
        // Slots that are shared with an ancestor were acquired by the ancestor.
        if !seen.is_empty() && table.is_none_or(|table| table.shared) {
            continue;
        }
        let joined = event.joined.iter().filter_map(|text| text.split_once('='));
        let joined = joined.filter(|(joined, _)| *joined == name).nth(nth);
        let joined = joined.and_then(|(_, slots)| Runs::parse(slots)).filter(|of| of.count() <= MOST_JOINED);
        let (slots, joined) = (Runs::parse(slots), joined.unwrap_or_default());
        own.push(Own { repository: name, slots, joined, seen: table });
    }
    own
}

fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn micros_of(event: &Event) -> Option<u64> {
    event.duration().map(|duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

/// When a launch came that was decided at this moment, in microseconds since 1970. If it measured another
/// wait than the time since its arrival, the clock of the host was set in between.
fn came(decided: u64, arrived: Option<u64>, waited: Option<u64>) -> u64 {
    let measured = waited.map(|waited| decided.saturating_sub(waited));
    let is_true = |arrived: &u64| measured.is_none_or(|measured| measured.abs_diff(*arrived) <= EXACT);
    arrived.filter(is_true).or(measured).unwrap_or(decided).min(decided)
}

// Events in the order in which they were decided. The first to decide may be the last to log it.

/// How long after its decision an event may be logged, in microseconds; later ones are not waited for.
pub(super) const LATE: u64 = 5_000_000;

/// More events than these are never kept waiting.
const MOST: usize = 4096;

/// Events that may have to be sorted behind later ones.
#[derive(Default)]
pub(super) struct InOrder {
    /// Each with the moment of its decision; among equals in the order in which they came.
    waiting: VecDeque<(u64, Event)>,
}

impl InOrder {
    /// One event more. Nearly always it is the newest. Events of which only the millisecond is known happened
    /// after those of that millisecond that are before them in the log.
    pub(super) fn add(&mut self, mut event: Event) {
        let mut moment = event.micros();
        if event.decided.is_none() {
            let millisecond = moment..moment.saturating_add(1000);
            let later = self.waiting.iter().rev().map(|(other, _)| *other);
            let last = later.take_while(|other| *other >= moment).find(|other| millisecond.contains(other));
            moment = last.map_or(moment, |last| (last + 1).min(millisecond.end - 1));
            event.decided = Some(moment);
        }
        let before = self.waiting.iter().rposition(|(other, _)| *other <= moment);
        self.waiting.insert(before.map_or(0, |before| before + 1), (moment, event));
    }

    /// The next one, if no later one can precede it any more.
    pub(super) fn due(&mut self) -> Option<Event> {
        let ((oldest, _), (newest, _)) = (self.waiting.front()?, self.waiting.back()?);
        let is_due = newest - oldest > LATE || self.waiting.len() > MOST;
        is_due.then(|| self.waiting.pop_front()).flatten().map(|(_, event)| event)
    }

    /// All remaining events.
    pub(super) fn into_rest(self) -> impl Iterator<Item = Event> {
        self.waiting.into_iter().map(|(_, event)| event)
    }
}

// How a launch ended.

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum LaunchOutcome {
    /// It started at once.
    AtOnce,
    /// It waited, and started.
    Waited,
    Refused,
    /// It waited, and its wait timed out.
    TimedOut,
}

impl LaunchOutcome {
    pub const ALL: [Self; 4] = [Self::AtOnce, Self::Waited, Self::Refused, Self::TimedOut];

    /// Whether a program was started.
    pub fn has_started(self) -> bool {
        matches!(self, Self::AtOnce | Self::Waited)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::AtOnce => "started at once",
            Self::Waited => "started after a wait",
            Self::Refused => "refused",
            Self::TimedOut => "refused after a wait",
        }
    }
}
