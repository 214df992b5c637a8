//! The file system of a file, from the kernel: its kind, its options, and whether all of it is mounted there
//! or only a part, as in a container.

use std::{
    fs::{self, File},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use nix::fcntl::OFlag;
#[cfg(feature = "tools")]
use nix::unistd::geteuid;

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

/// Whether `/proc` hides the processes of other users from some callers (`hidepid`).
#[cfg(feature = "tools")]
pub(crate) fn may_hide_processes() -> bool {
    Mount::of(Path::new("/proc/.")).is_some_and(|mount| mount.options.iter().any(|option| hides(option)))
}

/// Whether the caller sees a process of another user nevertheless. Its own process may seem to be root's.
#[cfg(feature = "tools")]
pub(crate) fn sees_others() -> bool {
    let (user, own) = (geteuid().as_raw(), process::number_in_proc());
    process::all().iter().any(|seen| Some(seen.pid) != own && is_of_another(seen.pid, user))
}

/// Not if it has just ended, because then its owner is unknown.
#[cfg(feature = "tools")]
fn is_of_another(pid: i32, user: u32) -> bool {
    process::owner(pid).is_some_and(|owner| owner != user)
}

/// As a number or, with newer kernels, as a word.
#[cfg(feature = "tools")]
fn hides(option: &str) -> bool {
    option.strip_prefix("hidepid=").is_some_and(|value| value != "0" && value != "off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_has_its_words_for_what_is_hidden() {
        for option in ["hidepid=1", "hidepid=2", "hidepid=invisible", "hidepid=ptraceable"] {
            assert!(hides(option), "{option}");
        }
        for option in ["hidepid=0", "hidepid=off", "rw", "gid=0"] {
            assert!(!hides(option), "{option}");
        }
    }

    /// No process has this number.
    #[test]
    fn a_process_that_has_ended_is_not_of_another_user() {
        assert!(!is_of_another(i32::MAX, geteuid().as_raw()));
        assert!(is_of_another(process::own_pid(), u32::MAX));
    }

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
