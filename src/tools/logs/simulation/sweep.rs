//! The same launches several times: with other samples, or under other limits. Each run has a thread; the
//! number of threads does not affect the result.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    num::NonZero,
    rc::Rc,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::{
    Accounts, Accumulator, Beside, Draw, Judge, LONG_WAIT, Needs, Outcome, Plan, Remembered, See, Tally,
    Terms, Traffic,
};
use crate::{
    acquire::{AcquireContext, AtOnce, Clock, Grant, PlaceInLine, Standing, at_once::at_once},
    judge::terms::Launch,
    keeper::{Class, Holder, Keepers, WaitingProcess, held::Held, memory, outside::Sample},
    policy::{Hours, Policy, Wait},
    sys::Inherited,
    tools::logs::statistics::{LaunchOutcome, Percentiles},
};

/// How often a log is played where durations have to be sampled.
const DRAWS: u64 = 3;

/// The policy and limits of a simulation.
#[derive(Clone, Copy)]
pub struct Trial<'t> {
    /// The launches.
    pub traffic: &'t Traffic,
    /// The users.
    pub accounts: &'t (dyn Accounts + Sync),
    /// The change of the policy.
    pub terms: Terms,
    /// The seed of the samples.
    pub seed: u64,
}

impl Trial<'_> {
    /// Runs the simulation once, and calls `see` for each launch.
    pub fn play(&self, policy: &Policy, number: u64, see: &mut dyn FnMut(usize, Outcome)) -> Tally {
        self.draw(policy, Draw { seed: self.seed, number, is_short: false }, see)
    }

    /// Runs the simulation once, as if each program with an unknown end had ended at once.
    pub fn play_short(&self, policy: &Policy, see: &mut dyn FnMut(usize, Outcome)) -> Tally {
        self.draw(policy, Draw { seed: self.seed, number: 0, is_short: true }, see)
    }

    fn draw(&self, policy: &Policy, draw: Draw, see: &mut dyn FnMut(usize, Outcome)) -> Tally {
        let people = Remembered::new(self.accounts);
        let mut judge = Judge::new(policy, &people, self.terms, &self.traffic.samples);
        play(&mut judge, self.traffic, policy.hours(), draw, see)
    }

    /// Launches that start or not, depending on ends that the log does not have.
    pub fn undecided(&self, policy: &Policy) -> Vec<usize> {
        if self.traffic.vague.is_empty() { Vec::new() } else { self.play_in_doubt(policy).1 }
    }

    /// Runs the simulation once, and tells with its counts the launches that start or not, depending on ends
    /// that the log does not have.
    pub fn play_in_doubt(&self, policy: &Policy) -> (Tally, Vec<usize>) {
        let mut long = vec![false; self.traffic.launches.len()];
        let tally = self.play(policy, 0, &mut |launch, outcome| long[launch] = outcome.fate.has_started());
        let mut undecided = Vec::new();
        if !self.traffic.vague.is_empty() {
            self.play_short(policy, &mut |launch, outcome| {
                if long[launch] != outcome.fate.has_started() {
                    undecided.push(launch);
                }
            });
        }
        (tally, undecided)
    }

    /// Runs the simulation several times with different samples of unknown durations; once if all are known.
    pub fn draws(&self, policy: &Policy, see: &mut dyn FnMut(usize, Outcome)) -> Vec<Tally> {
        let first = self.play(policy, 0, see);
        if first.drawn == 0 {
            return vec![first];
        }
        let numbers: Vec<u64> = (1..DRAWS).collect();
        let others = in_parallel(&numbers, |number| self.play(policy, *number, &mut |_, _| {}));
        [first].into_iter().chain(others).collect()
    }
}

/// Processes several at once, and returns the results in their order.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = Mutex::new(0..items.len());
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::new());
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(place) = take() {
            let result = each(&items[place]);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
        }
    };
    let most = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    thread::scope(|scope| {
        for _ in 1..most {
            scope.spawn(work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The result of one limit of a repository.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub limit: u32,
    /// The launches that want some of the repository.
    pub launches: u64,
    /// The share of them that starts at once.
    pub at_once: f64,
    /// The share of them that is refused.
    pub refused: f64,
    /// The waits of started launches.
    pub waits: Percentiles,
    /// How many slots are in use on average.
    pub used: f64,
    /// How many at most.
    pub most: u64,
    /// How many waits over five minutes there are on a day.
    pub long_waits: f64,
    /// How many refusals there are on a day.
    pub refusals: f64,
    /// Whether the log has enough data for that.
    pub is_known: bool,
}

impl Row {
    /// For a repository, from the counts.
    #[expect(clippy::cast_precision_loss, reason = "shares")]
    pub fn of(limit: u32, name: &str, tally: &Tally, traffic: &Traffic, is_known: bool) -> Self {
        let of = tally.repositories.get(name).cloned().unwrap_or_default();
        let all = of.cell.launches.max(1) as f64;
        let span = traffic.end.saturating_sub(traffic.begin()).max(1) as f64;
        Self {
            limit,
            launches: of.cell.launches,
            at_once: of.cell.at_once as f64 / all,
            refused: of.cell.refused as f64 / all,
            waits: of.waits.percentiles(),
            used: of.slot_time as f64 / span,
            most: of.most,
            long_waits: of.waits.at_least(LONG_WAIT) as f64 / traffic.days(),
            refusals: of.cell.refused as f64 / traffic.days(),
            is_known,
        }
    }
}

/// The lowest limit that starts this share at once; none if no limit does. More seats never start fewer,
/// so only a few limits are tried.
pub fn seats_for(share: f64, range: (u32, u32), mut row: impl FnMut(u32) -> Row) -> Option<u32> {
    let (mut low, mut high) = range;
    if row(high).at_once < share {
        return None;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if row(middle).at_once >= share {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

// A simulated world: launches come at their times in the log, and run as long as they did, under a policy.
// Between two events nothing happens: a launch comes, a program ends, a wait times out, or a time window of
// the policy begins or ends. After each, waiting launches check in the order of the queue, as real ones do.

pub struct World<'w, 'p, 's> {
    judge: &'w mut Judge<'p>,
    traffic: &'w Traffic,
    draw: Draw,
    books: Accumulator<'w, 's>,
    store: memory::Store,
    inherited: Inherited,
    /// Both are the same moment, at which the simulated clock starts.
    origin: Instant,
    begin: u64,
    now: u64,
    time: usize,
    agenda: Agenda,
    programs: Programs,
    /// How many slots of each table are counted as used.
    counted: HashMap<usize, u64>,
    /// The last sample of each repository, from each host and from any.
    samples: HashMap<(String, Option<String>), Rc<Sample>>,
    unmeasured: Rc<Sample>,
    waiting: HashMap<i32, Waiting<'p>>,
}

struct Waiting<'p> {
    launch: usize,
    since: u64,
    plan: Rc<Plan<'p>>,
    place: PlaceInLine,
    /// When it checks without being woken.
    due: Option<u64>,
}

/// Plays everything.
pub fn play(judge: &mut Judge<'_>, traffic: &Traffic, hours: Hours, draw: Draw, see: &mut See<'_>) -> Tally {
    let begin = traffic.begin();
    let books = Accumulator::new(judge.repositories(), begin, hours, see);
    let world = World {
        judge,
        traffic,
        draw,
        books,
        store: memory::Store::default(),
        inherited: Inherited::default(),
        origin: Instant::now(),
        begin,
        now: begin,
        time: 0,
        agenda: Agenda::default(),
        programs: Programs::default(),
        counted: HashMap::new(),
        samples: HashMap::new(),
        unmeasured: Rc::new(Sample::imagined(Duration::ZERO, Vec::new())),
        waiting: HashMap::new(),
    };
    world.play()
}

impl<'p> World<'_, 'p, '_> {
    fn play(mut self) -> Tally {
        self.expect_sample(0);
        for launch in 0..self.traffic.launches.len() {
            let arrived = self.traffic.launches[launch].arrived();
            self.pass_until(arrived);
            self.now = arrived;
            self.time = self.judge.time_at(arrived);
            self.arrive(launch);
        }
        self.close()
    }

    /// Processes all events until then.
    fn pass_until(&mut self, end: u64) {
        loop {
            let next = self.agenda.next_until(end);
            let until = next.unwrap_or(end);
            if !self.waiting.is_empty() {
                self.pass_minutes(until);
            }
            if next.is_none() {
                return;
            }
            let Some((at, event)) = self.agenda.pop() else { return };
            self.now = at;
            self.happen(event);
        }
    }

    /// Waiting launches are judged again when a time window of the policy begins or ends.
    fn pass_minutes(&mut self, until: u64) {
        const MINUTE: u64 = 60_000_000;
        let mut minute = (self.now / MINUTE + 1) * MINUTE;
        while minute <= until && !self.waiting.is_empty() {
            let time = self.judge.time_at(minute);
            if time != self.time {
                (self.now, self.time) = (minute, time);
                self.judge_again();
            }
            minute += MINUTE;
        }
    }

    fn expect_sample(&mut self, number: usize) {
        if let (Some(next), Ok(number)) = (self.traffic.measured.get(number), u32::try_from(number)) {
            self.agenda.expect(next.at.max(self.now), Event::Measured(number));
        }
    }

    /// From now on another sample counts, so all who wait look again.
    fn measured(&mut self, number: usize) {
        let Some(measured) = self.traffic.measured.get(number) else { return };
        let began = Duration::from_micros(measured.began.saturating_sub(self.begin));
        let sample = Rc::new(Sample::imagined(began, measured.lines.clone()));
        for host in [None, Some(measured.host.clone())] {
            self.samples.insert((measured.repository.clone(), host), Rc::clone(&sample));
        }
        self.expect_sample(number + 1);
        self.serve(self.store.all().into_iter().map(|(_, table)| table).collect());
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Measured(number) => self.measured(number as usize),
            Event::End(program) => self.end(program),
            Event::Free(program) => {
                let seats = self.programs.end(program);
                self.give_back(seats);
            }
            Event::Look(id) => {
                if self.waiting.get(&id).is_some_and(|waiting| waiting.due == Some(self.now))
                    && let Some(waiting) = self.waiting.remove(&id)
                {
                    let tables = waiting.place.tables();
                    if self.look(id, waiting).is_none() {
                        self.serve(tables);
                    }
                }
            }
        }
    }

    fn arrive(&mut self, launch: usize) {
        let number = self.traffic.launches[launch].kind;
        let kind = &self.traffic.kinds[number as usize];
        let plan = self.judge.plan(number, kind, self.time, self.now);
        if let Plan::Refused(rule) = &*plan {
            self.books.count_rules(rule.iter().copied());
            return self.came_to(launch, LaunchOutcome::Refused, 0);
        }
        let waiting = Waiting { launch, since: self.now, plan, place: PlaceInLine::default(), due: None };
        let id = i32::try_from(launch % i32::MAX as usize).unwrap_or(0) + 1;
        self.look(id, waiting);
    }

    /// Checks whether a launch can have what it needs. Returns whether it waits.
    fn look(&mut self, id: i32, mut waiting: Waiting<'p>) -> Option<()> {
        let plan = Rc::clone(&waiting.plan);
        let Plan::Needs(needs) = &*plan else {
            waiting.place.leave();
            self.came_to(waiting.launch, LaunchOutcome::TimedOut, self.now - waiting.since);
            return None;
        };
        let kind = self.traffic.launches[waiting.launch].kind as usize;
        let uid = self.traffic.kinds[kind].uid;
        let asker = AcquireContext {
            launch: Launch { command: "", host: "", uid, ancestors: &[], hold: needs.hold },
            keepers: Keepers { inherited: &self.inherited, memory: self.store.clone() },
            generation: self.judge.generation(self.time),
            on_expired: &|_, _, _| {},
            clock: Clock::at(SystemTime::UNIX_EPOCH + Duration::from_micros(self.now)),
        };
        for Beside { table, repository, host } in &needs.beside {
            let sample = self.samples.get(&(repository.clone(), host.clone())).unwrap_or(&self.unmeasured);
            self.store.table(table).imagine(sample);
        }
        waiting.place.imagine(self.instant(self.now));
        let deadline = match needs.longest {
            Some(Wait::For(longest)) => self.instant(waiting.since).checked_add(longest),
            Some(Wait::Forever) | None => None,
        };
        match at_once(&needs.demands, &asker, &mut waiting.place, deadline) {
            Ok(AtOnce::Granted(grant)) => {
                waiting.place.leave();
                self.start(&waiting, needs, grant);
                None
            }
            Ok(AtOnce::Blocked(Standing { refusal, waits: false, .. })) => {
                let has_waited = waiting.place.number().is_some();
                waiting.place.leave();
                self.books.refused(&refusal);
                let fate = if has_waited { LaunchOutcome::TimedOut } else { LaunchOutcome::Refused };
                let wait = self.now - waiting.since;
                self.came_to(waiting.launch, fate, wait);
                None
            }
            Ok(AtOnce::Blocked(Standing { next, .. })) => {
                let (pid, user) = (Some(id), Some(uid));
                waiting.place.belongs_to(&WaitingProcess { pid, user, ..WaitingProcess::default() });
                let due = next.map(|next| self.moment(next));
                if due != waiting.due
                    && let Some(due) = due
                {
                    self.agenda.expect(due.max(self.now), Event::Look(id));
                }
                waiting.due = due.map(|due| due.max(self.now));
                self.waiting.insert(id, waiting);
                Some(())
            }
            // Tables in memory can always be checked.
            Err(_) => None,
        }
    }

    fn start(&mut self, waiting: &Waiting<'p>, needs: &Needs, grant: Grant<'_>) {
        let wait = self.now - waiting.since;
        let mut lingers: Vec<(&str, Duration)> = Vec::new();
        for claim in grant.claims() {
            let Some(name) = claim.location.in_memory() else { continue };
            let Some((_, number)) = needs.tables.iter().find(|(known, _)| known == name) else { continue };
            self.books.given(*number, claim.amount.effective_limit(), wait);
            lingers.extend(claim.amount.linger.map(|linger| (name, linger)));
        }
        let seat = |held| match held {
            Held::Memory(held) => {
                let of = |name: &str| needs.tables.iter().find(|(known, _)| known == name).map(|(_, of)| *of);
                let linger = lingers.iter().filter(|(name, _)| *name == held.table().name());
                let linger = linger.map(|(_, linger)| *linger).max();
                Some(Seat { of: of(held.table().name()), linger, held })
            }
            Held::File(_) | Held::Agent(_) => None,
        };
        let seats: Vec<Seat> = grant.into_held().into_iter().filter_map(seat).collect();
        for seat in seats.iter().filter(|_| !needs.beside.is_empty()) {
            let kind = &self.traffic.kinds[self.traffic.launches[waiting.launch].kind as usize];
            let (uid, host) = (Some(kind.uid), Some(kind.host.clone()));
            let taken = Some(Duration::from_micros(self.now.saturating_sub(self.begin)));
            seat.held.describe(Holder { uid, host, taken, ..Holder::unknown(0..=0) });
        }
        self.count(&seats);
        let (lasts, is_drawn) = self.traffic.lasts(waiting.launch, self.draw);
        if is_drawn {
            self.books.count_drawn();
        }
        let fate =
            if waiting.due.is_some() || wait > 0 { LaunchOutcome::Waited } else { LaunchOutcome::AtOnce };
        if !seats.is_empty() {
            let program = self.programs.start(seats);
            self.agenda.expect(self.now.saturating_add(lasts), Event::End(program));
        }
        self.came_to(waiting.launch, fate, wait);
    }

    fn end(&mut self, program: u32) {
        let moment = SystemTime::UNIX_EPOCH + Duration::from_micros(self.now);
        let mut free = Vec::new();
        for seat in self.programs.end(program) {
            seat.held.table().ended(moment);
            match seat.linger.filter(|_| seat.held.group().is_some()) {
                Some(linger) => {
                    seat.held.linger(None);
                    let over = self.now.saturating_add(u64::try_from(linger.as_micros()).unwrap_or(u64::MAX));
                    let program = self.programs.start(vec![seat]);
                    self.agenda.expect(over, Event::Free(program));
                }
                None => free.push(seat),
            }
        }
        self.give_back(free);
    }

    fn give_back(&mut self, mut seats: Vec<Seat>) {
        for seat in &mut seats {
            seat.held.release();
        }
        self.count(&seats);
        self.serve(seats.iter().map(|seat| seat.held.table().clone()).collect());
    }

    /// Adds the use of these tables that is not counted yet. The programs of a group have a slot together.
    fn count(&mut self, seats: &[Seat]) {
        for Seat { held, of, .. } in seats {
            let (used, table) = (held.table().used(), held.table().number());
            let counted = self.counted.entry(table).or_default();
            if let Some(of) = of {
                let by = i64::try_from(used).unwrap_or(0) - i64::try_from(*counted).unwrap_or(0);
                self.books.change(*of, self.now, by);
            }
            *counted = used;
        }
    }

    /// Something has happened to these tables: their waiters look, in the order of the queue. Launches behind
    /// one that keeps waiting need not check.
    fn serve(&mut self, tables: Vec<memory::Table>) {
        let mut todo = tables;
        while let Some(table) = todo.pop() {
            if table.has_no_line() {
                continue;
            }
            let mut blocked: Vec<Class> = Vec::new();
            for waiter in table.waiters() {
                if blocked.iter().any(|older| !waiter.class.passes(*older)) {
                    continue;
                }
                let Some(waiting) = waiter.process.pid.and_then(|id| self.waiting.remove(&id)) else {
                    continue;
                };
                let id = waiter.process.pid.unwrap_or_default();
                let number = waiter.number;
                let others = waiting.place.tables();
                if self.look(id, waiting).is_some() {
                    blocked.extend(table.classes_of(number));
                } else {
                    todo.extend(others.into_iter().filter(|other| !other.is(&table) && !other.has_no_line()));
                }
            }
        }
    }

    /// All waiting launches are judged by the current limits, the oldest first.
    fn judge_again(&mut self) {
        let mut ids: Vec<(u64, usize, i32)> =
            self.waiting.iter().map(|(id, waiting)| (waiting.since, waiting.launch, *id)).collect();
        ids.sort_unstable();
        for (_, launch, id) in ids {
            let Some(mut waiting) = self.waiting.remove(&id) else { continue };
            let number = self.traffic.launches[launch].kind;
            let kind = &self.traffic.kinds[number as usize];
            waiting.plan = self.judge.plan(number, kind, self.time, self.now);
            let tables = waiting.place.tables();
            if self.look(id, waiting).is_none() {
                self.serve(tables);
            }
        }
    }

    fn came_to(&mut self, launch: usize, fate: LaunchOutcome, wait: u64) {
        self.books.came_to(launch, self.traffic.launches[launch], fate, wait);
    }

    fn instant(&self, at: u64) -> Instant {
        self.origin + Duration::from_micros(at - self.begin)
    }

    fn moment(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.origin).as_micros();
        self.begin.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// After the last launch: those who wait still get their turn, and what runs on is counted until the log
    /// ends.
    fn close(mut self) -> Tally {
        let end = self.traffic.end.max(self.now);
        self.pass_until(end);
        self.now = end;
        self.books.end_of_log(end);
        while !self.waiting.is_empty() {
            let Some((at, event)) = self.agenda.pop() else { break };
            self.pass_minutes_after(at);
            self.now = at;
            self.happen(event);
        }
        let left: Vec<usize> = self.waiting.drain().map(|(_, waiting)| waiting.launch).collect();
        for launch in left {
            let since = self.traffic.launches[launch].arrived();
            self.came_to(launch, LaunchOutcome::TimedOut, end.saturating_sub(since));
        }
        self.books.close()
    }

    fn pass_minutes_after(&mut self, at: u64) {
        // No launch waits for years, so distant events are handled when they come.
        const DAY: u64 = 86_400_000_000;
        if at.saturating_sub(self.now) < 32 * DAY {
            self.pass_minutes(at);
        }
    }
}

// A future event and its time.

/// What will happen.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Event {
    /// A program ends.
    End(u32),
    /// What stayed taken after the end of a program is free.
    Free(u32),
    /// The use outside rungate was measured.
    Measured(u32),
    /// A launch that waits has to check whether its time is over.
    Look(i32),
}

/// All future events. Ends at a moment precede other events of that moment.
#[derive(Default)]
pub(super) struct Agenda {
    events: BinaryHeap<Reverse<(u64, bool, u32, Event)>>,
    sequence: u32,
}

impl Agenda {
    /// Adds an event at this time.
    pub(super) fn expect(&mut self, at: u64, event: Event) {
        self.sequence = self.sequence.wrapping_add(1);
        let is_look = matches!(event, Event::Look(_));
        self.events.push(Reverse((at, is_look, self.sequence, event)));
    }

    /// The time of the next event, if it is before this.
    pub(super) fn next_until(&self, end: u64) -> Option<u64> {
        self.events.peek().map(|Reverse((at, ..))| *at).filter(|at| *at <= end)
    }

    /// What happens next.
    pub(super) fn pop(&mut self) -> Option<(u64, Event)> {
        self.events.pop().map(|Reverse((at, .., event))| (at, event))
    }
}

// The programs that run, each with what it holds.

/// What a program holds of one table.
pub(super) struct Seat {
    pub(super) held: memory::Held,
    /// The number of the repository.
    pub(super) of: Option<usize>,
    /// How long it stays taken after the end of the program.
    pub(super) linger: Option<Duration>,
}

/// All programs that run, by number.
#[derive(Default)]
pub(super) struct Programs {
    running: Vec<Vec<Seat>>,
    free: Vec<u32>,
}

impl Programs {
    /// One more. Says its number.
    pub(super) fn start(&mut self, seats: Vec<Seat>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.running[place as usize] = seats;
            return place;
        }
        self.running.push(seats);
        u32::try_from(self.running.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn end(&mut self, number: u32) -> Vec<Seat> {
        self.free.push(number);
        std::mem::take(&mut self.running[number as usize])
    }
}
