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
        admitted::Admitted,
        blocking::Blocked,
        claim::{Admit, Claim, Demand, NamedSlots, Pause},
        error::RepositoryError,
        expiry::{Fate, Overdue},
        file::{LockFile, Opening},
        header::Header,
        held::Held,
        hold::Hold,
        holder,
        layout::record_at,
        line::{Number, Ticket},
        mutex::MutexGuard,
        nested,
        record::{Record, short_boot_id},
        refused::{Reason, Refused},
    },
    sys::{
        descriptor::FileId,
        process::{self, Process},
        stops::StopsHeldBack,
    },
};

/// What a launch brings along, besides its claims.
pub struct Launch<'a> {
    /// The command as typed, for the records.
    pub command: &'a str,
    /// The node name, for the records.
    pub host: &'a str,
    /// The real user.
    pub uid: u32,
    /// What the environment says of slots that ancestors hold.
    pub ancestors: &'a [NamedSlots],
    /// How its files are opened.
    pub opening: Opening<'a>,
    /// Is told of every overdue holder that had to go.
    pub on_expired: &'a dyn Fn(&Claim, &Overdue, Fate),
}

/// How an attempt to take slots ended.
#[must_use]
pub enum Outcome {
    /// Everything was taken.
    Admitted(Admitted),
    /// Nothing was taken.
    Refused(Vec<Refused>),
}

/// How often everything starts over when files are replaced, or locked by somebody without the mutex.
const ATTEMPTS: usize = 50;

/// Takes what all demands ask for, or nothing; waits for nobody.
pub fn acquire(demands: &[Demand], launch: &Launch<'_>) -> Result<Outcome, RepositoryError> {
    let mut acquisition = Acquisition::open(demands, launch)?;
    let mut has_ended_holders = false;
    loop {
        let (decided, mutexes) = acquisition.attempt(Number::of_newcomer(), &mut Vec::new())?;
        drop(mutexes);
        let mut blocked = match decided {
            Decided::Admitted(admitted) => return Ok(Outcome::Admitted(admitted)),
            Decided::Blocked(blocked) => blocked,
        };
        if has_ended_holders || !acquisition.end_overdue(&mut blocked)? {
            acquisition.count_waiting(&mut blocked.refused)?;
            return Ok(Outcome::Refused(blocked.refused));
        }
        has_ended_holders = true;
    }
}

/// A claim, its number, and its file.
#[derive(Clone, Copy)]
pub(super) struct Choice<'a> {
    pub(super) number: usize,
    pub(super) claim: &'a Claim,
    pub(super) file: FileId,
}

/// What a look at all files came to.
pub(super) enum Decided {
    Admitted(Admitted),
    Blocked(Blocked),
}

/// Why an attempt has to start over.
enum Disturbance {
    /// The path leads to another file now.
    Replaced(Rc<LockFile>),
    /// Somebody locked a slot without holding the mutex.
    Locked(Rc<LockFile>),
}

impl From<Disturbance> for RepositoryError {
    fn from(disturbance: Disturbance) -> Self {
        match disturbance {
            Disturbance::Replaced(file) => Self::ReplacedTooOften { path: file.path().to_owned() },
            Disturbance::Locked(file) => Self::LockedMeanwhile { path: file.path().to_owned() },
        }
    }
}

/// The claims of a launch, and the files that they lead to, open.
pub(super) struct Acquisition<'a> {
    pub(super) launch: &'a Launch<'a>,
    wanted: &'a [Demand],
    pub(super) demands: Vec<Vec<Choice<'a>>>,
    files: BTreeMap<FileId, Rc<LockFile>>,
    /// Overdue holders that were tried to end once: nobody is sent signals again and again.
    pub(super) tried: Vec<i32>,
}

/// The mutexes of all files, held; and nobody's Ctrl-Z stops this process meanwhile.
#[must_use = "the mutexes are given back when this is dropped"]
pub(super) struct Mutexes {
    _guards: Vec<MutexGuard>,
    // Dropped after the guards: whoever is to stop gives the mutexes back first.
    _stops: StopsHeldBack,
}

impl<'a> Acquisition<'a> {
    pub(super) fn open(demands: &'a [Demand], launch: &'a Launch<'a>) -> Result<Self, RepositoryError> {
        let mut acquisition =
            Self { launch, wanted: demands, demands: Vec::new(), files: BTreeMap::new(), tried: Vec::new() };
        acquisition.open_files()?;
        Ok(acquisition)
    }

    fn open_files(&mut self) -> Result<(), RepositoryError> {
        let wanted = self.wanted;
        self.demands.clear();
        self.files.clear();
        let mut by_path: BTreeMap<&Path, FileId> = BTreeMap::new();
        let mut number = 0;
        for demand in wanted {
            let mut choices = Vec::new();
            for claim in demand.options() {
                let file = match by_path.get(claim.path.as_path()) {
                    Some(file) => *file,
                    None => self.open_file(claim)?,
                };
                by_path.insert(&claim.path, file);
                choices.push(Choice { number, claim, file });
                number += 1;
            }
            self.demands.push(choices);
        }
        Ok(())
    }

    fn open_file(&mut self, claim: &Claim) -> Result<FileId, RepositoryError> {
        let file = LockFile::open_to_lock(&claim.path, &claim.creation, claim.owner, &self.launch.opening)?;
        let id = file.id();
        // Of two paths to one file the first one's descriptor stays: no lock is on either yet, so closing this one is harmless.
        self.files.entry(id).or_insert_with(|| Rc::new(file));
        Ok(id)
    }

    /// The file with this identity.
    pub(super) fn file(&self, id: FileId) -> &Rc<LockFile> {
        &self.files[&id]
    }

    /// Every claim, with its number.
    pub(super) fn choices(&self) -> impl Iterator<Item = &Choice<'a>> {
        self.demands.iter().flatten()
    }

    /// Looks at everything, and takes it if all of it can be had by a launch with this number. The mutexes are still held
    /// when it answers. Tickets are given up where files have to be opened anew, because closing one would drop them unseen.
    pub(super) fn attempt(
        &mut self,
        number: Number,
        tickets: &mut Vec<Ticket>,
    ) -> Result<(Decided, Mutexes), RepositoryError> {
        let mut attempts = 1;
        loop {
            let mutexes = Mutexes {
                _guards: self.files.values().map(MutexGuard::lock).collect::<Result<_, _>>()?,
                _stops: StopsHeldBack::begin(),
            };
            let disturbance = match self.replaced_file() {
                Some(file) => Disturbance::Replaced(file),
                None => match self.decide(number)? {
                    Ok(decided) => return Ok((decided, mutexes)),
                    Err(disturbance) => disturbance,
                },
            };
            drop(mutexes);
            if attempts == ATTEMPTS {
                return Err(disturbance.into());
            }
            attempts += 1;
            if matches!(disturbance, Disturbance::Replaced(_)) {
                tickets.clear();
                self.open_files()?;
            }
        }
    }

    fn replaced_file(&self) -> Option<Rc<LockFile>> {
        self.choices()
            .map(|choice| (self.file(choice.file), &choice.claim.path))
            .find(|(file, path)| !file.is_still_at(path))
            .map(|(file, _)| Rc::clone(file))
    }

    fn decide(&self, number: Number) -> Result<Result<Decided, Disturbance>, RepositoryError> {
        let joined = self.join()?;
        let mut views = BTreeMap::new();
        for (id, file) in &self.files {
            if !joined.contains_key(id) {
                views.insert(*id, View::of(file, number)?);
            }
        }
        let refused = self.too_soon(&views)?;
        if !refused.is_empty() {
            return Ok(Ok(Decided::Blocked(Blocked { refused, files: Vec::new(), is_final: true })));
        }
        let mut picked = Vec::new();
        if self.choose(&mut views, &mut picked)? {
            return self.take(views, joined, &picked);
        }
        let blocked = self.blocked(&mut views, false)?;
        if !blocked.by_the_line_alone() {
            return Ok(Ok(Decided::Blocked(blocked)));
        }
        // A line is left without the mutex: whoever was ahead may have gone since. Nobody joins it meanwhile.
        picked.clear();
        if self.choose(&mut views, &mut picked)? {
            return self.take(views, joined, &picked);
        }
        // What is free by itself, and not to be had, is in the way of something else.
        let blocked = self.blocked(&mut views, true)?;
        Ok(match self.files.values().next() {
            Some(file) if blocked.refused.is_empty() => Err(Disturbance::Locked(Rc::clone(file))),
            _ => Ok(Decided::Blocked(blocked)),
        })
    }

    /// The files whose every claim is met by slots of an ancestor.
    fn join(&self) -> Result<BTreeMap<FileId, Held>, RepositoryError> {
        let mut joined = BTreeMap::new();
        if self.launch.ancestors.is_empty() {
            return Ok(joined);
        }
        for (id, file) in &self.files {
            let claims: Vec<&Claim> =
                self.choices().filter(|choice| choice.file == *id).map(|choice| choice.claim).collect();
            if let Some(held) = nested::join(file, &claims, self.launch)? {
                joined.insert(*id, held);
            }
        }
        Ok(joined)
    }

    /// Claims whose pause is not over. One among several alternatives only keeps that alternative from being chosen, and is
    /// looked at there.
    fn too_soon(&self, views: &BTreeMap<FileId, View<'_>>) -> Result<Vec<Refused>, RepositoryError> {
        let now = SystemTime::now();
        let mut refused = Vec::new();
        for choices in &self.demands {
            let mut reasons = Vec::new();
            for choice in choices {
                let Some(view) = views.get(&choice.file) else { continue };
                if let Some(reason) = self.too_soon_for(choice, view, now)? {
                    reasons.push(Refused { claim: choice.number, reason });
                }
            }
            if reasons.len() == choices.len() {
                refused.append(&mut reasons);
            }
        }
        Ok(refused)
    }

    pub(super) fn too_soon_for(
        &self,
        choice: &Choice<'_>,
        view: &View<'_>,
        now: SystemTime,
    ) -> Result<Option<Reason>, RepositoryError> {
        let Some(pause) = enforced_pause(choice.claim) else { return Ok(None) };
        let Some(last) = too_soon(pause, view.header(), now) else { return Ok(None) };
        let uid = holder::who_started(self.file(choice.file), view.header(), last)?;
        let Pause { length, from_end, silent } = pause;
        Ok(Some(Reason::TooSoon { last, uid, pause: length, from_end, silent }))
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
            if Self::can_be_had(choice, views, picked)? && self.choose(views, picked)? {
                return Ok(true);
            }
            picked.pop();
        }
        Ok(false)
    }

    fn can_be_had(
        choice: &Choice<'a>,
        views: &mut BTreeMap<FileId, View<'_>>,
        picked: &[Choice<'a>],
    ) -> Result<bool, RepositoryError> {
        let Some(view) = views.get_mut(&choice.file) else { return Ok(true) };
        let paused = enforced_pause(choice.claim)
            .is_some_and(|pause| too_soon(pause, view.header(), SystemTime::now()).is_some());
        Ok(match view.room(&terms_on(choice.file, picked))? {
            Room::Free(_) => !paused,
            Room::Full | Room::Behind | Room::Never => choice.claim.admit == Admit::Unenforced,
        })
    }

    fn take(
        &self,
        mut views: BTreeMap<FileId, View<'_>>,
        mut joined: BTreeMap<FileId, Held>,
        picked: &[Choice<'a>],
    ) -> Result<Result<Decided, Disturbance>, RepositoryError> {
        let mut held: BTreeMap<FileId, Held> = BTreeMap::new();
        for (id, view) in &mut views {
            if !picked.iter().any(|choice| choice.file == *id) {
                continue;
            }
            let file = self.file(*id);
            let slots = match view.room(&terms_on(*id, picked))? {
                Room::Free(slots) => slots,
                _ if is_unenforced(*id, picked) => continue,
                // It was there when the claim was chosen. Whatever has changed since: no launch starts without its slots.
                _ => return Ok(Err(Disturbance::Locked(Rc::clone(file)))),
            };
            let mut taken = Held::nothing_of(file, self.launch.opening.hold);
            if !taken.take(&slots)? {
                return Ok(Err(Disturbance::Locked(Rc::clone(file))));
            }
            held.insert(*id, taken);
        }
        let now = SystemTime::now();
        let mut record = self.record(now);
        let mut stamps = Vec::new();
        for (id, taken) in &held {
            if let Some(view) = views.get_mut(id) {
                stamps.push((Rc::clone(taken.file()), view.header().last_start));
                let claim = picked.iter().find(|choice| choice.file == *id).map(|choice| choice.claim);
                record.rule = claim.map_or_else(String::new, |claim| claim.rule.clone());
                Self::write_down(view, taken, &record, now)?;
            }
        }
        held.append(&mut joined);
        let unenforced = picked
            .iter()
            .filter(|choice| !held.contains_key(&choice.file))
            .map(|choice| choice.number)
            .collect();
        let slots = named_slots(&held, picked);
        let held = held.into_values().collect();
        Ok(Ok(Decided::Admitted(Admitted { held, slots, unenforced, started: now, stamps })))
    }

    /// Records first, then what tells others where to look.
    fn write_down(
        view: &mut View<'_>,
        taken: &Held,
        record: &Record,
        now: SystemTime,
    ) -> Result<(), RepositoryError> {
        let file = taken.file();
        let record = record.encode();
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

    /// The same for every repository, save the rule.
    fn record(&self, now: SystemTime) -> Record {
        Record {
            pid: process::own_pid(),
            supervisor: match self.launch.opening.hold {
                Hold::Process | Hold::Descriptor => None,
                Hold::Supervisor | Hold::Tree => Some(process::own_pid()),
            },
            start: Process::this().map_or(0, |process| process.started),
            uid: self.launch.uid,
            since: now
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0)),
            taken: process::since_boot().and_then(|since| u64::try_from(since.as_millis()).ok()),
            hold: self.launch.opening.hold,
            boot: process::boot_id().map(|id| short_boot_id(&id)).unwrap_or_default(),
            host: self.launch.host.to_owned(),
            rule: String::new(),
            command: self.launch.command.to_owned(),
        }
    }
}

/// Whether a launch may start without what it wants of a file.
fn is_unenforced(file: FileId, picked: &[Choice<'_>]) -> bool {
    picked.iter().filter(|choice| choice.file == file).all(|choice| choice.claim.admit == Admit::Unenforced)
}

/// The claims on one file are one claim.
pub(super) fn terms_on(file: FileId, picked: &[Choice<'_>]) -> Terms {
    let claims = picked.iter().filter(|choice| choice.file == file).map(|choice| choice.claim);
    Terms::merge(claims).unwrap_or_default()
}

/// Each repository's name and slots, in the order of the claims. Two repositories may lead to one file.
fn named_slots(held: &BTreeMap<FileId, Held>, picked: &[Choice<'_>]) -> Vec<NamedSlots> {
    let mut named: Vec<NamedSlots> = Vec::new();
    for choice in picked {
        let Some(taken) = held.get(&choice.file) else { continue };
        if named.iter().all(|other| other.name != choice.claim.name) {
            named.push(NamedSlots { name: choice.claim.name.clone(), slots: taken.slots().to_vec() });
        }
    }
    named
}

/// The pause of a claim that can refuse a launch.
fn enforced_pause(claim: &Claim) -> Option<Pause> {
    claim.pause.filter(|_| claim.admit != Admit::Unenforced)
}

/// The moment that the pause counts from, if it is not over. A moment in the future counts as long ago: a clock that was set
/// back must lock nobody out.
fn too_soon(pause: Pause, header: &Header, now: SystemTime) -> Option<SystemTime> {
    let last = if pause.from_end { header.last_end } else { header.last_start }?;
    let ago = now.duration_since(last).ok()?;
    (ago < pause.length).then_some(last)
}
