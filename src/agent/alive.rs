//! All processes of the host, from one read of `/proc`: their parents, and which FIFOs each has open.

use std::collections::BTreeMap;

use crate::{
    keeper::signalling::open_unchanged,
    sys::{
        fifo,
        process::{self, PidFd, Process},
        stamp::FileId,
    },
};

pub(super) struct Alive {
    processes: BTreeMap<i32, Process>,
    /// The FIFOs of launches that each of them has open.
    fifos: BTreeMap<i32, Vec<FileId>>,
}

impl Alive {
    pub(super) fn look() -> Self {
        let own = process::own_pid();
        let all = process::all().into_iter().filter(|process| process.pid != own && !process.is_zombie());
        let processes: BTreeMap<i32, Process> = all.map(|process| (process.pid, process)).collect();
        let fifos = processes.keys().map(|pid| (*pid, fifo::of_process(*pid)));
        let fifos = fifos.filter(|(_, fifos)| !fifos.is_empty()).collect();
        Self { processes, fifos }
    }

    /// The descendants of a process, and all others that have this FIFO open.
    pub(super) fn below(&self, pid: i32, fifo: Option<FileId>) -> Vec<PidFd> {
        let has_fifo =
            |of: i32| self.fifos.get(&of).is_some_and(|all| fifo.is_some_and(|fifo| all.contains(&fifo)));
        let is_below = |process: &&Process| {
            process.pid != pid && (self.is_descendant(process.pid, pid) || has_fifo(process.pid))
        };
        self.processes.values().filter(is_below).filter_map(open_unchanged).collect()
    }

    /// The processes with this FIFO open; each is opened by pidfd and then checked again.
    pub(super) fn heirs(&self, fifo: FileId) -> Vec<PidFd> {
        let has_it = |open: &PidFd| fifo::of_process(open.pid()).contains(&fifo);
        let had_it = self.fifos.iter().filter(|(_, fifos)| fifos.contains(&fifo));
        let heirs = had_it.filter_map(|(pid, _)| self.processes.get(pid));
        heirs.filter_map(open_unchanged).filter(has_it).collect()
    }

    fn is_descendant(&self, pid: i32, of: i32) -> bool {
        let parent = |pid: &i32| self.processes.get(pid).map(|process| process.parent);
        // A reused process id could form a cycle.
        let mut above = std::iter::successors(parent(&pid), parent).take(self.processes.len());
        above.any(|above| above == of)
    }
}
