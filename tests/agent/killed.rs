//! Killed at each of its system calls: the launcher, and the agent, once at every call that they make. No
//! slot is lost and none is given twice, and who waits is served in the order in which they came.
//!
//! The ordinary tests take a sample. All calls, in some minutes:
//!
//! ```sh
//! cargo test --test tests agent::killed -- --ignored --nocapture
//! ```

use std::fs;
use std::time::Instant;

use super::{held, seats, waiter, waiting};
use crate::support::{
    Ending, Fault, Running, Sabotage, Site, Test, eventually, needs_root, storm_size, tell,
};

/// So many trials of each kind in the ordinary tests.
const SAMPLE: usize = 6;

#[test]
fn launchers_killed_at_a_sample_of_their_calls() {
    needs_root!();
    launchers(storm_size(SAMPLE));
}

#[test]
#[ignore = "takes minutes"]
fn launchers_killed_at_every_call() {
    needs_root!();
    launchers(usize::MAX);
}

#[test]
fn an_agent_killed_at_a_sample_of_its_calls() {
    needs_root!();
    agents(storm_size(SAMPLE));
}

#[test]
#[ignore = "takes minutes"]
fn an_agent_killed_at_every_call() {
    needs_root!();
    agents(usize::MAX);
}

/// So many of the calls from one on up to another, evenly spread.
fn sample(from: usize, to: usize, most: usize) -> impl Iterator<Item = usize> {
    let all = to.saturating_sub(from);
    let count = all.min(most);
    (0..count).map(move |index| from + 1 + index * all / count)
}

/// Nobody has anything, and the next launch has the slot.
#[track_caller]
fn all_is_free(site: &Site, what: &str) {
    eventually(&format!("the slot is free after {what}"), || held(site).is_empty().then_some(()));
    assert_eq!(waiting(site), 0, "{what}");
    let next = site.test().user("games").args(["run", "--", "other"]).spawn();
    assert_eq!(held(site), [(1, next.pid().into())], "{what}");
    next.kill();
}

fn launchers(most: usize) {
    let begun = Instant::now();
    let mut tried = 0;
    for hold in ["process", "descriptor", "supervisor", "tree"] {
        for waits in [false, true] {
            let (site, _agent) = seats(1, &format!("hold = \"{hold}\""));
            fs::remove_file(site.path("bin/matlab")).expect("the link");
            site.copy_of("/bin/true", "matlab");
            site.program("other");
            let play = |fault| play_launch(&site, waits, fault);
            let calls = play(Fault::List).calls;
            let arrival = calls.iter().position(|call| call.name == "connect").expect("it asks the agent");
            let from = if most == usize::MAX { 0 } else { arrival };
            for at in sample(from, calls.len(), most) {
                let report = play(Fault::Kill(at));
                assert!(report.starts.len() <= 1, "{report:?}");
                eventually("the slot is free", || held(&site).is_empty().then_some(()));
                tried += 1;
            }
            let mut next = site.test().user("games").args(["run", "--", "other"]).background();
            next.wait_for_echo();
            assert_eq!((held(&site).len(), waiting(&site)), (1, 0), "{hold}");
            next.close_stdin();
            next.end();
        }
    }
    tell(&format!("launchers killed at {tried} system calls in {} s", begun.elapsed().as_secs()));
}

/// One launch, which waits in the queue first where it is to wait.
#[track_caller]
fn play_launch(site: &Site, waits: bool, fault: Fault) -> crate::support::Report {
    let holder = waits.then(|| site.test().args(["run", "--", "other"]).spawn());
    let options: &[&str] = if waits { &["-q", "--wait", "50s"] } else { &[] };
    let launch = site.test().user("nobody").args(["run"]).args(options).args(["--", "matlab"]);
    let sabotage = Sabotage::begin(&launch, fault, &[]);
    if let Some(mut holder) = holder {
        eventually("it stands in line, or has ended", || {
            (sabotage.has_ended() || waiting(site) == 1).then_some(())
        });
        holder.close_stdin();
        holder.end();
    }
    sabotage.end(site)
}

fn agent_of(site: &Site) -> Test {
    site.test().rungate_agent()
}

fn agents(most: usize) {
    let begun = Instant::now();
    let mut tried = 0;
    let line = play_line as fn(&Site, Fault) -> usize;
    for (play, hold) in [(line, "process"), (line, "descriptor"), (play_launches, "descriptor")] {
        let (site, agent) = seats(1, &format!("hold = \"{hold}\""));
        site.program("other");
        agent.kill();
        let calls = play(&site, Fault::List);
        for at in sample(0, calls, most) {
            play(&site, Fault::Kill(at));
            tried += 1;
        }
    }
    tell(&format!("the agent killed at {tried} system calls in {} s", begun.elapsed().as_secs()));
}

/// The agent under sabotage, once it answers or has ended.
#[track_caller]
fn sabotaged(site: &Site, fault: Fault) -> Sabotage {
    let sabotage = Sabotage::begin(&agent_of(site), fault, &[]);
    eventually("the agent answers, or has ended", || {
        (sabotage.has_ended() || site.asks_the_agent().is_ok()).then_some(())
    });
    sabotage
}

/// Two who wait while the agent comes back, and the slot that they wait for becomes free. Returns how many
/// calls it has made.
#[track_caller]
fn play_line(site: &Site, fault: Fault) -> usize {
    let agent = site.agent();
    let holder = site.test().args(["run", "--", "other"]).spawn();
    let [mut first, mut second] = [1, 2].map(|place| waiter(site, "games", place));
    agent.kill();
    let sabotage = sabotaged(site, fault);
    holder.kill();
    eventually("the first has the slot, or the agent has ended", || {
        (sabotage.has_ended() || has_the_slot(site, first.pid())).then_some(())
    });
    let calls = sabotage.calls_so_far();
    let _agent = ended(sabotage, site);
    let what = format!("{fault:?}");
    eventually(&format!("the first has the slot after {what}"), || {
        has_the_slot(site, first.pid()).then_some(())
    });
    assert_eq!(first.read_line(), "it runs\n", "{what}");
    assert_eq!((held(site), waiting(site)), (vec![(1, first.pid().into())], 1), "{what}");
    first.kill();
    eventually(&format!("the second has the slot after {what}"), || {
        has_the_slot(site, second.pid()).then_some(())
    });
    assert_eq!(second.read_line(), "it runs\n", "{what}");
    second.kill();
    all_is_free(site, &what);
    calls
}

/// Whether an agent that may be gone meanwhile says so.
fn has_the_slot(site: &Site, pid: i32) -> bool {
    let outcome = site.test().args(["list", "--json"]).outcome();
    let listed: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
    listed[0]["holders"][0]["pid"] == pid
}

/// Launches that start, or cannot reach the agent.
#[track_caller]
fn play_launches(site: &Site, fault: Fault) -> usize {
    let sabotage = sabotaged(site, fault);
    let mut launch = site.test().user("games").args(["run", "--", "other"]).background();
    launch.close_stdin();
    let outcome = launch.end();
    let is_told = outcome.stderr.contains("the agent");
    assert!(
        outcome.ending == Ending::Status(0) || outcome.ending == Ending::Status(74) && is_told,
        "{outcome:?}"
    );
    let calls = sabotage.calls_so_far();
    let _agent = ended(sabotage, site);
    all_is_free(site, &format!("{fault:?}"));
    calls
}

/// The agent that comes after one that was killed, at the call that was planned or now.
#[track_caller]
fn ended(sabotage: Sabotage, site: &Site) -> Running {
    drop(sabotage);
    eventually("the agent has ended", || site.asks_the_agent().is_err().then_some(()));
    site.agent()
}
