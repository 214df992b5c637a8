//! A lock file, open. Each launch opens the file itself, even if it inherited descriptors of it, below a
//! directory that was checked. A file on which this process has locks stays open in the program too, because
//! closing any descriptor would drop them.

use std::{
    cell::OnceCell,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{
    BaseDirectories, HEADER_AT, LockPath, RepositoryError,
    content::{self, looks_like_a_lock_file},
    error::call,
};
use crate::{
    judge::terms::{Creation, Hold},
    sys::{
        Access, Bytes, Conflict, Errno, FileId, Inherited, Kind, Mode, Ownership, Process, Status,
        WalkedDirectory, descriptor, process, record_lock, regular_file,
    },
};

/// How often a file may disappear or appear between two system calls before the launch gives up.
const PATIENCE: usize = 100;

/// What a launch needs to open its files.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The descriptors that the caller left open.
    pub inherited: &'a Inherited,
    /// What must keep the slots.
    pub hold: Hold,
    /// The directories that were opened for other files of the launch.
    pub bases: &'a BaseDirectories,
}

/// A descriptor of a lock file.
enum Descriptor {
    Own(OwnedFd),
    /// A descriptor that is never closed, neither here nor by exec. It belongs to the caller, or closing it
    /// would drop POSIX locks of this process.
    LeftOpen(BorrowedFd<'static>),
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(descriptor) => descriptor.as_fd(),
            Self::LeftOpen(descriptor) => *descriptor,
        }
    }
}

/// An open lock file. The descriptor is close-on-exec until [`LockFile::keep_across_exec`].
pub struct LockFile {
    path: PathBuf,
    id: FileId,
    descriptor: Descriptor,
    /// An open file description of its own, only for reading, for the holds that need one.
    reader: OnceCell<Descriptor>,
    is_to_look_at: bool,
}

impl AsFd for LockFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl LockFile {
    /// Opens the file for reading; none if it does not exist.
    pub fn open_to_read(place: &LockPath<'_>) -> Result<Option<Self>, RepositoryError> {
        let Some(directory) = place.directory(None, &BaseDirectories::default())? else { return Ok(None) };
        let Some(descriptor) = open(&directory, place, Access::Read)? else { return Ok(None) };
        let status =
            regular_file::status(&descriptor).map_err(|errno| call("look at", place.path, "fstat", errno))?;
        judge(place.path, &status)?;
        let (path, id, descriptor) = (place.path.to_owned(), status.id, Descriptor::Own(descriptor));
        Ok(Some(Self { path, id, descriptor, reader: OnceCell::new(), is_to_look_at: true }))
    }

    /// Opens the file to take slots, and creates it if it is missing. Always opened again: an inherited
    /// description may have locks of its own, which are not visible through it.
    pub fn open_to_lock(
        place: &LockPath<'_>,
        creation: &Creation,
        opening: &Opening<'_>,
    ) -> Result<Self, RepositoryError> {
        for attempt in 0..PATIENCE {
            // A directory that was opened for another file may have been replaced since.
            let (known, anew) = (opening.bases, BaseDirectories::default());
            let bases = if attempt == 0 { known } else { &anew };
            let Some(directory) = place.directory(Some(creation), bases)? else { continue };
            let Some(file) = Self::open_in(&directory, place, Some(creation), opening)? else { continue };
            return Ok(file);
        }
        Err(RepositoryError::ReplacedTooOften { path: place.path.to_owned() })
    }

    /// The same if it exists.
    pub fn open_existing(
        place: &LockPath<'_>,
        opening: &Opening<'_>,
    ) -> Result<Option<Self>, RepositoryError> {
        match place.directory(None, opening.bases)? {
            Some(directory) => Self::open_in(&directory, place, None, opening),
            None => Ok(None),
        }
    }

    /// None if it is missing, or another process created or deleted it meanwhile.
    fn open_in(
        directory: &WalkedDirectory,
        place: &LockPath<'_>,
        creation: Option<&Creation>,
        opening: &Opening<'_>,
    ) -> Result<Option<Self>, RepositoryError> {
        let Opening { inherited, hold, bases: _ } = *opening;
        let path = place.path;
        let failed = |name| move |errno| call("open", path, name, errno);
        let name = place.name()?;
        // Queried before, because moving a descriptor closes one.
        let is_locked = |id| inherited.may_carry_locks_of_the_process(id);
        let stays =
            inherited.has_files() && directory.status_of(name).is_ok_and(|status| is_locked(status.id));
        let low = stays.then(descriptor::occupy_low);
        let (descriptor, is_new) = match (open(directory, place, Access::ReadWrite)?, creation) {
            (Some(descriptor), _) => (descriptor, false),
            (None, None) => return Ok(None),
            (None, Some(creation)) => match directory.create(name, creation.file_mode) {
                Ok(descriptor) => (descriptor, true),
                Err(Errno::EEXIST) => return Ok(None),
                Err(errno) => return Err(call("create", path, "open", errno)),
            },
        };
        let status =
            regular_file::status(&descriptor).map_err(|errno| call("look at", path, "fstat", errno))?;
        let stays = stays || is_locked(status.id);
        let kept = |descriptor| {
            if stays {
                return descriptor::leave_open(descriptor).map(Descriptor::LeftOpen);
            }
            descriptor::move_high(descriptor).map(Descriptor::Own)
        };
        let descriptor = kept(descriptor).map_err(failed("fcntl(F_DUPFD)"))?;
        judge(path, &status)?;
        if status.links == 0 {
            return Ok(None);
        }
        if let Some(owner) = place.owner
            && status.uid != owner
            && directory.is_open_to_others()
        {
            return Err(RepositoryError::WrongOwner {
                path: path.to_owned(),
                owner: status.uid,
                expected: owner,
            });
        }
        // Now, not later: moving it closes a descriptor of the file, which would drop locks of this process.
        let reader = match hold {
            Hold::Process => OnceCell::new(),
            Hold::Descriptor | Hold::Supervisor | Hold::Tree if inherited.has_carriers() => {
                let Some(carrier) = inherited.carrier(status.id) else {
                    return Err(RepositoryError::NoCarrier { path: path.to_owned() });
                };
                OnceCell::from(Descriptor::LeftOpen(carrier))
            }
            Hold::Descriptor | Hold::Supervisor | Hold::Tree => {
                let reader = descriptor::reopen_to_read(descriptor.as_fd()).map_err(failed("open"))?;
                OnceCell::from(kept(reader).map_err(failed("fcntl(F_DUPFD)"))?)
            }
        };
        drop(low);
        let file = Self { path: path.to_owned(), id: status.id, descriptor, reader, is_to_look_at: false };
        if creation.is_some_and(|creation| creation.by_hand) && !is_new && !file.looks_like_one()? {
            return Err(RepositoryError::NoRepository { path: path.to_owned() });
        }
        Ok(Some(file))
    }

    fn looks_like_one(&self) -> Result<bool, RepositoryError> {
        // Nearly always the file is rungate's, and checking these few bytes is enough.
        let mut magic = [0; content::MAGIC.len()];
        if self.read_at(&mut magic, HEADER_AT)? == magic.len() && magic == content::MAGIC {
            return Ok(true);
        }
        let mut content = [0; content::TELLING];
        let length = self.read_at(&mut content, 0)?;
        Ok(looks_like_a_lock_file(content.get(..length).unwrap_or_default()))
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which file it is, whatever its spelling.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// Whether it was opened only for reading: nothing can be written to it.
    pub fn is_to_look_at(&self) -> bool {
        self.is_to_look_at
    }

    /// When its content was last changed.
    pub(super) fn changed(&self) -> Result<SystemTime, RepositoryError> {
        regular_file::changed(self.as_fd()).map_err(|errno| call("look at", &self.path, "fstat", errno))
    }

    /// Whether the path still leads to this file. Only valid while the mutex is held. The path was checked
    /// when the file was opened. Here it only matters where it leads; if nothing has changed, one call
    /// answers that.
    pub fn is_still_at(&self, place: &LockPath<'_>) -> bool {
        let is_this = |status: Status| status.id == self.id;
        regular_file::status_of_path(place.path).is_ok_and(is_this)
            || matches!(place.look(), Ok(Some(status)) if is_this(status))
    }

    /// Opens the other descriptors that this hold needs, if they are not open yet. Nothing is closed that may
    /// have locks of this process.
    pub fn prepare(&self, hold: Hold) -> Result<(), RepositoryError> {
        if hold == Hold::Process || self.reader.get().is_some() {
            return Ok(());
        }
        // What is opened now cannot be moved: that would close a descriptor of the file.
        let low = descriptor::occupy_low();
        let reader = descriptor::reopen_to_read(self.as_fd());
        drop(low);
        let reader = reader.and_then(|reader| match self.descriptor {
            Descriptor::Own(_) => Ok(Descriptor::Own(reader)),
            Descriptor::LeftOpen(_) => descriptor::leave_open(reader).map(Descriptor::LeftOpen),
        });
        let _ = self.reader.set(reader.map_err(|errno| call("open", &self.path, "open", errno))?);
        Ok(())
    }

    /// Lets the locks of slots live on in the program. A lock of the process ends with the first of its
    /// descriptors of the file that is closed, so a reader that an earlier hold needed stays open too.
    pub fn keep_across_exec(&self, hold: Hold) -> Result<(), RepositoryError> {
        let reader = self.reader.get().map(AsFd::as_fd);
        let writable = (hold == Hold::Process || reader.is_none()).then(|| self.as_fd());
        reader
            .into_iter()
            .chain(writable)
            .try_for_each(descriptor::keep_across_exec)
            .map_err(|errno| call("keep", &self.path, "fcntl(F_SETFD)", errno))
    }

    /// Lets the locks of the process live on in the program where a description keeps the slots.
    pub(super) fn keep_writable_across_exec(&self) -> Result<(), RepositoryError> {
        descriptor::keep_across_exec(self.as_fd())
            .map_err(|errno| call("keep", &self.path, "fcntl(F_SETFD)", errno))
    }

    /// A lock of any process within `bytes`, this process included.
    pub fn conflict(&self, bytes: &Bytes) -> Result<Option<Conflict>, RepositoryError> {
        record_lock::conflict(self.as_fd(), bytes)
            .map_err(|errno| call("look at the locks of", &self.path, "fcntl(F_OFD_GETLK)", errno))
    }

    /// Whether the lock that [`Self::conflict`] finds allows other readers; false if there is none.
    pub(super) fn is_read_locked(&self, bytes: &Bytes) -> Result<bool, RepositoryError> {
        let mode = record_lock::mode(self.as_fd(), bytes);
        Ok(mode.map_err(|errno| call("look at the locks of", &self.path, "fcntl(F_OFD_GETLK)", errno))?
            == Some(Mode::Read))
    }

    /// The bytes that this process had locked before it opened the file now: only descriptors that are never
    /// closed can carry such locks.
    pub(super) fn own_locks(&self) -> Vec<Bytes> {
        if matches!(self.descriptor, Descriptor::Own(_)) {
            return Vec::new();
        }
        let own = process::number_in_proc();
        let shown = own.and_then(|own| record_lock::locks_shown_by(own, self.id).ok()).unwrap_or_default();
        shown
            .into_iter()
            .filter(|(ownership, _)| *ownership == Ownership::Process)
            .map(|(_, bytes)| bytes)
            .collect()
    }

    /// Takes a write lock of the process on `bytes`. Returns whether it was free.
    pub fn try_lock(&self, bytes: &Bytes) -> Result<bool, RepositoryError> {
        record_lock::try_lock(self.as_fd(), bytes, Mode::Write, Ownership::Process)
            .map_err(|errno| call("lock", &self.path, "fcntl(F_SETLK)", errno))
    }

    /// Takes a read lock of the process on `bytes`, which a file that can only be read allows too. Says
    /// whether it was free.
    pub(super) fn try_read_lock(&self, bytes: &Bytes) -> Result<bool, RepositoryError> {
        record_lock::try_lock(self.as_fd(), bytes, Mode::Read, Ownership::Process)
            .map_err(|errno| call("lock", &self.path, "fcntl(F_SETLK)", errno))
    }

    /// Releases a lock of the process.
    pub fn unlock(&self, bytes: &Bytes) -> Result<(), RepositoryError> {
        record_lock::unlock(self.as_fd(), bytes, Ownership::Process)
            .map_err(|errno| call("unlock", &self.path, "fcntl(F_SETLK)", errno))
    }

    /// Takes a lock that a description keeps, and not this process. Read locks do not exclude each other, so
    /// this queries first. Call it under the mutex.
    pub(super) fn try_lock_shared(&self, bytes: &Bytes) -> Result<bool, RepositoryError> {
        Ok(self.conflict(bytes)?.is_none() && self.try_join_shared(bytes)?)
    }

    /// The same, together with other readers.
    pub(super) fn try_join_shared(&self, bytes: &Bytes) -> Result<bool, RepositoryError> {
        record_lock::try_lock(self.carrier(), bytes, Mode::Read, Ownership::Description)
            .map_err(|errno| call("lock", &self.path, "fcntl(F_OFD_SETLK)", errno))
    }

    /// Releases a lock that a description keeps.
    pub(super) fn unlock_shared(&self, bytes: &Bytes) -> Result<(), RepositoryError> {
        record_lock::unlock(self.carrier(), bytes, Ownership::Description)
            .map_err(|errno| call("unlock", &self.path, "fcntl(F_OFD_SETLK)", errno))
    }

    /// The descriptor that the program inherits: only for reading, if the hold allows that.
    fn carrier(&self) -> BorrowedFd<'_> {
        self.reader.get().map_or_else(|| self.as_fd(), AsFd::as_fd)
    }

    /// Reads content; returns the number of bytes.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, RepositoryError> {
        regular_file::read_at(self.as_fd(), buffer, offset)
            .map_err(|errno| call("read", &self.path, "pread", errno))
    }

    /// Reads this much content, or less at the end of the file.
    pub fn read(&self, length: usize, offset: u64) -> Result<Vec<u8>, RepositoryError> {
        regular_file::read(self.as_fd(), length, offset)
            .map_err(|errno| call("read", &self.path, "pread", errno))
    }

    /// Writes content.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), RepositoryError> {
        regular_file::write_at(self.as_fd(), bytes, offset)
            .map_err(|errno| call("write", &self.path, "pwrite", errno))
    }
}

/// None when there is nothing.
fn open(
    directory: &WalkedDirectory,
    place: &LockPath<'_>,
    access: Access,
) -> Result<Option<OwnedFd>, RepositoryError> {
    let name = place.name()?;
    match directory.open(name, access) {
        Ok(descriptor) => Ok(Some(descriptor)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(match directory.status_of(name) {
            Ok(Status { kind, .. }) if kind != Kind::Regular => {
                RepositoryError::NotRegular { path: place.path.to_owned(), kind }
            }
            // No other cause prevents opening a file without waiting.
            Ok(Status { id, .. }) if errno == Errno::EAGAIN => {
                let holder = record_lock::holder_of_lease(id).and_then(Process::find);
                RepositoryError::Leased { path: place.path.to_owned(), holder }
            }
            _ => call("open", place.path, "open", errno),
        }),
    }
}

fn judge(path: &Path, status: &Status) -> Result<(), RepositoryError> {
    if status.kind != Kind::Regular {
        return Err(RepositoryError::NotRegular { path: path.to_owned(), kind: status.kind });
    }
    if status.links > 1 {
        return Err(RepositoryError::SeveralLinks { path: path.to_owned(), links: status.links });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::symlink,
    };

    use super::*;
    use crate::keeper::file::prune;

    fn lock_file(file: &File, descriptor: Descriptor) -> LockFile {
        let id = regular_file::status(file).expect("it is open").id;
        LockFile {
            path: PathBuf::from("seats"),
            id,
            descriptor,
            reader: OnceCell::new(),
            is_to_look_at: false,
        }
    }

    /// Who looks at a lock file, or names one, hears what is in its place: a directory, a link, a file with
    /// a second name, or other content.
    #[test]
    fn what_is_no_lock_file_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("seats");
        let place = LockPath::named(&path);
        let look = || LockFile::open_to_read(&place).map(|file| file.is_some());
        let open = || prune::open(&place, &Creation::by_hand(&path, 0o600)).map(drop);
        assert!(matches!(look(), Ok(false)));
        fs::create_dir(&path).expect("a directory");
        assert!(matches!(look(), Err(RepositoryError::NotRegular { kind: Kind::Directory, .. })));
        fs::remove_dir(&path).expect("an empty directory");
        symlink("elsewhere", &path).expect("a link");
        assert!(matches!(look(), Err(RepositoryError::NotRegular { kind: Kind::SymbolicLink, .. })));
        fs::remove_file(&path).expect("a link");
        fs::write(&path, [b'x'; 8192]).expect("a file");
        assert!(matches!(open(), Err(RepositoryError::NoRepository { .. })));
        fs::write(&path, 8_u64.to_ne_bytes()).expect("a file");
        assert!(matches!(open(), Ok(())), "exectimes has written it");
        let header = [&[b'x'; content::HEADER_INDEX][..], &content::MAGIC].concat();
        fs::write(&path, header).expect("a file");
        assert!(matches!((open(), look()), (Ok(()), Ok(true))));
        fs::hard_link(&path, directory.path().join("again")).expect("a link");
        assert!(matches!(look(), Err(RepositoryError::SeveralLinks { links: 2, .. })));
        assert!(matches!(open(), Err(RepositoryError::SeveralLinks { links: 2, .. })));
    }

    /// A launch in the process of a holder finds what the process has locked already. What a description has
    /// locked is not that.
    #[test]
    fn the_own_locks_are_those_of_the_process() {
        // Such a descriptor is never closed.
        let open: &'static File = Box::leak(Box::new(tempfile::tempfile().expect("a file")));
        let file = lock_file(open, Descriptor::LeftOpen(open.as_fd()));
        assert!(file.try_lock(&(8..=9)).expect("a lock file"), "it is free");
        assert!(file.try_join_shared(&(20..=20)).expect("a lock file"), "it is free");
        assert_eq!(file.own_locks(), [8..=9]);
    }

    /// A lock of the process needs no other descriptor. Any other hold has one that can only be read.
    #[test]
    fn a_hold_has_the_descriptor_that_it_needs() {
        let open = tempfile::tempfile().expect("a file");
        let file = lock_file(&open, Descriptor::Own(open.try_clone().expect("a descriptor").into()));
        let writes = || rustix::io::write(file.carrier(), b"x");
        file.prepare(Hold::Process).expect("a lock file");
        assert_eq!(writes(), Ok(1));
        file.prepare(Hold::Descriptor).expect("a lock file");
        assert!(file.try_lock(&(8..=8)).expect("a lock file"), "it is free");
        for hold in [Hold::Descriptor, Hold::Supervisor, Hold::Tree] {
            file.prepare(hold).expect("a lock file");
            assert_eq!(writes(), Err(rustix::io::Errno::BADF), "{hold:?}");
        }
        let kept = file.conflict(&(8..=8)).expect("a lock file").and_then(|lock| lock.pid);
        assert_eq!(kept, Some(process::own_pid()), "no descriptor was closed meanwhile");
    }
}
