//! The instruments themselves: what watches the others must be shown to see.

use std::thread;

use crate::support::{Account, Observed, Observer, ProcessState, Site, Test, Witness, needs_root};

#[test]
fn a_test_compares_what_it_does_not_mention() {
    let cat = Test::new().program("/bin/cat").stdin("a\n");
    cat.clone().stdout("a\n").status(0);
    for wrong in [cat.clone(), cat.clone().stdout("b\n"), cat.clone().stdout("a\n").stderr("a\n")] {
        thread::spawn(move || wrong.status(0)).join().expect_err("the outputs differ");
    }
    let wrong = cat.stdout("a\n");
    thread::spawn(move || wrong.status(1)).join().expect_err("the statuses differ");
}

#[test]
fn a_process_is_described_from_outside() {
    let site = Site::new();
    let cat = site.test().program("/bin/cat").args(["-u"]).env("COLOUR", "blue");
    let plain = cat.spawn();
    let plain = ProcessState::of(plain.pid(), "cat");
    assert_eq!(plain.arguments, ["/bin/cat", "-u"]);
    assert!(plain.environment.contains(&"COLOUR=blue".into()));
    assert_eq!(plain.directory, site.path("work"));
    assert!([0, 1, 2].iter().all(|number| plain.descriptors.contains_key(number)));

    let changed = cat.through(["nice", "-n5", "env", "--ignore-signal=PIPE", "--block-signal=USR1"]).spawn();
    let changed = ProcessState::of(changed.pid(), "cat");
    // Bit 0 is signal 1: PIPE is 13, USR1 is 10.
    assert_eq!((plain.signals("SigIgn") >> 12 & 1, changed.signals("SigIgn") >> 12 & 1), (0, 1));
    assert_eq!((plain.signals("SigBlk") >> 9 & 1, changed.signals("SigBlk") >> 9 & 1), (0, 1));
    assert_ne!(plain.scheduling, changed.scheduling);
}

#[test]
fn the_observer_sees_one_holder_too_many() {
    let site = Site::new();
    let mut observer = Observer::watch(&site, [("seats", 2), ("spare", 2)]);
    let first = site.holder("seats", ["posix", "write", "57:1", "17:2"]);
    let second = site.holder("spare", ["ofd", "read", "8:2"]);
    let report = observer.report();
    assert_eq!(report[0].most, 3);
    assert!(report[0].violations > 0);
    assert_eq!(report[1].most, 2);
    assert_eq!(report[1].violations, 0);
    assert_eq!(site.held_numbers("seats"), [10, 11, 50]);
    assert_eq!(site.held("seats").iter().map(|slot| slot.pid).collect::<Vec<i32>>(), [first.pid(); 3]);
    assert_eq!(site.held("spare").iter().map(|slot| slot.pid).collect::<Vec<i32>>(), [-1; 2]);
    second.kill();
    assert_eq!(site.held("spare"), []);
}

/// The article: will execute the command only if fewer than the maximum are running.
#[test]
fn peers_among_themselves_keep_their_maximum() {
    let site = Site::new();
    let mut observer = Observer::watch(&site, [("seats", 2)]);
    let peer = site.test().program(site.helper("peer")).args(["$DIR/repositories/seats"]);
    let holders = [0; 2].map(|_| peer.clone().args(["2", "cat"]).spawn());
    peer.clone().args(["2", "cat"]).status(75);
    peer.clone().args(["check"]).stdout("2\n").status(0);
    peer.clone().args(["list"]).stdout(&format!("{}\n{}\n", holders[0].pid(), holders[1].pid())).status(0);
    assert_eq!(observer.report()[0], Observed { most: 2, violations: 0 });
    drop(holders);
    peer.args(["check"]).stdout("0\n").status(0);
    assert_eq!(observer.report()[0].violations, 0);
}

#[test]
fn the_witness_sees_who_is_where() {
    needs_root!();
    let site = Site::with_policy("rule = []");
    let mut witness = Witness::watch(&site, "seats");
    assert_eq!(witness.report().most, 0);
    let _first = site.holder("seats", ["posix", "write", "9:2"]);
    crate::support::set_mode(&site.repository("seats"), 0o666);
    let words = ["$DIR/repositories/seats", "posix", "write", "8:1", "19:1"];
    let mut second = site.test().user("games").program(site.helper("holder")).args(words).background();
    assert_eq!(second.read_line(), "ready\n");
    let seen = witness.report();
    assert_eq!(seen.most, 4);
    assert_eq!(seen.users[&0], (2, vec![2, 3]));
    assert_eq!(seen.users[&Account::named("games").uid], (2, vec![1, 12]));
}
