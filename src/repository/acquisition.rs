//! All or none. The files of all claims are opened first, because no descriptor of a file may be closed once a lock is on
//! it; then their mutexes are taken in the order of device and inode, which rules out a circle of launches that wait for
//! each other; then everything is decided; and only when there is room everywhere is anything taken, recorded and written.
//! A file that was replaced between opening and locking makes the whole start over.

use std::{
    collections::BTreeMap,
    path::Path,
    rc::Rc,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    repository::{
        admission::{Room, Terms, View},
        claim::{Admit, Claim, Demand, NamedSlots},
        error::RepositoryError,
        file::LockFile,
        header::Header,
        held::Held,
        hold::Hold,
        holder::{Holder, holders},
        layout::record_at,
        mutex::MutexGuard,
        nested,
        record::{Record, short_boot_id},
    },
    sys::{
        descriptor::{FileId, Inherited},
        process::{self, Process},
    },
};

/// What a launch brings along, besides its claims.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The command as typed, for the records.
    pub command: &'a str,
    /// The node name, for the records.
    pub host: &'a str,
    /// The real user.
    pub uid: u32,
    /// The descriptors that the caller left open.
    pub inherited: &'a Inherited,
    /// What the environment says of slots that ancestors hold.
    pub ancestors: &'a [NamedSlots],
    /// The lowest number for descriptors that go to the program.
    pub descriptor_floor: i32,
}

/// How an attempt to take slots ended.
#[derive(Debug)]
#[must_use]
pub enum Outcome {
    /// Everything was taken.
    Admitted(Admitted),
    /// Nothing was taken.
    Refused(Vec<Refused>),
}

/// What a launch holds.
pub struct Admitted {
    /// By file.
    held: Vec<Held>,
    /// For each claim that counted.
    slots: Vec<NamedSlots>,
    /// Claims that found no room and are not enforced, by number.
    unenforced: Vec<usize>,
}

impl std::fmt::Debug for Admitted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Admitted").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl Admitted {
    /// Each repository's name and slots, in the order of the claims.
    pub fn slots(&self) -> &[NamedSlots] {
        &self.slots
    }

    /// The claims that would have refused the launch if they were enforced, numbered as in [`Refused::claim`].
    pub fn unenforced(&self) -> &[usize] {
        &self.unenforced
    }

    /// Hands everything over to the program that this process is about to become.
    pub fn keep_across_exec(&self) -> Result<(), RepositoryError> {
        self.held.iter().try_for_each(Held::keep_across_exec)
    }
}

/// A claim that could not be met.
#[derive(Debug)]
pub struct Refused {
    /// Which one: the claims of all demands, counted through from 0.
    pub claim: usize,
    /// Why.
    pub reason: Reason,
}

/// Why a claim could not be met.
#[derive(Debug)]
pub enum Reason {
    /// The limit is reached.
    Full {
        /// How many slots are held.
        used: u64,
        /// Who holds them, by slot.
        holders: Vec<Holder>,
        /// Whether nobody but this process and its ancestors stands in the way, so that waiting would never end.
        only_ancestors: bool,
    },
    /// More slots are wanted than the limit allows.
    Never,
}

/// How often everything starts over when files are replaced, or locked by somebody without the mutex.
const ATTEMPTS: usize = 50;

/// Takes what all demands ask for, or nothing.
pub fn acquire(demands: &[Demand], launch: &Launch<'_>) -> Result<Outcome, RepositoryError> {
    let mut disturbed = None;
    for _ in 0..ATTEMPTS {
        match Attempt::open(demands, launch)?.conclude()? {
            Ok(outcome) => return Ok(outcome),
            Err(disturbance) => disturbed = Some(disturbance),
        }
    }
    Err(match disturbed {
        Some(Disturbance::Locked(file)) => RepositoryError::LockedMeanwhile { path: file.path().to_owned() },
        Some(Disturbance::Replaced(file)) => {
            RepositoryError::ReplacedTooOften { path: file.path().to_owned() }
        }
        None => unreachable!("at least one attempt was made"),
    })
}

/// Why an attempt has to start over.
enum Disturbance {
    /// The path leads to another file now.
    Replaced(Rc<LockFile>),
    /// Somebody locked a slot without holding the mutex.
    Locked(Rc<LockFile>),
}

/// One attempt: the claims, and the files that they lead to.
struct Attempt<'a> {
    launch: &'a Launch<'a>,
    demands: Vec<Vec<Choice<'a>>>,
    files: BTreeMap<FileId, Rc<LockFile>>,
}

/// A claim, its number, and its file.
#[derive(Clone, Copy)]
struct Choice<'a> {
    number: usize,
    claim: &'a Claim,
    file: FileId,
}

impl<'a> Attempt<'a> {
    fn open(demands: &'a [Demand], launch: &'a Launch<'a>) -> Result<Self, RepositoryError> {
        let mut attempt = Self { launch, demands: Vec::new(), files: BTreeMap::new() };
        let mut by_path: BTreeMap<&Path, FileId> = BTreeMap::new();
        let mut number = 0;
        for demand in demands {
            let mut choices = Vec::new();
            for claim in demand.options() {
                let file = match by_path.get(claim.path.as_path()) {
                    Some(file) => *file,
                    None => attempt.open_file(claim)?,
                };
                by_path.insert(&claim.path, file);
                choices.push(Choice { number, claim, file });
                number += 1;
            }
            attempt.demands.push(choices);
        }
        Ok(attempt)
    }

    fn open_file(&mut self, claim: &Claim) -> Result<FileId, RepositoryError> {
        let file = LockFile::open_to_lock(
            &claim.path,
            &claim.creation,
            claim.owner,
            self.launch.inherited,
            self.launch.descriptor_floor,
        )?;
        let id = file.id();
        // Of two paths to one file the first one's descriptor stays: no lock is on either yet, so closing this one is harmless.
        self.files.entry(id).or_insert_with(|| Rc::new(file));
        Ok(id)
    }

    fn conclude(self) -> Result<Result<Outcome, Disturbance>, RepositoryError> {
        let mut mutexes = Vec::with_capacity(self.files.len());
        for file in self.files.values() {
            mutexes.push(MutexGuard::lock(file)?);
        }
        for choice in self.demands.iter().flatten() {
            let file = &self.files[&choice.file];
            if !file.is_still_at(&choice.claim.path) {
                return Ok(Err(Disturbance::Replaced(Rc::clone(file))));
            }
        }
        let joined = self.join()?;
        let mut views = BTreeMap::new();
        for (id, file) in &self.files {
            if !joined.contains_key(id) {
                views.insert(*id, View::of(file)?);
            }
        }
        let mut picked = Vec::new();
        if !self.choose(&mut views, &mut picked)? {
            return self.refuse(&mut views).map(|refused| Ok(Outcome::Refused(refused)));
        }
        self.take(views, joined, &picked)
    }

    /// The files whose every claim is met by slots of an ancestor.
    fn join(&self) -> Result<BTreeMap<FileId, Held>, RepositoryError> {
        let mut joined = BTreeMap::new();
        if self.launch.ancestors.is_empty() {
            return Ok(joined);
        }
        for (id, file) in &self.files {
            let claims: Vec<&Claim> = self
                .demands
                .iter()
                .flatten()
                .filter(|choice| choice.file == *id)
                .map(|choice| choice.claim)
                .collect();
            if let Some(held) = nested::join(file, &claims, self.launch.ancestors, self.launch.command)? {
                joined.insert(*id, held);
            }
        }
        Ok(joined)
    }

    /// Finds the first combination, in the order of preference, that can be had as a whole.
    fn choose(
        &self,
        views: &mut BTreeMap<FileId, View<'_>>,
        picked: &mut Vec<Choice<'a>>,
    ) -> Result<bool, RepositoryError> {
        let Some(choices) = self.demands.get(picked.len()) else { return Ok(true) };
        for choice in choices {
            picked.push(*choice);
            let room = match views.get_mut(&choice.file) {
                Some(view) => view.room(&terms_on(choice.file, picked))?,
                None => Room::Free(Vec::new()),
            };
            let admitted = match room {
                Room::Free(_) => true,
                Room::Full => choice.claim.admit == Admit::Unenforced,
                Room::Never => false,
            };
            if admitted && self.choose(views, picked)? {
                return Ok(true);
            }
            picked.pop();
        }
        Ok(false)
    }

    fn take(
        &self,
        mut views: BTreeMap<FileId, View<'_>>,
        mut joined: BTreeMap<FileId, Held>,
        picked: &[Choice<'a>],
    ) -> Result<Result<Outcome, Disturbance>, RepositoryError> {
        let mut held: BTreeMap<FileId, Held> = BTreeMap::new();
        for (id, view) in &mut views {
            if !picked.iter().any(|choice| choice.file == *id) {
                continue;
            }
            let file = &self.files[id];
            let Room::Free(slots) = view.room(&terms_on(*id, picked))? else { continue };
            let mut taken = Held::nothing_of(file);
            if !taken.take(&slots)? {
                return Ok(Err(Disturbance::Locked(Rc::clone(file))));
            }
            held.insert(*id, taken);
        }
        let now = SystemTime::now();
        for (id, taken) in &held {
            if let Some(view) = views.get_mut(id) {
                self.write_down(view, taken, picked, now)?;
            }
        }
        held.append(&mut joined);
        let mut slots: Vec<NamedSlots> = Vec::new();
        let mut unenforced = Vec::new();
        for choice in picked {
            match held.get(&choice.file) {
                Some(taken) if slots.iter().all(|other| other.name != choice.claim.name) => {
                    slots.push(NamedSlots { name: choice.claim.name.clone(), slots: taken.slots().to_vec() });
                }
                Some(_) => {}
                None => unenforced.push(choice.number),
            }
        }
        Ok(Ok(Outcome::Admitted(Admitted { held: held.into_values().collect(), slots, unenforced })))
    }

    /// Records first, then what tells others where to look.
    fn write_down(
        &self,
        view: &mut View<'_>,
        taken: &Held,
        picked: &[Choice<'a>],
        now: SystemTime,
    ) -> Result<(), RepositoryError> {
        let file = taken.file();
        let rule = picked
            .iter()
            .find(|choice| choice.file == file.id())
            .map_or("", |choice| choice.claim.rule.as_str());
        let record = self.record(rule, now).encode();
        for slot in taken.slots() {
            file.write_at(&record, record_at(*slot))?;
        }
        let last = taken.slots().iter().copied().max().unwrap_or(0);
        let header = Header { cursor: last + 1, last_start: Some(now), ..view.header().clone() };
        header.write(file)?;
        if let Some(hint) = view.new_hint(taken.slots())? {
            Header::write_hint(file, hint)?;
        }
        Ok(())
    }

    fn record(&self, rule: &str, now: SystemTime) -> Record {
        Record {
            pid: process::own_pid(),
            supervisor: None,
            start: Process::this().map_or(0, |process| process.started),
            uid: self.launch.uid,
            since: now
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0)),
            hold: Hold::Process,
            boot: process::boot_id().map(|id| short_boot_id(&id)).unwrap_or_default(),
            host: self.launch.host.to_owned(),
            rule: rule.to_owned(),
            command: self.launch.command.to_owned(),
        }
    }

    /// Every claim that stands in the way. A hint that would mislead an exectimes peer is mended on the way.
    fn refuse(&self, views: &mut BTreeMap<FileId, View<'_>>) -> Result<Vec<Refused>, RepositoryError> {
        let needed: Vec<Choice<'a>> = self
            .demands
            .iter()
            .filter_map(|choices| if let [only] = choices.as_slice() { Some(*only) } else { None })
            .collect();
        let mut refused = Vec::new();
        for choices in &self.demands {
            let mut refusals = Vec::new();
            for choice in choices {
                let mut together: Vec<Choice<'a>> = needed.clone();
                together.push(*choice);
                let Some(view) = views.get_mut(&choice.file) else { continue };
                let room = view.room(&terms_on(choice.file, &together))?;
                if let Some(reason) = self.reason(choice, &room, view)? {
                    refusals.push(Refused { claim: choice.number, reason });
                }
            }
            if refusals.len() == choices.len() {
                refused.append(&mut refusals);
            }
        }
        Ok(refused)
    }

    fn reason(
        &self,
        choice: &Choice<'a>,
        room: &Room,
        view: &mut View<'_>,
    ) -> Result<Option<Reason>, RepositoryError> {
        let file = &self.files[&choice.file];
        match room {
            Room::Free(_) => Ok(None),
            Room::Never => Ok(Some(Reason::Never)),
            Room::Full if choice.claim.admit == Admit::Unenforced => Ok(None),
            Room::Full => {
                let occupancy = view.occupancy()?.clone();
                if view.hint_misleads()?
                    && let Some(hint) = view.new_hint(&[])?
                {
                    Header::write_hint(file, hint)?;
                }
                let lineage: Vec<i32> = process::own_lineage().collect();
                let only_ancestors = !occupancy.spans().is_empty()
                    && occupancy
                        .spans()
                        .iter()
                        .all(|span| span.pid.is_some_and(|pid| lineage.contains(&pid)));
                Ok(Some(Reason::Full {
                    used: occupancy.held(),
                    holders: holders(file, &occupancy)?,
                    only_ancestors,
                }))
            }
        }
    }
}

/// The claims on one file are one claim.
fn terms_on(file: FileId, picked: &[Choice<'_>]) -> Terms {
    let claims = picked.iter().filter(|choice| choice.file == file).map(|choice| choice.claim);
    Terms::merge(claims).unwrap_or(Terms { limit: 0, slots: 0, zones: Vec::new(), admit: Admit::WithinLimit })
}
