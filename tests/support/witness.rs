//! The witness beside a storm: see `tests/programs/slot_witness.rs` for what it sees and how it knows.

use std::collections::BTreeMap;

use super::running::Running;
use super::site::Site;

/// A running witness of one repository of a site.
pub(crate) struct Witness {
    running: Running,
}

/// What it has seen.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Seen {
    /// The most slots that were held at one moment.
    pub(crate) most: usize,
    /// By uid: the most slots that this user held at one moment, and every slot that they were ever seen in.
    pub(crate) users: BTreeMap<u32, (usize, Vec<i64>)>,
}

impl Witness {
    /// Starts watching a repository, and returns when it looks.
    #[track_caller]
    pub(crate) fn watch(site: &Site, repository: &str) -> Self {
        let running =
            site.test().program(site.helper("slot_witness")).args([site.repository(repository)]).background();
        let mut witness = Self { running };
        witness.report();
        witness
    }

    /// What was seen until now, and at least once since this was called.
    #[track_caller]
    pub(crate) fn report(&mut self) -> Seen {
        self.running.write_line("report");
        let mut seen = Seen::default();
        loop {
            let line = self.running.read_line();
            match line.trim_end().split(' ').collect::<Vec<&str>>().as_slice() {
                ["end"] => return seen,
                ["all", "most", most] => seen.most = number(most),
                ["uid", uid, "most", most, "slots", slots] => {
                    let slots = slots.split(',').map(number).collect();
                    seen.users.insert(number(uid), (number(most), slots));
                }
                _ => panic!("not a report: {line:?}"),
            }
        }
    }
}

fn number<N: std::str::FromStr>(text: &str) -> N {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text:?}"))
}
