//! Which holders to end: overdue ones, if their end makes room for everything that blocks a launch. No holder
//! is ended in vain.

use std::time::{Duration, Instant, SystemTime};

use super::{
    AcquireContext, Alternative, Blocked, Full, Reason, Refused, SILENCE, Unmet, blocked::leaves_room,
};
use crate::{
    judge::terms::{Claim, Expiry, Terms},
    keeper::{Ending, EvictionOutcome, KeeperError, Occupancy, Overdue, table::Table},
    sys::{Failure, PidFd, process},
};

/// Holders of a claim's table that must be ended, and how.
pub struct Eviction<'c> {
    /// What they block.
    pub claim: &'c Claim,
    /// The terms by which they are overdue.
    pub expiry: Expiry,
    /// The table whose slots they hold.
    pub table: Table,
    /// Those to begin with.
    pub overdue: Vec<Overdue>,
    /// Those that are already being ended.
    pub running: Vec<Overdue>,
}

/// What was done to end a holder. For a group, the last of these counts that holds for a member.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Progress {
    /// It is being ended.
    Running,
    /// Nothing.
    Untried,
    /// It gets no signal any more: it was tried, or is none to be ended.
    Spared,
}

/// The state of holders that are already being ended.
pub struct Known<'k> {
    /// What was done to end a holder.
    pub progress: &'k dyn Fn(&Overdue) -> Progress,
    /// How many slots of a table, of which these are held, become free because holders are just leaving it,
    /// besides these overdue ones.
    pub leaving: &'k dyn Fn(&Table, &Occupancy, &[Overdue]) -> u64,
}

impl Known<'_> {
    /// Returns as many as make room for everything, and true. If there are not enough, it returns those that
    /// cannot be ended, and false.
    pub fn choose<'c>(
        &self,
        all: &[Unmet<'c>],
        now: SystemTime,
    ) -> Result<(Vec<Eviction<'c>>, bool), KeeperError> {
        let mut to_end = Vec::new();
        for unmet in all {
            match self.choose_for(unmet, now)? {
                Ok(found) => to_end.extend(found),
                Err(cannot) => return Ok((cannot, false)),
            }
        }
        Ok((to_end, true))
    }

    /// One alternative is enough: the first for which the end of those makes room that are being ended. If
    /// there is none, the first for which it has to begin with others. None counts in which the launch waits
    /// behind an older one.
    fn choose_for<'c>(
        &self,
        unmet: &Unmet<'c>,
        now: SystemTime,
    ) -> Result<Result<Vec<Eviction<'c>>, Vec<Eviction<'c>>>, KeeperError> {
        let (mut first, mut cannot) = (None, Vec::new());
        for alternative in &unmet.alternatives {
            match self.choose_all(alternative, now)? {
                Ok(found) if found.iter().all(|of| of.overdue.is_empty()) => return Ok(Ok(found)),
                Ok(found) => first = first.or(Some(found)),
                Err(others) => cannot.extend(others),
            }
        }
        Ok(first.ok_or(cannot))
    }

    fn choose_all<'c>(
        &self,
        alternative: &Alternative<'c>,
        now: SystemTime,
    ) -> Result<Result<Vec<Eviction<'c>>, Vec<Eviction<'c>>>, KeeperError> {
        let (mut can, mut cannot) = (Some(Vec::new()), Vec::new());
        for refused in &alternative.refused {
            let (chosen, others) = self.choose_of(refused, now)?;
            can = can.zip(chosen).map(|(mut all, chosen)| {
                all.push(chosen);
                all
            });
            cannot.extend(others);
        }
        Ok(can.ok_or(cannot))
    }

    /// Holders whose end makes room for one claim, if there are enough; otherwise those that cannot be ended.
    fn choose_of<'c>(
        &self,
        refused: &Refused<'c>,
        now: SystemTime,
    ) -> Result<(Option<Eviction<'c>>, Option<Eviction<'c>>), KeeperError> {
        let (Some(expiry), Reason::Full(full)) = (refused.claim.pace.expiry, &refused.reason) else {
            return Ok((None, None));
        };
        // Its slots would be for older launches that wait, would stay taken after its end, or might not be
        // enough.
        if full.is_behind || refused.claim.amount.linger.is_some() || full.no_sample.is_some() {
            return Ok((None, None));
        }
        let terms = full.missing(refused.claim)?;
        let missing = missing(&terms, full)?;
        // Something else refuses it: another claim on the table, or what has changed since.
        if missing == 0 {
            return Ok((None, None));
        }
        let table = full.table();
        let overdue = table.overdue(full.holders(), &expiry, now)?.into_iter();
        let (mut can, mut cannot): (Vec<_>, Vec<_>) = overdue.partition(Overdue::can_be_ended);
        let missing = missing.saturating_sub((self.leaving)(table, full.occupancy()?, &can));
        // The launch already counts on the slots of its group.
        let own = full.shared(refused.claim)?;
        let is_own = |one: &Overdue| one.all().any(|member| own.contains(&member.holder.slots.0));
        let makes_room = |one: &Overdue| terms.allows(one.holder.slots.0) && !is_own(one);
        can.retain(|one| makes_room(one) && self.progress_of(one) != Progress::Spared);
        // Those that are being ended are enough, if they make room.
        can.sort_by_key(|one| self.progress_of(one));
        cannot.retain(|one| makes_room(one) && self.progress_of(one) == Progress::Untried);
        let eviction = |overdue, running| {
            Some(Eviction { claim: refused.claim, expiry, table: table.clone(), overdue, running })
        };
        Ok(match enough(can, missing) {
            Some(chosen) => {
                let is_running = |one: &Overdue| self.progress_of(one) == Progress::Running;
                let (running, overdue) = chosen.into_iter().partition(is_running);
                (eviction(overdue, running), None)
            }
            None => {
                let cannot = cannot.into_iter().flat_map(Overdue::each);
                let cannot = cannot.filter(|one| !one.can_be_ended()).collect();
                (None, eviction(cannot, Vec::new()))
            }
        })
    }

    fn progress_of(&self, overdue: &Overdue) -> Progress {
        overdue.all().map(self.progress).max().unwrap_or(Progress::Untried)
    }
}

/// As many of them as make room for the missing slots; none if they do not.
fn enough(overdue: Vec<Overdue>, mut missing: u64) -> Option<Vec<Overdue>> {
    let mut chosen = Vec::new();
    for overdue in overdue {
        if missing > 0 {
            missing = missing.saturating_sub(overdue.slots);
            chosen.push(overdue);
        }
    }
    (missing == 0).then_some(chosen)
}

/// How many slots have to become free: of all, or of those that the launch may take.
fn missing(terms: &Terms, full: &Full) -> Result<u64, KeeperError> {
    let of_all = full.used().saturating_add(full.outside.slots()).saturating_add(terms.slots);
    let of_all = of_all.saturating_sub(terms.limit);
    let Some(zones) = &terms.zones else { return Ok(of_all) };
    let occupancy = full.occupancy()?;
    let held: u64 = zones.iter().map(|zone| occupancy.held_among(zone.clone())).sum();
    // Slots that are used outside by their names count where they are.
    let named = full.outside.named.iter().filter(|slot| terms.allows(**slot)).count() as u64;
    let beside = full.outside.count.saturating_add(named).saturating_add(terms.slots);
    Ok(of_all.max(held.saturating_add(beside).saturating_sub(terms.usable_slots())))
}

/// Free slots that a launch leaves to older ones. These may be about to take some of them, and the rest may
/// be enough for the launch. So it ends no holder at first.
#[derive(Default)]
pub struct RoomForOlder {
    since: Option<Instant>,
}

/// How long older launches have time to take free slots: until a silent one is passed over, and a second.
/// Unit tests do not need as much.
const TURN: Duration =
    if cfg!(test) { Duration::from_millis(10) } else { SILENCE.saturating_add(Duration::from_secs(1)) };

impl RoomForOlder {
    /// Whether older launches still have time to take such slots, if there are any now.
    pub fn is_new(&mut self, is_there: bool) -> bool {
        let known = self.since.filter(|_| is_there);
        self.since = is_there.then(|| known.unwrap_or_else(Instant::now));
        is_there && known.is_none_or(|since| since.elapsed() < TURN)
    }
}

// Overdue holders are ended if that makes room for everything that blocks a launch. None is ended in vain,
// and a launch that ends a holder continues to look for room meanwhile.

/// Holders that a launch is ending.
#[derive(Default)]
pub struct Endings<'c> {
    running: Vec<Running<'c>>,
    /// No holder gets repeated signals.
    tried: Vec<i32>,
    room_for_older: RoomForOlder,
}

/// A holder that is being ended for one table, or a group of them.
struct Running<'c> {
    claim: &'c Claim,
    table: Table,
    /// How many slots are free when the last of them has ended.
    slots: u64,
    members: Vec<Member>,
}

struct Member {
    overdue: Overdue,
    ending: Ending,
    /// Whether it gets no signal at the moment: its end would not help to make room.
    rests: bool,
}

impl Running<'_> {
    fn holds_in(&self, seen: &Occupancy) -> bool {
        self.members.iter().any(|member| seen.holds(member.overdue.holder.slots.0))
    }

    fn has(&self, overdue: &Overdue) -> bool {
        self.members.iter().any(|member| member.overdue.process() == overdue.process())
    }

    /// Whether one of them is about to release its slots, or has just done so. Until all others see that, the
    /// table may not show it, or its group, as overdue.
    fn is_leaving(&self) -> bool {
        !self.members.iter().all(|member| self.table.proves(&member.ending))
    }
}

impl<'c> Endings<'c> {
    /// Begins to end overdue holders, each once, if that makes room. Returns whether it began with any. One
    /// that it has begun with gets no further signal while its end would be in vain, or its group is not
    /// overdue any more. The tables must not be locked.
    pub fn begin(
        &mut self,
        blocked: &mut Blocked<'c>,
        asker: &AcquireContext<'_>,
    ) -> Result<bool, KeeperError> {
        if blocked.is_final() {
            return Ok(false);
        }
        let (mut chosen, mut makes_room) = self.choose(blocked, true)?;
        if self.room_for_older.is_new(makes_room && leaves_room(&blocked.unmet)?) {
            (chosen, makes_room) = (Vec::new(), false);
        }
        self.rest(&chosen, makes_room);
        // Holders that cannot be ended are named nevertheless.
        let has_begun = self.begin_with_all(chosen, asker);
        self.advance(asker)?;
        Ok(has_begun && makes_room)
    }

    /// Leaves those alone that rest.
    pub fn stop_resting(&mut self, asker: &AcquireContext<'_>) -> Result<(), KeeperError> {
        self.leave_alone_if(asker, |member| member.rests)
    }

    /// Leaves those alone that it has begun with, if the end of these alone no longer makes room.
    pub fn stop_in_vain(
        &mut self,
        blocked: &Blocked<'c>,
        asker: &AcquireContext<'_>,
    ) -> Result<(), KeeperError> {
        let (chosen, makes_room) = self.choose(blocked, false)?;
        self.rest(&chosen, makes_room);
        self.begin_with_all(chosen, asker);
        self.stop_resting(asker)
    }

    /// Those whose end makes room, and whether there are enough; only those that it has begun with, unless it
    /// may begin with others.
    fn choose(
        &self,
        blocked: &Blocked<'c>,
        may_begin: bool,
    ) -> Result<(Vec<Eviction<'c>>, bool), KeeperError> {
        let progress = |overdue: &Overdue| {
            if self.ending_of(overdue).is_some() {
                Progress::Running
            } else if may_begin && !self.was_tried(overdue) {
                Progress::Untried
            } else {
                Progress::Spared
            }
        };
        let leaving = |table: &Table, seen: &Occupancy, named: &[Overdue]| {
            let is_named = |of: &Running<'c>| named.iter().flat_map(Overdue::all).any(|one| of.has(one));
            let others = self.running.iter().filter(|of| of.table.id() == table.id() && !is_named(of));
            // What has left before the table was looked at is free there already.
            let others = others.filter(|of| of.holds_in(seen) && of.is_leaving());
            others.map(|of| of.slots).sum()
        };
        Known { progress: &progress, leaving: &leaving }.choose(&blocked.unmet, SystemTime::now())
    }

    /// Lets all rest, except those whose end makes room.
    fn rest(&mut self, chosen: &[Eviction<'c>], makes_room: bool) {
        let mut needed: Vec<i32> = Vec::new();
        if makes_room {
            let chosen = chosen.iter().flat_map(|of| of.overdue.iter().chain(&of.running));
            needed.extend(chosen.flat_map(Overdue::all).map(Overdue::process));
            let leaving = self.running.iter().filter(|of| of.is_leaving()).flat_map(|of| &of.members);
            needed.extend(leaving.map(|member| member.overdue.process()));
        }
        for member in self.running.iter_mut().flat_map(|of| &mut of.members) {
            member.rests = !needed.contains(&member.overdue.process());
        }
    }

    fn ending_of(&self, overdue: &Overdue) -> Option<&Ending> {
        let member = self.members().find(|member| member.overdue.process() == overdue.process());
        member.map(|member| &member.ending)
    }

    fn was_tried(&self, overdue: &Overdue) -> bool {
        self.tried.contains(&overdue.process()) || self.tried.contains(&overdue.pid)
    }

    fn begin_with_all(&mut self, all: Vec<Eviction<'c>>, asker: &AcquireContext<'_>) -> bool {
        let mut has_begun = false;
        for Eviction { claim, expiry, table, overdue, running } in all {
            let found: Vec<Overdue> = running.into_iter().chain(overdue).collect();
            for one in &found {
                // A process is found once for each run of its slots. Its end frees all of them.
                let slots = found.iter().filter(|other| other.is_same(one)).map(|other| other.slots).sum();
                let all = Overdue { slots, ..one.clone() };
                has_begun |= self.begin_with(claim, &expiry, &table, all, asker);
            }
        }
        has_begun
    }

    /// Begins with a holder, or with those of a group that it does not end for this table yet.
    fn begin_with(
        &mut self,
        claim: &'c Claim,
        expiry: &Expiry,
        table: &Table,
        found: Overdue,
        asker: &AcquireContext<'_>,
    ) -> bool {
        let is_it = |of: &Running<'c>| of.table.id() == table.id() && found.all().any(|one| of.has(one));
        let known = self.running.iter().position(is_it).map(|known| self.running.remove(known));
        let begun = Running { claim, table: table.clone(), slots: 0, members: Vec::new() };
        let mut of = known.unwrap_or(begun);
        // A later look may be for fewer of them.
        of.slots = of.slots.max(found.slots);
        let mut has_begun = false;
        for overdue in found.each() {
            let other = self.ending_of(&overdue);
            if of.has(&overdue) || other.is_none() && self.was_tried(&overdue) {
                continue;
            }
            match table.begin_to_end(&overdue, expiry) {
                Ok(_) if !overdue.can_be_ended() => continue,
                Ok(mut ending) => {
                    if let Some(other) = other {
                        ending.follow(other);
                    }
                    self.tried.extend([overdue.process(), overdue.pid]);
                    of.members.push(Member { overdue, ending, rests: false });
                }
                Err(fate) => {
                    self.tried.extend([overdue.process(), overdue.pid]);
                    (asker.on_expired)(claim, &overdue, fate);
                }
            }
            has_begun = true;
        }
        self.keep(of);
        has_begun
    }

    fn keep(&mut self, of: Running<'c>) {
        self.running.extend(Some(of).filter(|of| !of.members.is_empty()));
    }

    /// Sends the signals that are due to those that do not rest, and checks which holders have ended.
    pub fn advance(&mut self, asker: &AcquireContext<'_>) -> Result<(), KeeperError> {
        for mut of in std::mem::take(&mut self.running) {
            for mut member in std::mem::take(&mut of.members) {
                let Member { overdue, ending, rests } = &mut member;
                let fate = match self.ending_of(overdue) {
                    // A process gets each signal once, for any number of tables.
                    Some(first) => {
                        ending.follow(first);
                        of.table.has_released(ending)
                    }
                    None if *rests => of.table.has_released(ending),
                    None => of.table.advance(ending),
                };
                match fate? {
                    Some(fate) => self.report(of.claim, &member.overdue, fate, asker),
                    None => of.members.push(member),
                }
            }
            self.keep(of);
        }
        Ok(())
    }

    /// Checks which holders have released their slots, and stops ending the others: they no longer block the
    /// launch, or another launch ends them. If they block it again, it starts from the first signal.
    pub fn leave_alone(&mut self, asker: &AcquireContext<'_>) -> Result<(), KeeperError> {
        self.room_for_older = RoomForOlder::default();
        self.leave_alone_if(asker, |_| true)
    }

    fn leave_alone_if(
        &mut self,
        asker: &AcquireContext<'_>,
        is_meant: impl Fn(&Member) -> bool,
    ) -> Result<(), KeeperError> {
        for mut of in std::mem::take(&mut self.running) {
            let all = std::mem::take(&mut of.members).into_iter();
            let (meant, others): (Vec<_>, Vec<_>) = all.partition(&is_meant);
            of.members = others;
            for Member { overdue, ending, .. } in meant {
                match of.table.has_released(&ending)? {
                    Some(fate) => self.report(of.claim, &overdue, fate, asker),
                    None => self.forget(&overdue),
                }
            }
            self.keep(of);
        }
        Ok(())
    }

    /// Reports the outcome. A process that has left can have other slots, or the same ones again, and its
    /// number can be given to another one.
    fn report(
        &mut self,
        claim: &'c Claim,
        overdue: &Overdue,
        fate: EvictionOutcome,
        asker: &AcquireContext<'_>,
    ) {
        if fate.has_left() {
            self.forget(overdue);
        }
        (asker.on_expired)(claim, overdue, fate);
    }

    /// It counts as untried.
    fn forget(&mut self, overdue: &Overdue) {
        self.tried.retain(|pid| ![overdue.process(), overdue.pid].contains(pid));
    }

    /// Whether a holder is still to be ended.
    pub fn are_going_on(&self) -> bool {
        !self.running.is_empty()
    }

    fn members(&self) -> impl Iterator<Item = &Member> {
        self.running.iter().flat_map(|of| &of.members)
    }

    /// The processes to wait for.
    pub fn processes(&self) -> impl Iterator<Item = &PidFd> {
        self.members().map(|member| member.ending.process())
    }

    /// The time until the next signal.
    pub fn left(&self) -> Option<Duration> {
        self.members().filter(|member| !member.rests).map(|member| member.ending.left()).min()
    }

    /// Sleeps until one of them has ended, or a signal is due, at most this long.
    pub fn sleep(&self, longest: Duration) -> Result<(), KeeperError> {
        let longest = self.left().map_or(longest, |left| left.min(longest));
        process::wait_for_any(self.processes(), longest)
            .map(drop)
            .map_err(|errno| KeeperError::Wait(Failure { call: "poll", errno }))
    }
}

#[cfg(test)]
mod tests {
    use tempfile::NamedTempFile;

    use super::*;
    use crate::{
        acquire::tests::stage::{claim, tables},
        judge::terms::{FileLocation, Location, Seats},
        keeper::{BaseDirectories, Holder, Store, file::expiry},
    };

    /// A holder of slots that are not neighbours is found once for each run of them. While it leaves, it
    /// leaves all of them, also if a later look was for fewer. Once it has left it counts as untried: it may
    /// have slots again, or another process its number.
    #[test]
    fn a_holder_of_scattered_slots_leaves_all_of_them() {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let location = Location::File(FileLocation::named(path.to_path_buf(), 0o600));
        let claim = Claim { location, ..claim("seats", 4) };
        tables().asks(|asker| {
            let table = asker.keepers.open(&claim, &asker.launch, &BaseDirectories::default());
            let table = table.expect("an empty file");
            let seats = Seats { shared: Vec::new(), free: vec![1, 3] };
            let held = table.take(&seats, None, &asker.launch, true).expect("a lock file");
            let held = held.expect("the slots are free");
            let own = process::own_pid();
            let holders = [1, 3].map(|slot| Holder { pid: Some(own), ..Holder::unknown(slot..=slot) });
            let Table::File(file) = &table else { panic!("it is a lock file") };
            let found = expiry::chosen(file, &holders).expect("a lock file");
            let runs = found.iter().map(|one| (one.job, one.holder.slots, one.slots));
            assert_eq!(runs.collect::<Vec<_>>(), [(Ok(own), (1, 1), 1), (Ok(own), (3, 3), 1)]);
            let mut endings = Endings::default();
            for of in [&found[..], &found[..1], &found[1..]] {
                let (table, expiry) = (table.clone(), Expiry::AT_REQUEST);
                let (overdue, running) = (of.to_vec(), Vec::new());
                let all = vec![Eviction { claim: &claim, expiry, table, overdue, running }];
                endings.begin_with_all(all, asker);
                let leaving = endings.running.iter().map(|of| (of.members.len(), of.slots));
                assert_eq!(leaving.collect::<Vec<_>>(), [(1, 2)]);
            }
            assert!(endings.was_tried(&found[0]));
            drop(held);
            endings.rest(&[], false);
            endings.advance(asker).expect("a lock file");
            assert!(!endings.are_going_on() && !endings.was_tried(&found[0]));
        });
    }

    /// A launch lacks slots of all, or of those that it may take. Slots that are used outside by their names
    /// count where they are, the others everywhere.
    #[test]
    fn slots_have_to_become_free_where_the_launch_may_take_them() {
        let table = Store::default().table("seats");
        let _held = table.take(&[1, 2, 3, 4]).expect("they are free");
        let lacks = |limit, slots, count, named: &[u64], is_for_all: bool| {
            let mut full = Full::of(&Table::Memory(table.clone()), None, false);
            (full.outside.count, full.outside.named) = (count, named.to_vec());
            let zones = (!is_for_all).then(|| vec![4..=5]);
            missing(&Terms { limit, slots, zones, ..Terms::default() }, &full).expect("a table in memory")
        };
        let of_all = |limit, slots, count, named| lacks(limit, slots, count, named, true);
        assert_eq!((of_all(5, 1, 0, &[]), of_all(5, 3, 0, &[]), of_all(4, 1, 0, &[])), (0, 2, 1));
        assert_eq!((of_all(5, 1, 1, &[]), of_all(5, 1, 0, &[5]), of_all(5, 1, 2, &[5])), (1, 1, 3));
        // Of the slots 4 and 5, the first is held.
        let of_two = |limit, slots, count, named| lacks(limit, slots, count, named, false);
        assert_eq!((of_two(7, 1, 0, &[]), of_two(7, 2, 0, &[]), of_two(7, 1, 1, &[])), (0, 1, 1));
        assert_eq!((of_two(7, 1, 0, &[5]), of_two(7, 1, 0, &[6]), of_two(4, 1, 0, &[])), (1, 0, 1));
    }
}
