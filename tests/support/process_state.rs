//! A process as `/proc` shows it to others: everything that a program gets from whoever starts it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::deadline::eventually;

/// What a running process was given.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ProcessState {
    /// The arguments, `argv[0]` first.
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<OsString>,
    pub(crate) directory: PathBuf,
    /// What each descriptor is open on.
    pub(crate) descriptors: BTreeMap<u32, PathBuf>,
    /// Of `/proc/PID/status`: the signal mask, the ignored signals, the umask, the credentials.
    pub(crate) status: BTreeMap<String, String>,
    /// The lines of `/proc/PID/limits`.
    pub(crate) limits: Vec<String>,
    /// The nice value and the scheduling policy, fields 19 and 41 of `/proc/PID/stat`.
    pub(crate) scheduling: (String, String),
}

impl ProcessState {
    /// The state of a process that has come to execute the program of this name, and to wait for something:
    /// while it is being loaded not all of it can be seen.
    #[track_caller]
    pub(crate) fn of(pid: i32, program: &str) -> Self {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        eventually(&format!("process {pid} becomes {program}"), || {
            let executable = fs::read_link(proc.join("exe")).expect("a process that has not ended");
            let stat = fs::read_to_string(proc.join("stat")).expect("a process that has not ended");
            (executable.ends_with(program) && stat.contains(") S ")).then_some(())
        });
        let read =
            |name: &str| fs::read(proc.join(name)).unwrap_or_else(|error| panic!("{name} of {pid}: {error}"));
        let text = |name: &str| String::from_utf8_lossy(&read(name)).into_owned();
        let zero_terminated = |bytes: Vec<u8>| -> Vec<OsString> {
            let bytes = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
            bytes.split(|&byte| byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect()
        };
        let kept = ["SigBlk", "SigIgn", "Umask", "Uid", "Gid", "Groups", "NoNewPrivs", "CapEff", "Seccomp"];
        let stat = text("stat");
        let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name in parentheses").1.split(' ').collect();
        Self {
            arguments: zero_terminated(read("cmdline")),
            environment: zero_terminated(read("environ")),
            directory: fs::read_link(proc.join("cwd")).expect("a working directory"),
            descriptors: descriptors(&proc.join("fd")),
            status: text("status")
                .lines()
                .filter_map(|line| line.split_once(":\t"))
                .filter(|(name, _)| kept.contains(name))
                .map(|(name, value)| (name.to_owned(), without_internal_signals(name, value)))
                .collect(),
            limits: text("limits").lines().map(str::to_owned).collect(),
            // The fields after the name begin with the third.
            scheduling: (fields[19 - 3].to_owned(), fields[41 - 3].to_owned()),
        }
    }

    /// One of the sets of signals in the status, the lowest bit for signal 1.
    #[track_caller]
    pub(crate) fn signals(&self, name: &str) -> u64 {
        u64::from_str_radix(&self.status[name], 16).expect("a hexadecimal number")
    }
}

/// Signals 32 and 33 are the C library's own, and `posix_spawn` ignores them for whatever it starts.
fn without_internal_signals(name: &str, value: &str) -> String {
    match u64::from_str_radix(value, 16) {
        Ok(signals) if name.starts_with("Sig") => format!("{:016x}", signals & !(0b11 << 31)),
        _ => value.to_owned(),
    }
}

fn descriptors(directory: &PathBuf) -> BTreeMap<u32, PathBuf> {
    let entries = fs::read_dir(directory).expect("the descriptors of a process of ours");
    entries
        .map(|entry| {
            let entry = entry.expect("an entry of the directory");
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok()).expect("a number");
            (number, fs::read_link(entry.path()).expect("the target of an open descriptor"))
        })
        .collect()
}
