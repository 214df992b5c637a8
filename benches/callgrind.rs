//! Instructions of a launch, counted by callgrind up to the moment when the process becomes the program: the
//! loader's included, the kernel's not. They are the same whatever else the machine does.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Instructions of a command in user space before it calls `execve`, under a policy; none if valgrind is
/// not installed.
pub(crate) fn instructions<A: AsRef<OsStr>>(
    folder: &Path,
    policy: &Path,
    command: impl IntoIterator<Item = A>,
) -> Option<u64> {
    let output = folder.join("callgrind.out");
    let first_part = folder.join("callgrind.out.1");
    let _ = fs::remove_file(&first_part);
    let file: OsString = [OsStr::new("--callgrind-out-file="), output.as_os_str()].into_iter().collect();
    // The environment has its price: the loader reads it, and so does rungate.
    Command::new("/usr/bin/valgrind")
        .args(["--quiet", "--tool=callgrind", "--dump-before=exec*"])
        .arg(file)
        .args(command)
        .current_dir(folder)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("HOME", "/nonexistent")])
        .env("XDG_RUNTIME_DIR", folder.join("runtime"))
        .env("RUNGATE_POLICY", policy)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok()?;
    let part = fs::read_to_string(first_part).ok()?;
    let total =
        part.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")))?;
    total.trim().parse().ok()
}
