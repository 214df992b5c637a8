//! Other programs that hold the slots of a file: `benches/programs/crowd.rs`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::site::Site;

/// Holders, for as long as it is there.
pub(crate) struct Crowd {
    child: Child,
    input: Option<ChildStdin>,
}

impl Crowd {
    /// So many of them, in the first slots of a file.
    pub(crate) fn of(site: &Site, file: &Path, count: u64) -> Self {
        Self::ordered(site, file, count, None)
    }

    /// The same by peers, who took their slots in a random order.
    pub(crate) fn in_random_order(site: &Site, file: &Path, count: u64) -> Self {
        Self::ordered(site, file, count, Some("random"))
    }

    fn ordered(site: &Site, file: &Path, count: u64, order: Option<&str>) -> Self {
        let mut command = Command::new(site.program("crowd"));
        command.arg(file).arg(count.to_string()).args(order).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the crowd starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        let input = child.stdin.take();
        Self { child, input }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
