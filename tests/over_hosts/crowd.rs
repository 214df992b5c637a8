//! Many launches wait on several hosts: each of them is served, in few transactions.

use super::scene::Scene;
use super::{held, waiting};
use crate::support::{Ending, Etcd, Running, eventually, needs_etcd, storm_size, tell};

/// So many transactions for each launch: its ticket, its slot with the end of the ticket, and the end of the slot. One
/// more is for whoever was slow to answer, and for leases.
const TRANSACTIONS: u64 = 4;

/// Nobody of them is refused, and each comes to its turn.
#[test]
fn a_crowd_is_served_in_few_transactions() {
    needs_etcd!();
    let each = storm_size(60);
    let scene = Scene::at(Etcd::new(), "", None).of(4);
    let ((one, _way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let holders: Vec<Running> = (0..4).map(|_| one.test().args(["run", "--", "matlab"]).spawn()).collect();
    eventually("the slots are seen", || (held(&two) == 4).then_some(()));
    let before = scene.revision();
    let wait = ["run", "-q", "--wait", "forever", "--", "matlab"];
    let mut crowd: Vec<Running> = Vec::new();
    for _ in 0..each {
        for host in [&one, &two] {
            let mut launch = host.test().args(wait).background();
            // What it starts ends at once.
            launch.close_stdin();
            crowd.push(launch);
        }
    }
    eventually("all wait", || (waiting(&one) == 2 * each && waiting(&two) == 2 * each).then_some(()));
    let begun = std::time::Instant::now();
    drop(holders);
    for launch in &mut crowd {
        let outcome = launch.end();
        assert_eq!(outcome.ending, Ending::Status(0), "{outcome:?}");
    }
    let took = begun.elapsed();
    eventually("all slots are free", || (scene.slots() == 0).then_some(()));
    let launches = u64::try_from(2 * each).expect("a small number");
    let transactions = scene.revision() - before;
    tell(&format!("{launches} launches, {transactions} transactions, {took:?}"));
    assert!(transactions <= TRANSACTIONS * launches, "{transactions} transactions for {launches} launches");
}
