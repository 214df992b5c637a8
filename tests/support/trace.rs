//! The system calls of a command, as strace(1) sees them, while it runs.

use std::fs;
use std::path::PathBuf;

use super::deadline::eventually;
use super::running::Running;
use super::site::set_mode;
use super::test::Test;

/// A record of the calls of a running command.
pub(crate) struct Trace {
    path: PathBuf,
}

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    /// When it began: seconds since 1970.
    pub(crate) begun: f64,
    /// Name, arguments and answer.
    pub(crate) text: String,
}

impl Trace {
    /// Starts a command in the background and records these of its calls (`fcntl,poll`, or `all`). The
    /// process id is that of the command. `more` goes to strace(1) as well.
    #[track_caller]
    pub(crate) fn begin(test: &Test, calls: &str, more: &[&str]) -> (Running, Self) {
        let directory = test.site().path("work");
        let number = fs::read_dir(&directory).expect("the working directory").count();
        let path = directory.join(format!("trace-{number}"));
        fs::write(&path, "").expect("a new file");
        set_mode(&path, 0o666);
        let mut words = vec!["strace", "-D", "-qq", "-ttt", "-e", "signal=none", "-o"];
        words.push(path.to_str().expect("a plain path"));
        let traced = format!("trace={calls}");
        words.extend(["-e", &traced]);
        words.extend(more);
        (test.clone().through(words).background(), Self { path })
    }

    /// The calls until now.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let text = fs::read_to_string(&self.path).expect("the record of the calls");
        text.lines()
            .filter_map(|line| {
                let (begun, text) = line.trim_start().split_once(' ')?;
                Some(Call { begun: begun.parse().ok()?, text: text.to_owned() })
            })
            .collect()
    }

    /// Returns the calls when there are so many whose text contains `text`.
    #[track_caller]
    pub(crate) fn after(&self, count: usize, text: &str) -> Vec<Call> {
        eventually(&format!("{count} calls of {text}"), || {
            let calls = self.calls();
            (calls.iter().filter(|call| call.text.contains(text)).count() >= count).then_some(calls)
        })
    }
}
