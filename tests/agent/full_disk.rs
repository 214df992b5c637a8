//! With its state directory full: launches are refused with a reason, nothing is lost or doubled, and it
//! serves again when there is room.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use super::{REFUSED, held, is_held_by, seats, waiter, waiting};
use crate::support::{Ending, Running, Site, eventually, needs_root};

/// The agent's state on a disk of its own, in a mount namespace that outlives the agent.
struct Disk {
    keeper: Running,
}

impl Disk {
    /// A site whose agent has been ended, and its state put on a small disk.
    fn begin(limit: u32, more: &str) -> (Site, Self) {
        let (site, agent) = seats(limit, more);
        agent.kill();
        let mount = "mount -t tmpfs -o size=64k,mode=700 tmpfs /run/rungate-agent/state && exec cat";
        let keeper = site.test().program("/bin/sh").args(["-c", mount]).spawn();
        (site, Self { keeper })
    }

    fn agent(&self, site: &Site) -> Running {
        site.agent_through(["nsenter".to_owned(), format!("--mount=/proc/{}/ns/mnt", self.keeper.pid())])
    }

    fn path(&self, name: &str) -> PathBuf {
        format!("/proc/{}/root/run/rungate-agent/state/{name}", self.keeper.pid()).into()
    }

    /// Writes until there is no more room.
    #[track_caller]
    fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.path("filler")).expect("a file");
        loop {
            match file.write_all(&[b'x'; 512]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Gives what the agent has written a second name: what it deletes takes as much room as before.
    #[track_caller]
    fn keep_room_taken(&self) {
        eventually("its program has started", || {
            let has_started = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "started");
            self.files("holdings").iter().any(has_started).then_some(())
        });
        for (number, path) in [self.files("holdings"), self.files("places")].concat().iter().enumerate() {
            fs::hard_link(path, self.path(&format!("kept-{number}"))).expect("another name");
        }
    }

    /// What is recorded in a folder.
    #[track_caller]
    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(folder)).expect("the folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "json" || end == "started")).collect()
    }

    fn empty(&self) {
        fs::remove_file(self.path("filler")).expect("the filler");
    }
}

const FULL: &str = "rungate: matlab: not started: the agent refuses: it cannot save its state: [..]: No \
    space left on device\n";

#[test]
fn a_full_disk_refuses_launches_and_loses_and_doubles_nothing() {
    needs_root!();
    for hold in ["process", "tree"] {
        let (site, disk) = Disk::begin(2, &format!("hold = \"{hold}\""));
        let agent = disk.agent(&site);
        let launch = site.test().user("games").args(["run", "--", "matlab"]);
        let stays = launch.spawn();
        let goes = launch.spawn();
        disk.fill();
        // What is held is counted as ever.
        launch.clone().stderr(REFUSED).status(75);
        goes.kill();
        eventually("its slot is free", || is_held_by(&site, &[&stays]).then_some(()));
        disk.fill();
        for _ in 0..3 {
            launch.clone().stderr(FULL).status(74);
        }
        assert!(is_held_by(&site, &[&stays]), "{hold}");
        // An agent that dies meanwhile comes back with what it has.
        agent.kill();
        let _agent = disk.agent(&site);
        launch.clone().stderr(FULL).status(74);
        assert!(is_held_by(&site, &[&stays]), "{hold}");
        assert_eq!(disk.files("holdings").len(), 1, "{hold}");
        disk.empty();
        let next = launch.spawn();
        assert!(is_held_by(&site, &[&stays, &next]), "{hold}");
        launch.clone().stderr(REFUSED).status(75);
    }
}

/// A slot stays taken after its program although that cannot be recorded; the next agent finds what kept it until
/// then.
#[test]
fn a_slot_that_lingers_on_a_full_disk_is_known_to_the_next_agent() {
    needs_root!();
    let (site, disk) = Disk::begin(1, "hold = \"tree\"\nlinger = \"1h\"");
    let agent = disk.agent(&site);
    let matlab = |user: &str| site.test().user(user).args(["run", "--", "matlab"]);
    let mut running = matlab("games").spawn();
    disk.keep_room_taken();
    disk.fill();
    running.close_stdin();
    running.end();
    site.test().args(["list"]).stdout("seats: 1 of 1 used, 1 lingering\n...\n").status(0);
    agent.kill();
    let _agent = disk.agent(&site);
    matlab("nobody").stderr(REFUSED).status(75);
    disk.empty();
    let again = matlab("games").spawn();
    assert!(is_held_by(&site, &[&again]));
}

/// Whoever waits is told as well when their turn comes.
#[test]
fn who_waits_is_told_of_a_full_disk_in_their_turn() {
    needs_root!();
    let (site, disk) = Disk::begin(1, "");
    let _agent = disk.agent(&site);
    let holder = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let waits = [1, 2].map(|place| waiter(&site, "nobody", place));
    disk.keep_room_taken();
    disk.fill();
    holder.kill();
    for mut waits in waits {
        let outcome = waits.end();
        assert_eq!(outcome.ending, Ending::Status(74), "{outcome:?}");
        let is_told = outcome.stderr.contains("No space left on device");
        assert!(is_told || outcome.lost_its_patience(), "{outcome:?}");
    }
    assert_eq!((held(&site), waiting(&site)), (vec![], 0));
    site.test().user("games").args(["run", "--", "matlab"]).stderr(FULL).status(74);
    disk.empty();
    let next = site.test().user("nobody").args(["run", "--", "matlab"]).spawn();
    assert_eq!(held(&site), [(1, next.pid().into())]);
}
