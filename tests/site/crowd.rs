//! Many launches wait on several hosts: each of them is served, in few transactions.

use std::time::{Duration, Instant};
use std::{env, thread};

use super::scene::Scene;
use super::{held, waiting};
use crate::support::{Ending, Etcd, Running, eventually, needs_etcd, storm_size, tell};

/// So many transactions for each launch: its ticket, its slot with the end of the ticket, and the end of the slot. One
/// more is for whoever was slow to answer, and for leases.
const TRANSACTIONS: u64 = 4;

/// Of the campaign.
const LIMIT: u32 = 4;

/// Longer than it takes until three thousand launches wait.
const LONGEST: Duration = Duration::from_secs(600);

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

/// "3 hosts with 1,000 waiters each, limit 4, programs of half a second": how many of the starts that are possible
/// there are, in how many transactions, and whether somebody is refused.
#[test]
#[ignore = "a campaign: three thousand waiters on three hosts"]
fn three_thousand_waiters_on_three_hosts_are_served() {
    needs_etcd!();
    let number = |name: &str, usual| env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    let each = usize::try_from(number("RUNGATE_CAMPAIGN_WAITERS", 1000)).expect("a number");
    let seconds = number("RUNGATE_CAMPAIGN_SECONDS", 30);
    let scene = Scene::at(Etcd::new(), "", None).of(LIMIT).with_sleepers();
    let all = ["lab1", "lab2", "lab3"].map(|name| scene.host(name));
    let [(one, _), (two, _), (three, _)] = &all;
    Scene::meet(&[one, two, three]);
    let holders: Vec<Running> =
        (0..LIMIT).map(|_| one.test().args(["run", "--", "matlab"]).spawn()).collect();
    let begun = Instant::now();
    let (before, mut crowd) = (scene.revision(), Vec::new());
    for (host, _) in &all {
        host.site.copy_of("/bin/sleep", "sleeper");
    }
    let launch = ["run", "--wait", "forever", "--", "sleeper", "0.5"];
    for _ in 0..each {
        crowd.extend(all.iter().map(|(host, _)| host.test().args(launch).background()));
    }
    let have_come = |count: usize| all.iter().all(|(host, _)| waiting(host) == count);
    while !have_come(3 * each) {
        assert!(begun.elapsed() < LONGEST, "only {} wait", waiting(one));
        if let Some(refused) = crowd.iter_mut().find(|launch| launch.is_zombie()) {
            panic!("somebody was refused: {:?}", refused.end());
        }
    }
    let joined = (begun.elapsed(), scene.revision() - before);
    let (begun, before) = (Instant::now(), scene.revision());
    drop(holders);
    thread::sleep(Duration::from_secs(seconds));
    let transactions = scene.revision() - before;
    let took = begun.elapsed();
    let (mut started, mut refused) = (0_u32, 0_u32);
    for launch in crowd.iter_mut().filter(|launch| launch.is_zombie()) {
        match launch.end().ending {
            Ending::Status(0) => started += 1,
            _ => refused += 1,
        }
    }
    let possible = f64::from(LIMIT) * took.as_secs_f64() / 0.5;
    tell(&format!(
        "3 hosts with {each} waiters each: all waited after {:?} and {} transactions; then {started} started in \
         {took:?}, {:.2} of what is possible, with {:.2} transactions a start; {refused} refused",
        joined.0,
        joined.1,
        f64::from(started) / possible,
        // Few enough to be exact.
        f64::from(u32::try_from(transactions).unwrap_or(u32::MAX)) / f64::from(started.max(1)),
    ));
    assert_eq!(refused, 0);
    assert!(f64::from(started) >= 0.5 * possible, "{started} started");
}
