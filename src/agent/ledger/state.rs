//! The state directory, so that a failure of the agent loses nothing. It has a file for each holding, for
//! each place in a queue, and for each table whose last use counts. It belongs to one boot; files of another
//! boot are removed. It should be in memory (`/run`), because a launch learns of its slots only after they
//! were saved. One number, in a file of its own, is the format of all other files.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::OsString,
    fs::{self, DirBuilder, File, Permissions},
    hash::{BuildHasher, RandomState},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    acquire::PlaceInTable,
    agent::Fatal,
    judge::terms::{Group, Hold, OnLost, name_on_site, table_of_site},
    keeper::{
        Class, Holder, Number, WaitingProcess,
        agent::{OPENED, message::Take, number_of_opened, path_of_opened},
        memory,
    },
    sys::{
        Bytes, Errno, Failure, Fifo, Mode, Ownership, Process, errno_of, process, record_lock, replaced_file,
        unguessable,
    },
    text::{FORMAT, json},
};

/// For root alone.
const MODE: u32 = 0o600;

/// The folder with the last uses of its own tables, and of tables of the site that it keeps alone. Their
/// names have a slash.
const TABLES: &str = "tables";
const TABLES_OF_SITE: &str = "tables-of-site";

/// The folder with launches whose start is recorded at the site together with the proof of their slots, until
/// that is answered.
const UNPROVED: &str = "unproved";

/// The folder with what the agent must know of the site when it starts.
const SITE: &str = "site";

/// In it: when the host's key was last confirmed, since boot.
const CONFIRMED: &str = "confirmed.json";

/// How long the host may be silent then. In a file of its own, which an older agent ignores.
const SILENCE: &str = "silence.json";

/// And the number by which agents of this directory recognize their keys.
const IDENTITY: &str = "identity.json";

/// The file that the agent of this directory locks, and the byte of it.
const LOCK: &str = "lock";
const LOCKED: Bytes = 0..=0;

/// The directory.
#[derive(Debug)]
pub(in crate::agent) struct State {
    directory: PathBuf,
    /// Two agents would grant the same slots. The lock ends with the process, and no child inherits it.
    _lock: File,
}

pub(in crate::agent) struct Found {
    pub(in crate::agent) holdings: BTreeMap<u64, SavedHolding>,
    pub(in crate::agent) places: BTreeMap<u64, SavedPlace>,
    pub(in crate::agent) stamps: Vec<(String, SavedStamps)>,
    /// Launches for which the agent had asked the site when it died, and that it never answered.
    pub(in crate::agent) unproved: Vec<SavedHolding>,
}

/// The content cannot be trusted.
const DAMAGED: Failure = Failure { call: "read", errno: Errno::EUCLEAN };

/// The endings of the files of holdings, before and after the start of their program.
const GIVEN: &str = "json";
const STARTED: &str = "started";

/// The saved state, each kind in its folder.
const FOLDERS: [&str; 6] = ["holdings", "places", SITE, UNPROVED, TABLES, TABLES_OF_SITE];

impl State {
    /// Opens it, creates it if it is missing, and empties it if it is of another boot.
    pub(in crate::agent) fn open(directory: &Path) -> Result<Self, Fatal> {
        let failed = |call: &'static str| {
            move |error: std::io::Error| Fatal::State(directory.to_owned(), Failure::of_io(call)(error))
        };
        fs::create_dir_all(directory).map_err(failed("mkdir"))?;
        fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(failed("chmod"))?;
        // Another agent's files are neither read nor removed.
        let state = Self { directory: directory.to_owned(), _lock: lock(directory)? };
        // Without it, the state of running programs would look like that of another boot.
        let boot = process::boot_id().ok_or_else(|| {
            Fatal::Call(Failure { call: "read(/proc/sys/kernel/random/boot_id)", errno: Errno::ENOENT })
        })?;
        let file = directory.join("boot");
        let written = match fs::read_to_string(&file) {
            Ok(written) => written,
            Err(error) if errno_of(&error) == Errno::ENOENT => String::new(),
            Err(error) => return Err(Fatal::State(file, Failure::of_io("read")(error))),
        };
        let is_new = written != boot;
        if is_new {
            if !is_boot_id(&written) && state.has_holdings() {
                return Err(Fatal::State(file, DAMAGED));
            }
            for name in FOLDERS {
                match fs::remove_dir_all(directory.join(name)) {
                    Err(error) if errno_of(&error) != Errno::ENOENT => return Err(failed("unlink")(error)),
                    _ => {}
                }
            }
            let written = replaced_file::replace(&file, boot.as_bytes(), MODE);
            written.map_err(|failure| Fatal::State(directory.to_owned(), failure))?;
        } else if let Some(format) = state.format().filter(|format| !json::is_readable(*format)) {
            return Err(Fatal::NewerState(directory.to_owned(), format));
        }
        // An agent restarts even if its disk is full. What a newer one saved remains of its format.
        if is_new || state.format().is_none_or(|format| format < FORMAT) {
            let text = format!("{FORMAT}\n");
            let written = replaced_file::replace(&state.format_file(), text.as_bytes(), MODE);
            written.map_err(|failure| Fatal::State(directory.to_owned(), failure))?;
        }
        for name in FOLDERS {
            fs::create_dir_all(directory.join(name)).map_err(failed("mkdir"))?;
        }
        Ok(state)
    }

    fn format_file(&self) -> PathBuf {
        self.directory.join("format")
    }

    /// The format of the agent that used it last; none if there is none.
    fn format(&self) -> Option<u8> {
        fs::read_to_string(self.format_file()).ok()?.trim_end().parse().ok()
    }

    fn has_holdings(&self) -> bool {
        self.names("holdings").is_ok_and(|names| !names.is_empty())
    }

    /// Everything in it. A file that cannot be read stays where it is, and is reported.
    pub(in crate::agent) fn read(&self) -> Result<Found, Fatal> {
        let mut found = Found {
            holdings: BTreeMap::new(),
            places: BTreeMap::new(),
            stamps: Vec::new(),
            unproved: Vec::new(),
        };
        for (number, path) in self.numbered("holdings")? {
            let is_started = path.extension().is_some_and(|ending| ending == STARTED);
            found.holdings.insert(number, SavedHolding { is_started, ..read(&path)? });
        }
        for number in found.holdings.keys().copied().collect::<Vec<_>>() {
            if let Some(mut saved) = found.holdings.remove(&number) {
                saved.note_owners(&found.holdings);
                found.holdings.insert(number, saved);
            }
        }
        for (number, path) in self.numbered("places")? {
            found.places.insert(number, read(&path)?);
        }
        for (_, path) in self.numbered(UNPROVED)? {
            let unproved: Option<SavedHolding> = read(&path).ok();
            // One that was answered has a holding, too.
            let is_same = |of: &SavedHolding, other: &SavedHolding| {
                (of.pid, of.start, of.started) == (other.pid, other.start, other.started)
            };
            let is_answered = |of: &SavedHolding| found.holdings.values().any(|other| is_same(of, other));
            let unanswered = unproved.filter(|of| !is_answered(of));
            found.unproved.extend(unanswered);
            remove(&path)?;
        }
        for (directory, table_of) in
            [(TABLES, str::to_owned as fn(&str) -> String), (TABLES_OF_SITE, table_of_site)]
        {
            for (name, path) in self.names(directory)? {
                match name.to_str().and_then(|name| name.strip_suffix(".json")) {
                    Some(name) => found.stamps.push((table_of(name), read(&path)?)),
                    None => remove(&path)?,
                }
            }
        }
        Ok(found)
    }

    /// Everything whose name is a number; of two, the one that has started. Anything else is incomplete, and
    /// no launch ever learned of it.
    fn numbered(&self, directory: &str) -> Result<BTreeMap<u64, PathBuf>, Fatal> {
        let mut found = BTreeMap::new();
        let mut rest = Vec::new();
        let mut names = self.names(directory)?;
        names.sort_unstable();
        for (name, path) in names {
            let number = name.to_str().and_then(|name| name.split_once('.'));
            let number = number.filter(|(_, ending)| [GIVEN, STARTED].contains(ending));
            match number.and_then(|(number, _)| number.parse().ok()) {
                Some(number) => drop(found.insert(number, path)),
                None => rest.push(path),
            }
        }
        let is_of_one = |path: &PathBuf| {
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
            number.is_some_and(|number: u64| found.contains_key(&number))
        };
        for path in rest.into_iter().filter(|path| !is_of_one(path)) {
            remove(&path)?;
        }
        Ok(found)
    }

    fn names(&self, directory: &str) -> Result<Vec<(OsString, PathBuf)>, Fatal> {
        let directory = self.directory.join(directory);
        let entries = fs::read_dir(&directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let entries = entries.map_err(|error| Fatal::State(directory, Failure::of_io("readdir")(error)))?;
        Ok(entries.into_iter().map(|entry| (entry.file_name(), entry.path())).collect())
    }

    /// Saves a holding.
    pub(in crate::agent) fn write(&self, number: u64, holding: &SavedHolding) -> Result<(), Failure> {
        put(&self.holding(number, holding.is_started), holding)
    }

    /// Saves that its program has started.
    pub(in crate::agent) fn write_start(&self, number: u64) -> Result<(), Failure> {
        let renamed = fs::rename(self.holding(number, false), self.holding(number, true));
        renamed.map_err(Failure::of_io("rename"))
    }

    /// Forgets a holding. The FIFO of a script stays.
    pub(in crate::agent) fn forget(&self, number: u64) {
        // Both exist if the rename at its start failed.
        for is_started in [true, false] {
            let _ = fs::remove_file(self.holding(number, is_started));
        }
        // Last, because no agent starts with a holding whose FIFO is missing.
        let _ = fs::remove_file(self.fifo(number));
    }

    /// Forgets a holding whose program has ended, with the FIFO that its script has opened.
    pub(in crate::agent) fn forget_ended(&self, number: u64, ended: &SavedHolding) {
        self.forget(number);
        forget_opened(ended);
    }

    /// Saves that the program of a holding has ended, and slots stay taken: in its file, so that they are
    /// free at no moment.
    pub(in crate::agent) fn write_end(&self, number: u64, ended: &SavedHolding, lingering: &SavedHolding) {
        // A failed write costs at most a slot that lingers again from the agent's next start on, which needs
        // the FIFO.
        if self.write(number, lingering).is_ok() {
            let _ = fs::remove_file(self.fifo(number));
            forget_opened(ended);
        }
    }

    /// Saves a launch for which the agent asks the site.
    pub(in crate::agent) fn write_unproved(&self, launch: u64, saved: &SavedHolding) -> Result<(), Failure> {
        put(&self.unproved(launch), saved)
    }

    /// The site has answered, and the holding is saved if there is one.
    pub(in crate::agent) fn forget_unproved(&self, launch: u64) {
        let _ = fs::remove_file(self.unproved(launch));
    }

    fn unproved(&self, launch: u64) -> PathBuf {
        self.directory.join(UNPROVED).join(format!("{launch}.json"))
    }

    /// Saves the launch's position in its queues.
    pub(in crate::agent) fn write_place(&self, number: u64, place: &SavedPlace) -> Result<(), Failure> {
        put(&self.place(number), place)
    }

    pub(in crate::agent) fn forget_place(&self, number: u64) {
        let _ = fs::remove_file(self.place(number));
    }

    /// Saves when a table was last used.
    pub(in crate::agent) fn write_stamps(&self, table: &str, stamps: &SavedStamps) -> Result<(), Failure> {
        put(&self.stamps(table), stamps)
    }

    pub(in crate::agent) fn forget_stamps(&self, table: &str) {
        let _ = fs::remove_file(self.stamps(table));
    }

    fn stamps(&self, table: &str) -> PathBuf {
        let (directory, name) = name_on_site(table).map_or((TABLES, table), |name| (TABLES_OF_SITE, name));
        self.directory.join(directory).join(format!("{name}.json"))
    }

    /// The number of this directory; a random one is created if it has none.
    pub(in crate::agent) fn identity(&self) -> Result<u64, Fatal> {
        let path = self.directory.join(SITE).join(IDENTITY);
        if path.exists() {
            return read(&path).map_err(|_| Fatal::State(path, DAMAGED));
        }
        let drawn = RandomState::new().hash_one(process::own_pid());
        put(&path, &drawn).map(|()| drawn).map_err(|failure| Fatal::State(path, failure))
    }

    /// Saves when the host's key was last confirmed at the site, since boot.
    pub(in crate::agent) fn write_confirmation(&self, confirmed: Duration) -> Result<(), Failure> {
        put(&self.directory.join(SITE).join(CONFIRMED), &confirmed)
    }

    /// The saved value of that. A file that cannot be read means that it was long ago.
    pub(in crate::agent) fn confirmation(&self) -> Option<Duration> {
        let path = self.directory.join(SITE).join(CONFIRMED);
        path.exists().then(|| read(&path).unwrap_or_default())
    }

    /// This agent keeps no tables with other hosts. So the next one that does begins without a confirmation.
    pub(in crate::agent) fn forget_confirmation(&self) {
        for name in [CONFIRMED, SILENCE] {
            let _ = fs::remove_file(self.directory.join(SITE).join(name));
        }
    }

    /// Saves how long the host may be silent.
    pub(in crate::agent) fn write_silence(&self, silence: &SavedSilence) -> Result<(), Failure> {
        put(&self.directory.join(SITE).join(SILENCE), silence)
    }

    /// The saved value of that; none if an older agent saved nothing.
    pub(in crate::agent) fn silence(&self) -> Option<SavedSilence> {
        read(&self.directory.join(SITE).join(SILENCE)).ok()
    }

    /// A new FIFO for a holding.
    pub(in crate::agent) fn new_fifo(&self, number: u64) -> Result<Fifo, Failure> {
        Fifo::create(&self.fifo(number)).map_err(Failure::of("mkfifo"))
    }

    /// Where it is.
    pub(in crate::agent) fn fifo(&self, number: u64) -> PathBuf {
        self.directory.join("holdings").join(format!("{number}.fifo"))
    }

    /// The FIFO of a holding: the one that its script has opened, or its own. None if the holding has none,
    /// or if the script has closed it.
    pub(in crate::agent) fn fifo_of(
        &self,
        number: u64,
        saved: &SavedHolding,
    ) -> Result<Option<Fifo>, (PathBuf, Errno)> {
        if saved.hold == Hold::Process {
            return Ok(None);
        }
        let path = saved.opened.map_or_else(|| self.fifo(number), |opened| path_of_opened(saved.uid, opened));
        let fifo = match saved.opened {
            Some(_) => Fifo::open_to_write(&path),
            None => Fifo::open(&path).map(Some),
        };
        fifo.map_err(|errno| (path, errno))
    }

    /// The holders whose slots nested launches use. Each of these is kept by its process, or by what has its
    /// FIFO.
    pub(in crate::agent) fn used_below(&self, holdings: &BTreeMap<u64, SavedHolding>) -> BTreeSet<u64> {
        let is_kept = |number: u64, saved: &SavedHolding| {
            let fifo = || self.fifo_of(number, saved).ok().flatten();
            saved.runs() || fifo().as_ref().is_some_and(Fifo::is_held)
        };
        let is_below = |(number, saved): &(&u64, &SavedHolding)| {
            saved.tables.iter().any(|of| of.is_shared) && is_kept(**number, saved)
        };
        let below = holdings.iter().filter(is_below);
        below.flat_map(|(_, saved)| &saved.tables).flat_map(|of| &of.owners).copied().collect()
    }

    fn place(&self, number: u64) -> PathBuf {
        self.directory.join("places").join(format!("{number}.json"))
    }

    fn holding(&self, number: u64, is_started: bool) -> PathBuf {
        let ending = if is_started { STARTED } else { GIVEN };
        self.directory.join("holdings").join(format!("{number}.{ending}"))
    }
}

// The FIFOs that scripts open. Each belongs to root, and every process that knows its path may open it to
// read. The path is a secret of the user: others can neither list the folder nor guess the name. Until the
// FIFO keeps slots, the agent has both of its ends: otherwise a script that opens it would wait.

/// A FIFO that keeps nothing yet: its number, and both ends.
pub(in crate::agent) type Unused = (u64, OwnedFd);

/// A new FIFO for a script of this user.
pub(in crate::agent) fn new_opened(uid: u32) -> Result<(Unused, PathBuf), Failure> {
    let folder = Path::new(OPENED).join(uid.to_string());
    for directory in [Path::new(OPENED), &folder] {
        let made = DirBuilder::new().mode(0o700).create(directory);
        match made.map_err(|error| errno_of(&error)) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(Failure { call: "mkdir", errno }),
        }
        // All users pass through it, and none can list it.
        let passed = fs::set_permissions(directory, Permissions::from_mode(0o711));
        passed.map_err(Failure::of_io("chmod"))?;
    }
    let number = unguessable().map_err(Failure::of("getrandom"))?;
    let path = path_of_opened(uid, number);
    Fifo::create(&path).map_err(Failure::of("mkfifo"))?;
    // Root writes as the owner: the agent has no capability to do so otherwise.
    let readable = fs::set_permissions(&path, Permissions::from_mode(0o644));
    let readable = readable.map_err(Failure::of_io("chmod"));
    match readable.and_then(|()| unused_again(uid, number)) {
        Ok(unused) => Ok((unused, path)),
        Err(failure) => {
            remove_opened(uid, number);
            Err(failure)
        }
    }
}

/// How many unused FIFOs of one user may exist. With one more, the oldest is removed.
const MOST_UNUSED: usize = 64;

/// Removes the oldest FIFOs of a user that are too many. Those that scripts wait with stay, and do not count.
pub(in crate::agent) fn limit_unused(uid: u32, unused: &mut VecDeque<Unused>, in_use: &BTreeSet<u64>) {
    let mut left = unused.iter().filter(|(number, _)| !in_use.contains(number)).count();
    unused.retain(|(number, _)| {
        let stays = left <= MOST_UNUSED || in_use.contains(number);
        if !stays {
            left -= 1;
            remove_opened(uid, *number);
        }
        stays
    });
}

/// The same FIFO once more: the slots that it kept were given back.
pub(in crate::agent) fn unused_again(uid: u32, number: u64) -> Result<Unused, Failure> {
    let ends = Fifo::both_ends(&path_of_opened(uid, number)).map_err(Failure::of("open"))?;
    Ok((number, ends))
}

/// The FIFOs of scripts that exist, of each user, the oldest first.
pub(in crate::agent) fn all_opened() -> Vec<(u32, u64)> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<(SystemTime, u32, u64)> = entries(Path::new(OPENED))
        .filter_map(|folder| Some((folder.path(), folder.file_name().to_str()?.parse().ok()?)))
        .flat_map(|(folder, uid)| entries(&folder).map(move |entry| (uid, entry)))
        .filter_map(|(uid, entry)| {
            let created = entry.metadata().and_then(|status| status.modified()).unwrap_or(UNIX_EPOCH);
            Some((created, uid, number_of_opened(&entry.path())?))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, uid, number)| (uid, number)).collect()
}

/// Removes the FIFO of a script that has this number.
pub(in crate::agent) fn remove_opened(uid: u32, number: u64) {
    let _ = fs::remove_file(path_of_opened(uid, number));
}

/// Removes the FIFO that the script of a holding opened: all processes have closed it.
fn forget_opened(saved: &SavedHolding) {
    if let Some(opened) = saved.opened {
        remove_opened(saved.uid, opened);
    }
}

/// Locks the directory for this process, unless another agent uses it.
fn lock(directory: &Path) -> Result<File, Fatal> {
    let failed = |failure| Fatal::State(directory.to_owned(), failure);
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).mode(MODE).open(directory.join(LOCK));
    let file = file.map_err(|error| failed(Failure::of_io("open")(error)))?;
    let is_locked = record_lock::try_lock(file.as_fd(), &LOCKED, Mode::Write, Ownership::Process);
    if !is_locked.map_err(|errno| failed(Failure { call: "fcntl", errno }))? {
        let other = record_lock::conflict_with_process(file.as_fd(), &LOCKED).ok().flatten();
        return Err(Fatal::StateInUse(directory.to_owned(), other.and_then(|other| other.pid)));
    }
    Ok(file)
}

/// Whether this could be the id of another boot.
fn is_boot_id(text: &str) -> bool {
    text.len() == 36 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

fn put(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let text = json::line(value).map_err(|_| Failure { call: "write", errno: Errno::EINVAL })?;
    replaced_file::replace(path, text.as_bytes(), MODE)
}

fn remove(path: &Path) -> Result<(), Fatal> {
    fs::remove_file(path).map_err(|error| Fatal::State(path.to_owned(), Failure::of_io("unlink")(error)))
}

/// An empty file must not be taken for a missing one: its slots would be granted to others.
fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Fatal> {
    let failed = |failure| Fatal::State(path.to_owned(), failure);
    let bytes = fs::read(path).map_err(|error| failed(Failure::of_io("read")(error)))?;
    serde_json::from_slice(&bytes).map_err(|_| failed(DAMAGED))
}

/// A moment as the time since 1970, without loss.
pub(in crate::agent) fn since_1970(moment: SystemTime) -> Option<Duration> {
    moment.duration_since(UNIX_EPOCH).ok()
}

/// The same as a moment.
pub(in crate::agent) fn at(since_1970: Duration) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(since_1970)
}

/// A moment in milliseconds since 1970.
pub(in crate::agent) fn in_millis(moment: SystemTime) -> u64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The same as a moment.
pub(in crate::agent) fn at_millis(millis: u64) -> Option<SystemTime> {
    at(Duration::from_millis(millis))
}

/// How long this host may be silent before others consider it dead, and how much sooner it does so itself.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(in crate::agent) struct SavedSilence {
    pub(in crate::agent) ttl: Duration,
    pub(in crate::agent) margin: Duration,
}

/// A process and the slots that it has.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(in crate::agent) struct SavedHolding {
    pub(in crate::agent) pid: i32,
    /// When the process started: clock ticks since boot.
    pub(in crate::agent) start: u64,
    /// The program, if it is a child of that process.
    #[serde(default)]
    pub(in crate::agent) program: Option<i32>,
    pub(in crate::agent) uid: u32,
    pub(in crate::agent) hold: Hold,
    pub(in crate::agent) host: String,
    pub(in crate::agent) command: String,
    /// In milliseconds since 1970, and since boot.
    pub(in crate::agent) since: u64,
    pub(in crate::agent) taken: Option<u64>,
    /// Whether its program has started: from then on only its end frees the slots. The name of its file tells
    /// this.
    #[serde(skip)]
    pub(in crate::agent) is_started: bool,
    /// The number under which it waited, if it did. Until its launch learns of its slots, no other may come
    /// before it.
    #[serde(default)]
    pub(in crate::agent) served_as: Option<SavedNumber>,
    /// The tables whose last use must be remembered.
    #[serde(default)]
    pub(in crate::agent) paced: Vec<String>,
    /// The same for the site's tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::agent) paced_at_site: Vec<String>,
    /// The recorded start, as the time since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agent) started: Option<Duration>,
    pub(in crate::agent) tables: Vec<SavedSlots>,
    /// Until when its slots stay taken, in time since boot: its program has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agent) lingers_until: Option<Duration>,
    /// Whether its program has ended, or given them back: a nested launch still uses its slots.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::agent) is_given_back: bool,
    /// The number of the FIFO that its script has opened; none for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agent) opened: Option<u64>,
}

impl SavedHolding {
    /// Whether its process is the one that was recorded.
    pub(in crate::agent) fn runs(&self) -> bool {
        Process::find(self.pid).is_some_and(|process| process.started == self.start)
    }

    /// Its own slots, each with its table.
    fn own_slots(&self) -> impl Iterator<Item = (&str, u64)> {
        let own = self.tables.iter().filter(|of| !of.is_shared);
        own.flat_map(|of| of.slots.iter().map(|slot| (of.table.as_str(), *slot)))
    }

    /// Notes whose slots it uses, if it uses those of an ancestor: an older agent did not save this. An
    /// ancestor is of the same user, and a slot that no such holder has is not used.
    pub(in crate::agent) fn note_owners<'s>(
        &mut self,
        all: impl IntoIterator<Item = (&'s u64, &'s SavedHolding)>,
    ) {
        let is_unknown = |of: &&mut SavedSlots| of.is_shared && of.owners.is_empty();
        let mut unknown = self.tables.iter_mut().filter(is_unknown).peekable();
        if unknown.peek().is_none() {
            return;
        }
        let theirs = all.into_iter().filter(|(_, of)| of.uid == self.uid && of.lingers_until.is_none());
        let owners: BTreeMap<(&str, u64), u64> =
            theirs.flat_map(|(number, of)| of.own_slots().map(|slot| (slot, *number))).collect();
        for of in unknown {
            let owned = |slot: &u64| Some((*slot, *owners.get(&(of.table.as_str(), *slot))?));
            (of.slots, of.owners) = of.slots.iter().filter_map(owned).unzip();
        }
    }

    /// The rule by which it has slots of a table of the site.
    pub(in crate::agent) fn rule_on(&self, name: &str) -> &str {
        self.on_site(name).map_or("", |of| of.rule.as_str())
    }

    /// Its slots of a table of the site.
    pub(in crate::agent) fn on_site(&self, name: &str) -> Option<&SavedSlots> {
        self.tables.iter().find(|of| name_on_site(&of.table) == Some(name))
    }

    /// Its own slots of the site's tables whose last use must be remembered, each with the name of its
    /// table there.
    pub(in crate::agent) fn paced_at_site(&self) -> impl Iterator<Item = (&str, &SavedSlots)> {
        let own = self.tables.iter().filter(|of| !of.is_shared && self.paced_at_site.contains(&of.table));
        own.filter_map(|of| Some((name_on_site(&of.table)?, of)))
    }

    /// Until when its slots of a table stay taken, in time since boot: its program has ended.
    pub(in crate::agent) fn lingers_on(&self, table: &str) -> Option<Duration> {
        let of_table = self.tables.iter().find(|of| of.table == table).and_then(|of| of.linger);
        Some(self.ended()?.saturating_add(of_table.unwrap_or_default()))
    }

    /// When its program ended, in time since boot: what is saved is until when the last of all slots stay.
    fn ended(&self) -> Option<Duration> {
        Some(self.lingers_until?.saturating_sub(self.longest_linger()?))
    }

    fn longest_linger(&self) -> Option<Duration> {
        self.tables.iter().filter_map(|of| of.linger).max()
    }

    /// These of its slots do not linger any more.
    pub(super) fn give_up(&mut self, is_over: impl Fn(&SavedSlots) -> bool) {
        let ended = self.ended();
        self.tables.retain(|of| !is_over(of));
        let longest = self.longest_linger();
        self.lingers_until = ended.zip(longest).map(|(ended, longest)| ended.saturating_add(longest));
    }

    /// The same after the end of its program, which is now, if slots stay taken.
    pub(super) fn lingering(&self) -> Option<Self> {
        let stays = |of: &&SavedSlots| of.group.is_some() && of.linger.is_some();
        let tables: Vec<SavedSlots> = self.tables.iter().filter(stays).cloned().collect();
        let longest = tables.iter().filter_map(|of| of.linger).max()?;
        let until = process::since_boot()?.checked_add(longest)?;
        let (hold, lingers_until) = (Hold::Process, Some(until));
        Some(Self { tables, hold, lingers_until, is_given_back: false, ..self.clone() })
    }

    /// The same as a holder, for slots that a rule requires.
    pub(in crate::agent) fn holder(&self, rule: &str) -> Holder {
        Holder {
            slots: (0, 0),
            pid: self.program.or(Some(self.pid)),
            keeper: Some(self.pid),
            uid: Some(self.uid),
            host: Some(self.host.clone()),
            since: at_millis(self.since),
            taken: self.taken.map(Duration::from_millis),
            hold: Some(self.hold),
            command: Some(self.command.clone()),
            rule: Some(rule.to_owned()),
            lingers_until: None,
            others: Vec::new(),
        }
    }
}

/// The slots of one table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(in crate::agent) struct SavedSlots {
    pub(in crate::agent) table: String,
    pub(in crate::agent) rule: String,
    pub(in crate::agent) slots: Vec<u64>,
    /// Whether they belong to an ancestor.
    pub(in crate::agent) is_shared: bool,
    /// Then the number of the holding that has it, for each of them: later, another launch may have a slot
    /// with the same number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::agent) owners: Vec<u64>,
    /// What happens to the program when the site that keeps them is lost.
    #[serde(default)]
    pub(in crate::agent) on_lost: Option<OnLost>,
    /// The group that has them, in the order of its ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agent) group: Option<String>,
    /// How long they stay taken after the end of the program. If it is set, `is_of_heirs` says whether a
    /// launch takes over what another has left; otherwise the group shares its slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agent) linger: Option<Duration>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::agent) is_of_heirs: bool,
    /// The start that was recorded before that of its launch, as the time since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agent) before: Option<Duration>,
}

impl SavedSlots {
    /// The group that has them.
    pub(in crate::agent) fn group(&self) -> Option<Group> {
        let text = self.group.as_deref()?;
        Some(if self.is_of_heirs { Group::of_heirs(text) } else { Group::of(text) })
    }
}

/// The number of a launch, the same in all queues. It is invalid for another launch.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(in crate::agent) struct SavedNumber {
    pub(in crate::agent) number: u64,
    /// A salted fingerprint of its command.
    launch: (u64, u64),
}

impl SavedNumber {
    /// The number under which this was asked.
    pub(in crate::agent) fn of(number: Number, take: &Take) -> Self {
        let salt = RandomState::new().hash_one(number.0);
        Self { number: number.0, launch: (salt, take.fingerprint(salt)) }
    }

    /// Whether it is that of a launch with this request.
    pub(in crate::agent) fn is_for(&self, take: &Take) -> bool {
        let (salt, fingerprint) = self.launch;
        take.fingerprint(salt) == fingerprint
    }
}

/// A launch in a queue.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(in crate::agent) struct SavedPlace {
    pub(in crate::agent) pid: i32,
    pub(in crate::agent) start: u64,
    pub(in crate::agent) uid: u32,
    /// The command that others see.
    #[serde(default)]
    pub(in crate::agent) command: String,
    pub(in crate::agent) number: SavedNumber,
    /// When it began to wait, in milliseconds since 1970.
    #[serde(default)]
    pub(in crate::agent) since: Option<u64>,
    /// The FIFO of the script that waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::agent) opened: Option<u64>,
    pub(in crate::agent) lines: Vec<SavedLine>,
}

/// One of its queues.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(in crate::agent) struct SavedLine {
    pub(in crate::agent) table: String,
    /// Generation and capacity of each.
    pub(in crate::agent) classes: Vec<(u16, u64)>,
    /// When it began to wait, in milliseconds since boot.
    pub(in crate::agent) begun: u64,
    /// For how many milliseconds it waited, if it does not wait in this queue now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stood: Option<u64>,
    /// How many slots it wants there.
    #[serde(default)]
    pub(in crate::agent) wants: Option<u64>,
}

/// When a table was last used.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(in crate::agent) struct SavedStamps {
    /// As the time since 1970.
    pub(in crate::agent) last_start: Option<Duration>,
    pub(in crate::agent) last_end: Option<Duration>,
    pub(in crate::agent) started_by: Option<u32>,
    /// How long after that a pause may last.
    #[serde(default = "for_ever")]
    pub(in crate::agent) longest_pause: Duration,
}

/// A value from a less exact source is kept.
fn for_ever() -> Duration {
    Duration::MAX
}

impl SavedStamps {
    /// The last uses of a table, as the time since 1970. This user has used it now; the last program may have
    /// been started by another one.
    pub(in crate::agent) fn of(table: &memory::Table, used_by: u32) -> Self {
        let (start, end) = table.stamps();
        let started_by = start.and_then(|start| table.who_started(start));
        Self {
            last_start: start.and_then(since_1970),
            last_end: end.and_then(since_1970),
            started_by: started_by.or(Some(used_by)),
            longest_pause: table.longest_pause(),
        }
    }

    pub(in crate::agent) fn put_into(&self, table: &memory::Table) {
        let (start, end) = self.stamps();
        table.set_stamps(start, end, self.started_by);
        table.pauses_for(self.longest_pause);
    }

    /// The same as moments.
    pub(in crate::agent) fn stamps(&self) -> (Option<SystemTime>, Option<SystemTime>) {
        (self.last_start.and_then(at), self.last_end.and_then(at))
    }
}

impl SavedPlace {
    pub(in crate::agent) fn whose(&self) -> (i32, u64, u32) {
        (self.pid, self.start, self.uid)
    }

    /// When it began to wait.
    pub(super) fn since(&self) -> Option<SystemTime> {
        at_millis(self.since?)
    }

    pub(super) fn process(&self) -> WaitingProcess {
        WaitingProcess {
            pid: Some(self.pid),
            host: None,
            user: Some(self.uid),
            command: Some(self.command.as_str().into()),
            since: self.since(),
        }
    }

    /// Whether both are the same position, with the same FIFO, regardless of when they were saved.
    pub(super) fn is_where(&self, other: &Self) -> bool {
        let lines = |place: &Self| -> Vec<_> {
            place.lines.iter().map(|line| (line.table.clone(), line.classes.clone())).collect()
        };
        (self.number.number, self.opened, lines(self)) == (other.number.number, other.opened, lines(other))
    }
}

impl SavedLine {
    pub(in crate::agent) fn of(place: &PlaceInTable, now: Duration) -> Self {
        let begun = now.saturating_sub(place.longest);
        let in_millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Self {
            table: place.table.name().to_owned(),
            classes: place.classes.iter().map(|class| (class.generation, class.capacity)).collect(),
            begun: in_millis(begun),
            stood: place.classes.is_empty().then(|| in_millis(place.longest)),
            wants: place.wants,
        }
    }

    pub(super) fn to_place(&self, table: memory::Table) -> PlaceInTable {
        let class =
            |(generation, capacity): &(u16, u64)| Class { generation: *generation, capacity: *capacity };
        let now = process::since_boot().unwrap_or_default();
        let since_begun = || now.saturating_sub(Duration::from_millis(self.begun));
        let longest = self.stood.map_or_else(since_begun, Duration::from_millis);
        PlaceInTable { table, classes: self.classes.iter().map(class).collect(), longest, wants: self.wants }
    }
}

#[cfg(test)]
mod tests;
