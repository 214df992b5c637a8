//! What must hold at every moment of a storm.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use super::caps::{Caps, Member};
use super::held_slots::HeldSlot;
use super::process::{self, Process};
use super::repository::{Repository, Snapshot, Ticket};

/// A launch of which nothing is known began not longer ago than this.
const LONGEST_LAUNCH: f64 = 60.0;

/// A slot may outlive its command for so long: its supervisor has to be scheduled.
const LONGEST_RELEASE: f64 = 2.0;

/// What the referee knows.
pub(crate) struct Referee {
    directory: PathBuf,
    rungate: String,
    slack: f64,
    caps: Caps,
    repositories: BTreeMap<Member, Repository>,
    /// The programs of the last look.
    before: BTreeMap<i32, String>,
    /// Since when somebody sleeps in a line.
    asleep: BTreeMap<(Member, u64, Ticket), f64>,
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
            before: BTreeMap::new(),
            asleep: BTreeMap::new(),
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
        self.note_sleepers(&now);
        let mut wrong = Vec::new();
        for (member, snapshot) in &now {
            wrong.extend(self.crowded(member, snapshot, &processes));
            wrong.extend(self.overtaken(member, snapshot, &processes)?);
        }
        // Whoever started meanwhile may have come to a file that was not there before.
        self.repositories.values_mut().for_each(Repository::refresh);
        wrong.extend(self.lost(&processes)?);
        wrong.extend(self.leaked(&processes)?);
        wrong.extend(self.blocked(&processes));
        let programs = self.programs(&processes).into_iter();
        self.before = programs.map(|program| (program.pid, program.executable.clone())).collect();
        wrong.retain(|line| self.reported.insert(line.clone()));
        Ok(wrong)
    }

    /// Whether the storm has stopped this process at any time, and told so before it did.
    fn was_stopped(&self, pid: i32) -> bool {
        let stopped = fs::read_to_string(self.directory.join("work/stopped")).unwrap_or_default();
        stopped.lines().any(|line| line == pid.to_string())
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

    /// When the launch began that holds this slot.
    fn launch_of(&self, member: &Member, slot: HeldSlot, processes: &BTreeMap<i32, Process>) -> Option<f64> {
        if slot.pid > 0 {
            return process::started(slot.pid);
        }
        // The child of a program says of itself what its parent says: the first of them began.
        let claim = (member.name.clone(), slot.number);
        let owners = processes.values().filter(|process| {
            process.claims().contains(&claim) && member.uid.is_none_or(|uid| uid == process.uid)
        });
        let begun = owners.map(|owner| {
            let parent = processes.get(&owner.parent).filter(|parent| self.is_launcher(parent));
            parent.map_or(owner.started, |parent| parent.started.min(owner.started))
        });
        begun.reduce(f64::min)
    }

    /// A lowered limit ends nobody, but each holder was let in under a limit that was in force since its launch began.
    fn crowded(
        &self,
        member: &Member,
        snapshot: &Snapshot,
        processes: &BTreeMap<i32, Process>,
    ) -> Option<String> {
        let oldest = snapshot
            .held
            .iter()
            .map(|slot| self.launch_of(member, *slot, processes).unwrap_or(snapshot.taken - LONGEST_LAUNCH))
            .fold(snapshot.taken, f64::min);
        let limit = self.caps.highest(member, oldest)?;
        (snapshot.held.len() > limit).then(|| {
            format!(
                "crowded {}: {} of {limit} are held: {:?}",
                member.file,
                snapshot.held.len(),
                snapshot.held
            )
        })
    }

    /// Somebody who is in line and has been asleep for all the time that a younger launch, which has no claim to more room, needed
    /// to come, to get a slot and to start its program. Peers know nothing of lines.
    fn overtaken(
        &self,
        member: &Member,
        snapshot: &Snapshot,
        processes: &BTreeMap<i32, Process>,
    ) -> io::Result<Option<String>> {
        for slot in &snapshot.held {
            let claim = (member.name.clone(), slot.number);
            let mut owners = self.programs(processes).into_iter().filter(|process| {
                process.claims().contains(&claim) && (slot.pid == process.pid || slot.pid == -1)
            });
            // Of two, one has the slot in a file that stood here before. Who did not run before the snapshot was taken may have
            // got the slot since.
            let (Some(owner), None) = (owners.next(), owners.next()) else { continue };
            if self.before.get(&owner.pid) != Some(&owner.executable)
                || self.repositories[member].holders_of(slot.number)?.len() != 1
                || !owner.is_still_there()
            {
                continue;
            }
            let Some(launch) = self.launch_of(member, *slot, processes) else { continue };
            let Some(limit) = self.caps.highest(member, launch) else { return Ok(None) };
            let overtaken = snapshot.line.iter().find(|ticket| {
                self.asleep
                    .get(&(member.clone(), snapshot.inode, **ticket))
                    .is_some_and(|since| *since < launch)
                    && arrival(ticket.number) < launch
                    && usize::try_from(ticket.limit).is_ok_and(|own| own >= limit)
            });
            if let Some(ticket) = overtaken {
                return Ok(Some(format!(
                    "overtaken {}: PID {} waits since {:.2} ({}), and PID {} of {launch:.2} got {slot:?}",
                    member.file,
                    ticket.pid,
                    arrival(ticket.number),
                    ticket.limit,
                    owner.pid
                )));
            }
        }
        Ok(None)
    }

    /// Who sleeps in line, and since when: a process that has come to run in between is another entry.
    fn note_sleepers(&mut self, now: &BTreeMap<Member, Snapshot>) {
        let mut asleep = BTreeMap::new();
        for (member, snapshot) in now {
            for ticket in snapshot.line.iter().filter(|ticket| ticket.runs.is_some()) {
                let key = (member.clone(), snapshot.inode, *ticket);
                let since = self.asleep.get(&key).copied().unwrap_or(snapshot.taken);
                asleep.insert(key, since);
            }
        }
        self.asleep = asleep;
    }

    /// Every program has its slot: its process, or a description of its own. Of the latter the kernel does not say whose they
    /// are, so there must be as many as programs. A program that closed everything has what its supervisor keeps.
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
            // Whoever has ended since, or lost the supervisor who kept what it closed, need not have its slot any more.
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

    /// A program whose process holds a slot that it was not told of; and a slot whose command has ended under its supervisor,
    /// which is kept by whatever the command left behind.
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
                if slot.pid == -1 && !owners.is_empty() && owners.iter().all(was_left) {
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

/// When a ticket's launch arrived, in seconds since boot.
#[allow(clippy::cast_precision_loss, reason = "a number of 47 bits")]
fn arrival(number: i64) -> f64 {
    number as f64 / 16_384.0
}
