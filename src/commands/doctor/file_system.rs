//! The file system of a directory of repositories: whether the kernel keeps locks there, and for whom.

use std::path::Path;

use crate::{commands::doctor::finding::Finding, escape::Show, sys::mount::Mount};

/// Kinds that are one host's, and keep locks.
const LOCAL: [&str; 10] =
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "bcachefs", "reiserfs"];

/// Kinds for several hosts whose locks are the cluster's, as far as they are mounted so.
const CLUSTER: [&str; 6] = ["gpfs", "lustre", "ceph", "gfs2", "ocfs2", "beegfs"];

/// What tells that this is a container: files that its makers leave.
const CONTAINER: [&str; 3] = ["/.dockerenv", "/run/.containerenv", "/run/host/container-manager"];

/// What to know of the file system of a directory; nothing where it is not there.
pub(super) fn of(directory: &Path) -> Option<Finding> {
    let mount = Mount::of(directory)?;
    let shown = format!("{} is on {}", directory.shown(), mount.kind.shown());
    Some(match mount.kind.as_str() {
        "nfs" | "nfs4" => of_nfs(&mount, &shown),
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

/// Locks of NFS go to the server, unless the mount keeps them on the host.
fn of_nfs(mount: &Mount, shown: &str) -> Finding {
    let point = mount.point.shown();
    let is_local = mount.has("nolock") || mount.has("local_lock=all") || mount.has("local_lock=posix");
    if !is_local {
        return Finding::fine("file-system", format!("{shown}: limits hold for all hosts that mount it"));
    }
    Finding::warning(
        "file-system",
        format!("{shown} with locks that stay on this host: each host counts for itself"),
    )
    .mend(format!("Mount {point} without nolock and local_lock, best as NFS 4."))
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
