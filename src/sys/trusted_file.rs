//! A file that only root or the caller can have written. What is read is what was judged: the path is looked
//! up once, by a walk that judges every directory on the way.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use nix::{errno::Errno, fcntl::OFlag, libc, sys::stat::FileStat};

use crate::sys::{
    distrust::{Distrust, LONGEST, Reason},
    extended_attributes::ExtendedAttributes,
    failure::Failure,
    judged_directories::JudgedDirectories,
    stamp::Stamp,
    trust::{Trust, is_private_group},
    trusted_walk::{Found, Walk, kind},
};

/// A file that was judged and not yet read.
#[derive(Debug)]
pub struct TrustedFile {
    file: File,
    path: PathBuf,
    status: FileStat,
}

impl TrustedFile {
    /// Opens a file; `None` when there is none. A relative path starts in the working directory.
    pub fn open(path: &Path, judged: &JudgedDirectories) -> Result<Option<TrustedFile>, Distrust> {
        judged.sparingly(|| Self::at_the_end_of(Walk::from_root(path, judged)?, &judged.trust()))
    }

    /// The same for a caller with this real uid, of a file that may belong to this user too.
    pub fn open_of(path: &Path, caller: u32, owner: u32) -> Result<Option<TrustedFile>, Distrust> {
        let trust = Trust::of_either(caller, owner);
        Self::at_the_end_of(Walk::from_root_trusting(path, trust.clone(), None)?, &trust)
    }

    pub(super) fn at_the_end_of(walk: Walk<'_>, trust: &Trust) -> Result<Option<TrustedFile>, Distrust> {
        let found = walk.end(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        found.map(|found| TrustedFile::judged(found, trust)).transpose()
    }

    fn judged(found: Found, trust: &Trust) -> Result<TrustedFile, Distrust> {
        let Found { descriptor, path, status } = found;
        let blame = |reason| Distrust { path: path.clone(), reason };
        if kind(&status) != libc::S_IFREG {
            return Err(blame(Reason::NotAFile(kind(&status))));
        }
        trust.judge_owner(&status).map_err(blame)?;
        // Unlike a directory, a file gains nothing from group 0: whoever is in it would be believed.
        let mode = status.st_mode & 0o7777;
        if mode & 0o002 != 0 {
            return Err(blame(Reason::WorldWritable(mode)));
        }
        if mode & 0o020 != 0 && !is_private_group(&status) {
            return Err(blame(Reason::GroupWritable(mode)));
        }
        Ok(TrustedFile { file: descriptor.into(), path, status })
    }

    /// The same, if nobody but its owner can read it.
    pub fn of_its_owner_alone(self) -> Result<TrustedFile, Distrust> {
        let mode = self.status.st_mode & 0o7777;
        match mode & 0o077 {
            0 => Ok(self),
            _ => Err(Distrust { path: self.path, reason: Reason::ForOthers(mode) }),
        }
    }

    /// Its content.
    pub fn read(&mut self) -> Result<Vec<u8>, Distrust> {
        let reason = match self.read_all() {
            Ok(content) if content.len() as u64 <= LONGEST << 20 => return Ok(content),
            Ok(_) => Reason::TooLong,
            Err(error) => Reason::System("read", Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))),
        };
        Err(Distrust { path: self.path.clone(), reason })
    }

    /// As many bytes as `fstat` said, where there was room for one more, are all of it. Any other number is
    /// read on from, to the end.
    fn read_all(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.status.st_size).unwrap_or(0).min(1 << 20);
        let mut content = vec![0; length + 1];
        let read = loop {
            match self.file.read(&mut content) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        content.truncate(read);
        if i64::try_from(read) != Ok(self.status.st_size) {
            let rest = ((LONGEST << 20) + 1).saturating_sub(read as u64);
            self.file.by_ref().take(rest).read_to_end(&mut content)?;
        }
        Ok(content)
    }

    /// Its state when it was opened.
    pub fn stamp(&self) -> Stamp {
        Stamp::from(&self.status)
    }

    /// Who owns it.
    pub fn owner(&self) -> u32 {
        self.status.st_uid
    }

    /// Its group.
    pub fn group(&self) -> u32 {
        self.status.st_gid
    }

    /// Its permission bits.
    pub fn mode(&self) -> u32 {
        self.status.st_mode & 0o7777
    }

    /// Its lists and labels.
    pub(crate) fn extended_attributes(&self) -> Result<ExtendedAttributes, Failure> {
        ExtendedAttributes::of(&self.file)
    }

    /// When it was last written.
    pub fn modified(&self) -> SystemTime {
        let seconds = Duration::from_secs(self.status.st_mtime.unsigned_abs());
        if self.status.st_mtime < 0 {
            SystemTime::UNIX_EPOCH - seconds
        } else {
            SystemTime::UNIX_EPOCH + seconds
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, Permissions},
        os::unix::fs::{PermissionsExt, chown, symlink},
    };

    use nix::{sys::stat::Mode, unistd::getuid};
    use tempfile::TempDir;

    use super::*;
    use crate::sys::trusted_directory::TrustedDirectory;

    struct Tree {
        root: TempDir,
    }

    fn judged() -> JudgedDirectories {
        JudgedDirectories::for_caller(getuid().as_raw())
    }

    impl Tree {
        fn new() -> Self {
            let tree = Tree { root: TempDir::new().expect("a temporary directory") };
            fs::create_dir(tree.at("d")).expect("a directory");
            tree.mode("d", 0o755);
            fs::write(tree.at("d/policy.toml"), "version = 1\n").expect("a file");
            tree.mode("d/policy.toml", 0o644);
            tree
        }

        fn at(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn mode(&self, name: &str, mode: u32) {
            fs::set_permissions(self.at(name), Permissions::from_mode(mode)).expect("chmod");
        }

        fn open(&self, name: &str) -> Result<Option<Vec<u8>>, Reason> {
            let opened = TrustedFile::open(&self.at(name), &judged());
            opened
                .map_err(|distrust| distrust.reason)?
                .map(|mut file| file.read().map_err(|d| d.reason))
                .transpose()
        }
    }

    #[test]
    fn a_file_of_the_caller_is_read() {
        let tree = Tree::new();
        assert_eq!(tree.open("d/policy.toml"), Ok(Some(b"version = 1\n".to_vec())));
        assert_eq!(tree.open("d/../d/./policy.toml"), Ok(Some(b"version = 1\n".to_vec())));
    }

    #[test]
    fn a_file_may_be_older_than_1970() {
        let tree = Tree::new();
        let day = Duration::from_secs(24 * 60 * 60);
        for written in [SystemTime::UNIX_EPOCH - day, SystemTime::UNIX_EPOCH + day] {
            let file = fs::File::open(tree.at("d/policy.toml")).expect("the file");
            file.set_modified(written).expect("a time");
            let opened = TrustedFile::open(&tree.at("d/policy.toml"), &judged()).ok().flatten();
            assert_eq!(opened.map(|file| file.modified()), Some(written));
        }
    }

    #[test]
    fn absence_is_no_fault() {
        let tree = Tree::new();
        assert_eq!(tree.open("d/none"), Ok(None));
        assert_eq!(tree.open("none/policy.toml"), Ok(None));
    }

    #[test]
    fn who_can_write_is_judged_on_the_file_and_on_every_directory() {
        let tree = Tree::new();
        tree.mode("d/policy.toml", 0o664);
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::GroupWritable(0o664)));
        tree.mode("d/policy.toml", 0o646);
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::WorldWritable(0o646)));
        tree.mode("d/policy.toml", 0o644);
        tree.mode("d", 0o777);
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::WorldWritable(0o777)));
        tree.mode("d", 0o1777);
        assert!(
            tree.open("d/policy.toml").is_ok(),
            "a sticky directory is as good as one that is not writable"
        );
    }

    #[test]
    fn another_owner_is_refused_for_a_file_a_directory_and_a_link() {
        if !getuid().is_root() {
            return;
        }
        let tree = Tree::new();
        chown(tree.at("d/policy.toml"), Some(4711), None).expect("chown");
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::Owner(4711)));
        chown(tree.at("d/policy.toml"), Some(0), None).expect("chown");
        chown(tree.at("d"), Some(4711), None).expect("chown");
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::Owner(4711)));
        chown(tree.at("d"), Some(0), None).expect("chown");
        symlink("d/policy.toml", tree.at("link")).expect("a link");
        std::os::unix::fs::lchown(tree.at("link"), Some(4711), None).expect("lchown");
        assert_eq!(tree.open("link"), Err(Reason::Owner(4711)));
    }

    #[test]
    fn links_are_followed_and_what_they_lead_through_is_judged() {
        let tree = Tree::new();
        symlink("d", tree.at("relative")).expect("a link");
        symlink(tree.at("relative/policy.toml"), tree.at("absolute")).expect("a link");
        assert!(matches!(tree.open("absolute"), Ok(Some(_))));
        tree.mode("d", 0o777);
        assert_eq!(tree.open("absolute"), Err(Reason::WorldWritable(0o777)));
        symlink("loop", tree.at("loop")).expect("a link");
        assert_eq!(tree.open("loop"), Err(Reason::TooManyLinks));
    }

    #[test]
    fn only_regular_files_are_read_and_nothing_blocks() {
        let tree = Tree::new();
        nix::unistd::mkfifo(&tree.at("fifo"), Mode::from_bits_truncate(0o644)).expect("a FIFO");
        assert_eq!(tree.open("fifo"), Err(Reason::NotAFile(libc::S_IFIFO)));
        assert_eq!(tree.open("d"), Err(Reason::NotAFile(libc::S_IFDIR)));
        assert_eq!(tree.open("d/policy.toml/x"), Err(Reason::NotADirectory));
    }

    #[test]
    fn a_directory_lists_in_byte_order_and_opens_relative_to_itself() {
        let tree = Tree::new();
        fs::write(tree.at("d/10-b.toml"), "b").expect("a file");
        symlink("policy.toml", tree.at("d/05-link.toml")).expect("a link");
        let directory = TrustedDirectory::open(&tree.at("d"), &judged()).expect("trusted").expect("there");
        assert_eq!(directory.names().expect("names"), ["05-link.toml", "10-b.toml", "policy.toml"]);
        fs::rename(tree.at("d"), tree.at("moved")).expect("rename");
        let mut file = directory.file("05-link.toml".as_ref()).expect("trusted").expect("there");
        assert_eq!(file.read().expect("content"), b"version = 1\n");
        assert!(TrustedDirectory::open(&tree.at("d"), &judged()).expect("absent").is_none());
        assert!(TrustedDirectory::open(&tree.at("moved/policy.toml"), &judged()).is_err());
    }

    #[test]
    fn a_directory_stays_what_was_judged_until_all_files_are_open() {
        let (tree, judged) = (Tree::new(), judged());
        let content = || {
            let mut file =
                TrustedFile::open(&tree.at("d/policy.toml"), &judged).expect("trusted").expect("there");
            file.read().expect("content")
        };
        assert_eq!(content(), b"version = 1\n");
        fs::rename(tree.at("d"), tree.at("aside")).expect("rename");
        fs::create_dir(tree.at("d")).expect("a directory");
        fs::write(tree.at("d/policy.toml"), "version = 2\n").expect("a file");
        tree.mode("d", 0o777);
        assert_eq!(content(), b"version = 1\n");
        assert_eq!(tree.open("d/policy.toml"), Err(Reason::WorldWritable(0o777)));
    }

    #[test]
    fn what_is_above_a_directory_is_asked_of_the_directory() {
        let (tree, judged) = (Tree::new(), judged());
        for name in ["e", "elsewhere"] {
            fs::create_dir(tree.at(name)).expect("a directory");
            tree.mode(name, 0o755);
        }
        fs::write(tree.at("e/file"), "").expect("a file");
        let is_there = |name| TrustedFile::open(&tree.at(name), &judged).expect("trusted").is_some();
        assert!(is_there("e/file") && is_there("d/policy.toml") && is_there("d/../e/file"));
        fs::rename(tree.at("d"), tree.at("elsewhere/d")).expect("rename");
        assert!(is_there("d/policy.toml") && !is_there("d/../e/file"));
    }

    #[test]
    fn a_file_that_grows_or_tells_no_length_is_read_to_the_end() {
        let tree = Tree::new();
        let path = tree.at("d/policy.toml");
        let mut file = TrustedFile::open(&path, &judged()).expect("trusted").expect("there");
        fs::write(&path, "version = 1 # longer\n").expect("a file");
        assert_eq!(file.read().expect("content"), b"version = 1 # longer\n");
        let told =
            |name| TrustedFile::open(Path::new(name), &judged()).expect("trusted").expect("there").read();
        assert!(told("/proc/self/status").expect("content").len() > 500);
    }

    #[test]
    fn a_stamp_tells_one_state_from_the_next() {
        let tree = Tree::new();
        let path = tree.at("d/policy.toml");
        let file = TrustedFile::open(&path, &judged()).expect("trusted").expect("there");
        assert_eq!(Some(file.stamp()), Stamp::of(&path));
        fs::write(&path, "version = 1 # longer\n").expect("a file");
        assert_ne!(Some(file.stamp()), Stamp::of(&path));
        assert_eq!(Stamp::of(&tree.at("none")), None);
    }
}
