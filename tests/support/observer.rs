//! The observer beside a storm: see `tests/programs/observer.rs` for what it sees and how it knows.

use super::running::Running;
use super::site::Site;

/// A running observer of some repositories of a site.
pub(crate) struct Observer {
    running: Running,
    files: usize,
}

/// What was seen of one repository.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Observed {
    /// The most slots that were held at one moment.
    pub(crate) most: usize,
    /// The number of looks that found more than the limit.
    pub(crate) violations: u64,
}

impl Observer {
    /// Starts watching the repositories, each with its limit, and returns when it looks.
    #[track_caller]
    pub(crate) fn watch<'name>(site: &Site, files: impl IntoIterator<Item = (&'name str, usize)>) -> Self {
        let files: Vec<String> =
            files.into_iter().map(|(name, limit)| format!("$DIR/repositories/{name}={limit}")).collect();
        let running = site.test().program(site.helper("observer")).args(&files).background();
        let mut observer = Self { running, files: files.len() };
        observer.report();
        observer
    }

    /// What was seen until now, and at least once since this was called: in the order in which the files were
    /// given.
    #[track_caller]
    pub(crate) fn report(&mut self) -> Vec<Observed> {
        self.running.write_line("report");
        (0..self.files).map(|_| observed(self.running.read_line().trim_end())).collect()
    }
}

fn observed(line: &str) -> Observed {
    let words: Vec<&str> = line.split(' ').collect();
    let [.., "most", most, "violations", violations] = words.as_slice() else {
        panic!("not a report: {line:?}")
    };
    Observed { most: most.parse().expect("a number"), violations: violations.parse().expect("a number") }
}
