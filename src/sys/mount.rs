//! The file system of a file, from the kernel: its kind, its options, and whether all of it is mounted there
//! or only a part, as in a container.

use std::{
    fs::{self, File},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use nix::fcntl::OFlag;

use super::process;

/// A mount, by its line in `/proc/self/mountinfo`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Mount {
    /// The mounted part of the file system: `/` for all of it.
    pub(crate) root: String,
    /// Where it is mounted.
    pub(crate) point: PathBuf,
    /// `ext4`, `nfs4`, `fuse.sshfs`.
    pub(crate) kind: String,
    /// Options of the whole file system: `rw`, `local_lock=none`, `vers=3`.
    pub(crate) options: Vec<String>,
}

impl Mount {
    /// The mount of a path; none if the path does not exist or the kernel does not report it.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let file = File::options().read(true).custom_flags(OFlag::O_PATH.bits()).open(path).ok()?;
        let about = process::read(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
        let id = about.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        mounts.lines().find(|line| line.split(' ').next() == Some(id)).and_then(Self::parse)
    }

    /// Whether the next boot removes it: it is below `/run`, or only in memory.
    pub(crate) fn is_gone_at_boot(path: &Path) -> bool {
        let there = path.ancestors().find_map(Self::of);
        path.starts_with("/run") || there.is_some_and(|mount| mount.kind == "tmpfs")
    }

    /// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let mut fields = file_system.split(' ');
        Some(Self {
            root: root.to_owned(),
            point: PathBuf::from(point),
            kind: fields.next()?.to_owned(),
            options: fields.nth(1)?.split(',').map(str::to_owned).collect(),
        })
    }

    /// Whether an option has this value; for an option without values, whether it is set.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|known| known == option)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel_has_optional_fields() {
        let nfs = "41 22 0:37 /exports/a /srv/locks rw,relatime shared:1 master:7 - nfs4 nas:/exports rw,vers=4.2,local_lock=none";
        let mount = Mount::parse(nfs).expect("a mount");
        assert_eq!((mount.root.as_str(), mount.kind.as_str()), ("/exports/a", "nfs4"));
        assert!(mount.has("local_lock=none") && !mount.has("local_lock"));
        assert_eq!(
            Mount::parse("41 22 0:37 / /run rw - tmpfs tmpfs rw").expect("a mount").point,
            Path::new("/run")
        );
        assert_eq!(Mount::parse(""), None);
    }

    /// What is below `/run` is gone, whether it exists or not.
    #[test]
    fn the_next_boot_removes_what_is_not_on_a_disk() {
        assert!(Mount::is_gone_at_boot(Path::new("/run/none/of/that")));
        assert!(!Mount::is_gone_at_boot(Path::new("/proc/self/none/of/that")));
    }

    #[test]
    fn every_path_is_on_some_file_system() {
        assert_eq!(Mount::of(Path::new("/proc/self")).expect("/proc is mounted").kind, "proc");
        assert_eq!(Mount::of(Path::new("/nonexistent")), None);
    }
}
