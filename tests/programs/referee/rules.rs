//! What must hold at every moment of a storm.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use super::caps::{Caps, Member};
use super::held_slots::HeldSlot;
use super::line::Line;
use super::process::{self, Process};
use super::repository::{Context, Repository, Snapshot, Ticket};

/// A slot may outlive its command for so long: its supervisor has to be scheduled.
const LONGEST_RELEASE: f64 = 2.0;

/// Somebody in the queue may be passed for so long by what is free: ten seconds are promised, and a launcher
/// has to be scheduled.
const LONGEST_IDLE: f64 = 15.0;

/// No launch of the storm wants more of one repository.
const MOST_SLOTS: usize = 2;

/// Somebody of whom it is known that a launch keeps a slot for them.
#[derive(Debug)]
#[expect(dead_code, reason = "what is only printed counts as unused")]
struct Holder {
    slot: i64,
    pid: i32,
    /// When the launch began.
    begun: f64,
}

/// The slots that launches keep, as far as all keepers of a slot are of one.
fn holders(examination: &Context, processes: &BTreeMap<i32, Process>) -> Vec<Holder> {
    let holder = |(slot, keepers): &(HeldSlot, Vec<i32>)| {
        let begun = |pid: &i32| Some((*pid, processes.get(pid)?.begun()?));
        let known = keepers.iter().map(begun).collect::<Option<Vec<_>>>()?;
        let (pid, begun) = known.into_iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
        Some(Holder { slot: slot.number, pid, begun })
    };
    examination.keepers.iter().filter_map(holder).collect()
}

/// What the referee knows.
pub(crate) struct Referee {
    directory: PathBuf,
    rungate: String,
    slack: f64,
    caps: Caps,
    repositories: BTreeMap<Member, Repository>,
    lines: BTreeMap<Member, Line>,
    /// When they were last checked.
    looked: BTreeMap<Member, f64>,
    /// Slots that no program has, and since when.
    ownerless: BTreeMap<(Member, i64), f64>,
    reported: BTreeSet<String>,
}

impl Referee {
    pub(crate) fn new(directory: &str, rungate: &str, slack: f64) -> Self {
        let directory = PathBuf::from(directory);
        Self {
            caps: Caps::new(directory.join("work/caps")),
            directory,
            rungate: rungate.to_owned(),
            slack,
            repositories: BTreeMap::new(),
            lines: BTreeMap::new(),
            looked: BTreeMap::new(),
            ownerless: BTreeMap::new(),
            reported: BTreeSet::new(),
        }
    }

    /// Looks at everything once, and says what is wrong and was not said before.
    pub(crate) fn look(&mut self) -> io::Result<Vec<String>> {
        self.caps.refresh(process::now());
        let mut now = BTreeMap::new();
        for member in self.caps.members() {
            let repository = self
                .repositories
                .entry(member.clone())
                .or_insert_with(|| Repository::new(&self.directory, &member.file));
            repository.refresh();
            if let Some(snapshot) = repository.snapshot()? {
                now.insert(member, snapshot);
            }
        }
        self.caps.refresh(process::now());
        let processes = process::all(&self.directory.to_string_lossy());
        let mut wrong = Vec::new();
        for (member, snapshot) in now {
            self.follow(&member, &snapshot, &processes);
            wrong.extend(self.idle(&member, &snapshot));
            if self.is_suspicious(&member, &snapshot, &processes) {
                let pids: Vec<i32> = processes.keys().copied().collect();
                if let Some(examination) = self.repositories[&member].examine(&pids)? {
                    self.caps.refresh(process::now());
                    self.follow(&member, &examination.snapshot, &processes);
                    let holders = holders(&examination, &processes);
                    wrong.extend(self.crowded(&member, &holders));
                    wrong.extend(self.overtaken(&member, &holders, &processes));
                }
            }
        }
        // Whoever started meanwhile may have come to a file that was not there before.
        self.repositories.values_mut().for_each(Repository::refresh);
        wrong.extend(self.lost(&processes)?);
        wrong.extend(self.leaked(&processes)?);
        wrong.extend(self.blocked(&processes));
        wrong.retain(|line| self.reported.insert(line.clone()));
        Ok(wrong)
    }

    /// Whom the storm has stopped at any time: it tells so before it does.
    fn stopped(&self) -> BTreeSet<i32> {
        let stopped = fs::read_to_string(self.directory.join("work/stopped")).unwrap_or_default();
        stopped.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn was_stopped(&self, pid: i32) -> bool {
        self.stopped().contains(&pid)
    }

    fn is_program(&self, process: &Process) -> bool {
        process.executable.starts_with(&*self.directory.join("bin/c").to_string_lossy())
    }

    fn is_launcher(&self, process: &Process) -> bool {
        process.executable == self.rungate
    }

    /// Programs that were started by a launch, and not by a program.
    fn programs<'a>(&self, processes: &'a BTreeMap<i32, Process>) -> Vec<&'a Process> {
        let is_child =
            |process: &Process| processes.get(&process.parent).is_some_and(|parent| self.is_program(parent));
        processes.values().filter(|process| self.is_program(process) && !is_child(process)).collect()
    }

    fn follow(&mut self, member: &Member, snapshot: &Snapshot, processes: &BTreeMap<i32, Process>) {
        let before = self.looked.insert(member.clone(), snapshot.taken).unwrap_or(f64::MIN);
        let begun = |pid| processes.get(&pid).and_then(Process::begun);
        self.lines.entry(member.clone()).or_default().follow(snapshot, before, begun);
    }

    /// Whether it makes sense to ask who keeps what.
    fn is_suspicious(
        &self,
        member: &Member,
        snapshot: &Snapshot,
        processes: &BTreeMap<i32, Process>,
    ) -> bool {
        let limit = self.caps.highest(member, snapshot.taken);
        if limit.is_some_and(|limit| snapshot.held.len() > limit) {
            return true;
        }
        let has = |process: &&Process| {
            let is_held = |slot| snapshot.held.iter().any(|held| held.number == slot);
            process.claims().into_iter().any(|(name, slot)| name == member.name && is_held(slot))
        };
        let newest = processes.values().filter(has).filter_map(Process::begun).reduce(f64::max);
        newest.is_some_and(|begun| self.lines[member].waiting_since_before(begun).next().is_some())
    }

    /// A lowered limit ends nobody, and who keeps a slot is not always known. But when the last one of those
    /// who are known got its slot, the others had theirs, and a limit that was in force since its launch
    /// began let it in. Peers may be misled by a damaged hint, and strangers lock what they want.
    fn crowded(&self, member: &Member, holders: &[Holder]) -> Option<String> {
        let oldest = holders.iter().map(|holder| holder.begun).reduce(f64::min)?;
        let limit = self.caps.highest(member, oldest)?;
        (holders.len() > limit)
            .then(|| format!("crowded {}: {} of {limit} are held: {holders:?}", member.file, holders.len()))
    }

    /// A launch began when somebody was in the queue already whom nobody may pass, and has a slot, and they
    /// are still in the queue: they neither left it nor were they stopped or silent meanwhile. Peers know
    /// nothing of lines.
    fn overtaken(
        &self,
        member: &Member,
        holders: &[Holder],
        processes: &BTreeMap<i32, Process>,
    ) -> Option<String> {
        // Where going beyond is allowed, nobody has to wait for others.
        self.caps.highest(member, process::now())?;
        let newest = holders.iter().max_by(|one, other| one.begun.total_cmp(&other.begun))?;
        let is_firm = |pid: i32| {
            let is_told = processes.get(&pid).and_then(|process| process.told("PLACE")) == Some("firm");
            is_told && !self.was_stopped(pid)
        };
        let mut overtaken = self.lines[member].waiting_since_before(newest.begun);
        let (number, pid) = overtaken.find(|(_, pid)| is_firm(*pid))?;
        Some(format!("overtaken {}: PID {pid} waits as {number}, and there is {newest:?}", member.file))
    }

    /// Every program has its slot: its process, or a description of its own. Of the latter the kernel does
    /// not say whose they are, so there must be as many as programs. A program that closed everything has
    /// what its supervisor keeps.
    fn lost(&self, processes: &BTreeMap<i32, Process>) -> io::Result<Vec<String>> {
        let mut by_slot: BTreeMap<(&Member, i64), Vec<&Process>> = BTreeMap::new();
        for program in self.programs(processes) {
            let closed = program.environment.get("STORM_ACT").is_some_and(|act| act == "closing");
            let parent = processes.get(&program.parent);
            if closed && !parent.is_some_and(|parent| self.is_launcher(parent)) {
                continue;
            }
            for (name, slot) in program.claims() {
                let member = self
                    .repositories
                    .keys()
                    .find(|member| member.name == name && member.uid.is_none_or(|uid| uid == program.uid));
                if let Some(member) = member {
                    by_slot.entry((member, slot)).or_default().push(program);
                }
            }
        }
        let mut wrong = Vec::new();
        for ((member, slot), programs) in by_slot {
            let holders = self.repositories[member].holders_of(slot)?;
            let shared: Vec<&&Process> =
                programs.iter().filter(|program| !holders.contains(&program.pid)).collect();
            let descriptions = holders.iter().filter(|pid| **pid == -1).count();
            // Whoever has ended since, or lost the supervisor who kept what it closed, need not have its slot
            // any more.
            let is_there = |program: &Process| {
                program.is_still_there() && processes.get(&program.parent).is_none_or(Process::is_still_there)
            };
            if shared.len() > descriptions && programs.iter().all(|program| is_there(program)) {
                let pids: Vec<i32> = shared.iter().map(|program| program.pid).collect();
                wrong.push(format!(
                    "lost {} slot {slot}: claimed by {pids:?}, held by {holders:?}",
                    member.file
                ));
            }
        }
        Ok(wrong)
    }

    /// A program whose process holds a slot that it was not told of; and a slot whose command has ended under
    /// its supervisor, which is kept by whatever the command left behind.
    fn leaked(&mut self, processes: &BTreeMap<i32, Process>) -> io::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let mut ownerless = BTreeMap::new();
        let now = process::now();
        for (member, repository) in &self.repositories {
            for slot in repository.held()? {
                let claim = (member.name.clone(), slot.number);
                if let Some(program) = processes.get(&slot.pid).filter(|process| self.is_program(process)) {
                    if !program.claims().contains(&claim) && program.is_still_there() {
                        wrong.push(format!("leaked {} slot {}: PID {}", member.file, slot.number, slot.pid));
                    }
                    continue;
                }
                let owners: Vec<&Process> = processes
                    .values()
                    .filter(|process| process.claims().contains(&claim))
                    .filter(|process| member.uid.is_none_or(|uid| uid == process.uid))
                    .collect();
                let has = |process: &Process, name: &str, value: &str| {
                    process.environment.get(name).is_some_and(|found| found == value)
                };
                let was_left = |process: &&Process| {
                    !self.is_program(process)
                        && !processes.contains_key(&process.parent)
                        && has(process, "STORM_HOLD", "supervisor")
                        && has(process, "STORM_SPARED", "yes")
                };
                if slot.pid == -1
                    && !owners.is_empty()
                    && owners.iter().all(was_left)
                    && repository.is_kept_by(slot.number, processes.keys().copied(), |pid| {
                        processes.get(&pid).is_some_and(|process| was_left(&process))
                    })
                {
                    let key = (member.clone(), slot.number);
                    let since = *self.ownerless.get(&key).unwrap_or(&now);
                    if now - since > LONGEST_RELEASE {
                        wrong.push(format!("leaked {} slot {}: nobody's", member.file, slot.number));
                    }
                    ownerless.insert(key, since);
                }
            }
        }
        self.ownerless = ownerless;
        Ok(wrong)
    }

    /// The first in the queue of those who answer, while there is room for it.
    fn idle(&mut self, member: &Member, snapshot: &Snapshot) -> Option<String> {
        let stopped = self.stopped();
        let has_room = |ticket: &Ticket| {
            usize::try_from(ticket.limit).is_ok_and(|limit| snapshot.held.len() + MOST_SLOTS <= limit)
        };
        let line = self.lines.get_mut(member)?;
        let ((number, pid), since) = line.idle_since(snapshot, |pid| stopped.contains(&pid), has_room)?;
        (snapshot.taken - since > LONGEST_IDLE)
            .then(|| format!("idle {}: PID {pid} waits as {number}", member.file))
    }

    /// Whoever supervises has a child. Whoever was stopped had no time of its own.
    fn blocked(&self, processes: &BTreeMap<i32, Process>) -> Vec<String> {
        let now = process::now();
        let supervises =
            |launcher: &Process| processes.values().any(|process| process.parent == launcher.pid);
        let launchers =
            processes.values().filter(|process| self.is_launcher(process) && !supervises(process));
        launchers
            .filter_map(|launcher| {
                let wait: f64 = launcher.environment.get("STORM_WAIT")?.parse().ok()?;
                let too_long = now - launcher.started > wait + self.slack;
                (too_long && !self.was_stopped(launcher.pid) && launcher.is_still_there())
                    .then(|| format!("blocked PID {}: for longer than {wait} s", launcher.pid))
            })
            .collect()
    }
}
