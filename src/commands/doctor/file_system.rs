//! The file system of a directory of repositories: whether the kernel keeps locks there, and for whom.

use std::{fs::File, os::fd::AsFd, path::Path, sync::mpsc::channel, thread, time::Duration};

use crate::{
    commands::doctor::finding::Finding,
    escape::Show,
    sys::{mount::Mount, record_lock},
};

/// Kinds that are one host's, and keep locks.
const LOCAL: [&str; 10] =
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs", "reiserfs"];

/// Kinds for several hosts whose locks are the cluster's, as far as they are mounted so.
const CLUSTER: [&str; 6] = ["gpfs", "lustre", "ceph", "gfs2", "ocfs2", "beegfs"];

/// What tells that this is a container: files that its makers leave.
const CONTAINER: [&str; 3] = ["/.dockerenv", "/run/.containerenv", "/run/host/container-manager"];

/// How long whoever keeps the locks of other hosts may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What to know of the file system of a directory; nothing where it is not there.
pub(super) fn of(directory: &Path) -> Option<Finding> {
    let mount = Mount::of(directory)?;
    let shown = format!("{} is on {}", directory.shown(), mount.kind.shown());
    Some(match mount.kind.as_str() {
        _ if is_nfs(&mount) => of_nfs(&mount, directory, &shown),
        "tmpfs" | "ramfs" => within(&mount, directory, &format!("{shown}: one host's, until its next boot")),
        "overlay" | "aufs" => of_overlay(&shown),
        kind if LOCAL.contains(&kind) => within(&mount, directory, &format!("{shown}: one host's")),
        kind if CLUSTER.contains(&kind) => Finding::note(
            "file-system",
            format!("{shown}: limits hold for all hosts if its locks do, which a mount option may have turned off"),
        )
        .mend("On two hosts: rungate run --repository FILE --limit 1 -- sleep 60; one of the two must be refused."),
        kind if kind == "proc" || kind == "sysfs" || kind == "vfat" || kind == "exfat" => {
            Finding::fault("file-system", format!("{shown}, which has no owners or modes"))
                .mend("In the policy, name a directory elsewhere: [defaults] directory = \"/run/rungate\"")
        }
        _ => Finding::warning("file-system", format!("{shown}: whether its locks hold for others, nobody has tried"))
            .mend("Twice at once: rungate run --repository FILE --limit 1 -- sleep 60; one of the two must be refused."),
    })
}

/// The same where it is on NFS.
pub(super) fn of_network(directory: &Path) -> Option<Finding> {
    Mount::of(directory).filter(is_nfs).and_then(|_| of(directory))
}

fn is_nfs(mount: &Mount) -> bool {
    mount.kind == "nfs" || mount.kind == "nfs4"
}

/// Locks of NFS go to the server, unless the mount keeps them on the host. Before its fourth version they are
/// a service of their own.
fn of_nfs(mount: &Mount, directory: &Path, shown: &str) -> Finding {
    let point = mount.point.shown();
    if ["nolock", "local_lock=all", "local_lock=posix"].iter().any(|option| mount.has(option)) {
        let text = format!("{shown} with locks that stay on this host: each host counts for itself");
        return Finding::warning("file-system", text)
            .mend(format!("Mount {point} without nolock and local_lock, best as NFS 4."));
    }
    if !are_locks_answered(directory) {
        let text = format!("{shown}, whose server does not answer for its locks: launches hang");
        return Finding::fault("file-system", text)
            .mend("On the server: rpcinfo -p | grep nlockmgr; with NFS 4 there is no such service to miss.");
    }
    Finding::fine("file-system", format!("{shown}: limits hold for all hosts that mount it"))
}

/// Whether a question about a lock of some file in it is answered. Whoever asks a server that does not answer
/// hangs, so this is asked by a thread that may be left behind.
fn are_locks_answered(directory: &Path) -> bool {
    let files = directory.read_dir().into_iter().flatten().flatten();
    let file = files
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .find_map(|entry| File::options().read(true).write(true).open(entry.path()).ok());
    let Some(file) = file else { return true };
    let (sender, answer) = channel();
    thread::spawn(move || {
        let _ = sender.send(record_lock::conflict_with_process(file.as_fd(), &(0..=0)).is_ok());
    });
    answer.recv_timeout(PATIENCE).unwrap_or(false)
}

fn of_overlay(shown: &str) -> Finding {
    let text = format!(
        "{shown}, which is a container's own: nobody outside, and no other container, counts with it"
    );
    Finding::warning("file-system", text)
        .mend("Lend the container the host's directory: docker run -v /run/rungate:/run/rungate …")
}

/// Whether this is a container, as its makers tell.
pub(super) fn is_container() -> bool {
    CONTAINER.iter().any(|mark| Path::new(mark).exists())
}

/// A directory of a container is either its own or lent to it.
fn within(mount: &Mount, directory: &Path, text: &str) -> Finding {
    if !is_container() {
        return Finding::fine("file-system", text);
    }
    if mount.root == "/" {
        let own = format!("{} is this container's own: nobody outside of it counts", directory.shown());
        return Finding::note("file-system", own)
            .mend("To share it, lend the container the host's: docker run -v /run/rungate:/run/rungate …");
    }
    Finding::note(
        "file-system",
        format!(
            "{} is lent to this container ({}): holders outside of it count, unseen",
            directory.shown(),
            mount.root.shown()
        ),
    )
}
