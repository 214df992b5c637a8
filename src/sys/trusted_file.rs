//! A file that only root or the caller can have written. What is read is what was judged: the path is looked up once, by
//! a walk that judges every directory on the way.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use nix::{
    errno::Errno,
    fcntl::OFlag,
    libc,
    sys::stat::{FileStat, fstat},
};

use crate::sys::{
    distrust::{Distrust, LONGEST, Reason},
    stamp::Stamp,
    trusted_walk::{Found, Walk, is_private_group, judge_owner, kind},
};

/// A file that was judged and not yet read.
#[derive(Debug)]
pub struct TrustedFile {
    file: File,
    path: PathBuf,
    status: FileStat,
}

impl TrustedFile {
    /// Opens a file for a caller with this real uid; `None` when there is none. A relative path starts in the working
    /// directory.
    pub fn open(path: &Path, caller: u32) -> Result<Option<TrustedFile>, Distrust> {
        Self::at_the_end_of(Walk::from_root(path, caller)?, caller)
    }

    pub(super) fn at_the_end_of(walk: Walk, caller: u32) -> Result<Option<TrustedFile>, Distrust> {
        let found = walk.end(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        found.map(|found| TrustedFile::judged(found, caller)).transpose()
    }

    fn judged(found: Found, caller: u32) -> Result<TrustedFile, Distrust> {
        let Found { descriptor, path, status } = found;
        let blame = |reason| Distrust { path: path.clone(), reason };
        if kind(&status) != libc::S_IFREG {
            return Err(blame(Reason::NotAFile));
        }
        judge_owner(&status, caller).map_err(blame)?;
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

    /// Its content.
    pub fn read(&mut self) -> Result<Vec<u8>, Distrust> {
        let mut content = Vec::with_capacity(usize::try_from(self.status.st_size).unwrap_or(0).min(1 << 20));
        let read = self.file.by_ref().take((LONGEST << 20) + 1).read_to_end(&mut content);
        let reason = match read {
            Ok(length) if length as u64 <= LONGEST << 20 => return Ok(content),
            Ok(_) => Reason::TooLong,
            Err(error) => Reason::System("read", Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))),
        };
        Err(Distrust { path: self.path.clone(), reason })
    }

    /// Whether nobody has changed it since it was opened: what was read in between is what the stamp stands for.
    pub fn is_unchanged(&self) -> bool {
        fstat(&self.file).is_ok_and(|now| Stamp::from(&now) == self.stamp())
    }

    /// Its state when it was opened.
    pub fn stamp(&self) -> Stamp {
        Stamp::from(&self.status)
    }

    /// Who owns it.
    pub fn owner(&self) -> u32 {
        self.status.st_uid
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
            let opened = TrustedFile::open(&self.at(name), getuid().as_raw());
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
        assert_eq!(tree.open("fifo"), Err(Reason::NotAFile));
        assert_eq!(tree.open("d"), Err(Reason::NotAFile));
        assert_eq!(tree.open("d/policy.toml/x"), Err(Reason::NotADirectory));
    }

    #[test]
    fn a_directory_lists_in_byte_order_and_opens_relative_to_itself() {
        let tree = Tree::new();
        fs::write(tree.at("d/10-b.toml"), "b").expect("a file");
        symlink("policy.toml", tree.at("d/05-link.toml")).expect("a link");
        let uid = getuid().as_raw();
        let directory = TrustedDirectory::open(&tree.at("d"), uid).expect("trusted").expect("there");
        assert_eq!(directory.names().expect("names"), ["05-link.toml", "10-b.toml", "policy.toml"]);
        fs::rename(tree.at("d"), tree.at("moved")).expect("rename");
        let mut file = directory.file("05-link.toml".as_ref()).expect("trusted").expect("there");
        assert_eq!(file.read().expect("content"), b"version = 1\n");
        assert!(TrustedDirectory::open(&tree.at("d"), uid).expect("absent").is_none());
        assert!(TrustedDirectory::open(&tree.at("moved/policy.toml"), uid).is_err());
    }

    #[test]
    fn a_stamp_tells_one_state_from_the_next() {
        let tree = Tree::new();
        let path = tree.at("d/policy.toml");
        let file = TrustedFile::open(&path, getuid().as_raw()).expect("trusted").expect("there");
        assert_eq!(Some(file.stamp()), Stamp::of(&path));
        fs::write(&path, "version = 1 # longer\n").expect("a file");
        assert_ne!(Some(file.stamp()), Stamp::of(&path));
        assert_eq!(Stamp::of(&tree.at("none")), None);
    }
}
