//! What one user says to the agent takes a share of its memory that is theirs, whatever they say, and none of
//! others'.

use std::{
    fs,
    time::{Duration, Instant},
};

use rungate::keeper::agent::message::{Answer, Request, Take};
use serde_json::Value;

use super::{ABOUT, Call, GRANTED, Mob, TABLES, WAITS, others_launch, question, site};
use crate::{
    agent::{hostility::memory_of, waiting},
    support::{Site, eventually, needs_root},
};

/// In KiB: what the agent may have at most, when one user does what they can.
const MOST: u64 = 64 * 1024;

/// Longer than a launch that waits may give no sign of life.
const LONG_SILENCE: Duration = Duration::from_secs(5);

/// Tables are answered once each, with twenty holders.
#[test]
fn who_names_a_table_again_and_again_is_told_of_it_once() {
    needs_root!();
    let (site, agent) = site();
    let mut holders = Mob::of(&site, "bin");
    holders.calls(20);
    holders.says(&Request::Take(question("free")));
    assert_eq!(holders.hears(), [(GRANTED, 20)].into());
    let mut asks = Mob::of(&site, "bin");
    asks.calls(1);
    let look = Request::Look(vec!["free".to_owned(); 29_000]);
    asks.says(&look);
    let heard = asks.hears();
    others_launch(&site);
    assert!(memory_of(&agent) < MOST, "{} KiB", memory_of(&agent));
    assert_eq!(heard, [(TABLES, 1)].into());
    let mut call = Call::to(&site);
    call.says(&look);
    assert!(matches!(call.hears(), Answer::Tables(tables) if tables.len() == 1));
}

/// Bytes that are recorded.
fn written(site: &Site) -> u64 {
    let entries = ["holdings", "places"].map(|folder| fs::read_dir(site.agent_state().join(folder)));
    let files = entries.into_iter().flat_map(|entries| entries.expect("a folder of the state"));
    files.map(|file| file.expect("a file").metadata().map_or(0, |metadata| metadata.len())).sum()
}

const NAMES: usize = 300;

/// What is stored of a name is cut: what is recorded and what is told of it is short, and so is what
/// another agent has to read.
#[test]
fn who_gives_long_names_has_them_cut_before_they_are_kept() {
    needs_root!();
    let (site, agent) = Site::with_agent(
        "
        repository.seats = { limit = 1000, keeper = \"agent\" }
        [[rule]]
        name    = \"seats\"
        acquire = [\"seats\"]
        ",
    );
    site.program("free");
    let mut mob = Mob::of(&site, "bin");
    for _ in 0..NAMES / 10 {
        mob.calls(10);
        mob.says(&Request::Take(Take { typed: "x".repeat(240_000).into(), ..question("free") }));
        assert_eq!(mob.hears(), [(GRANTED, 10)].into());
        // Whoever has a slot and hangs up keeps it.
        mob.hangs_up();
    }
    others_launch(&site);
    let figures = format!("{} KiB in memory, {} KiB written down", memory_of(&agent), written(&site) / 1024);
    assert!(written(&site) < 2048 * NAMES as u64, "{figures}");
    assert!(memory_of(&agent) < MOST, "{figures}");
    // Longer than what goes into a pipe.
    let list = format!("'{}' list --json > list", site.rungate().display());
    site.test().program("/bin/sh").args(["-c", &list]).status(0);
    let listed: Value = serde_json::from_slice(&fs::read(site.path("work/list")).expect("it")).expect("JSON");
    assert_eq!(listed[0]["holders"].as_array().map(Vec::len), Some(NAMES));
    agent.kill();
    let agent = site.agent();
    others_launch(&site);
    assert!(memory_of(&agent) < MOST, "{} KiB", memory_of(&agent));
}

/// Ancestors are bounded and counted: what the environment says of slots that ancestors hold can be
/// anything.
#[test]
fn who_says_that_thousands_of_ancestors_have_slots_takes_no_more_memory() {
    needs_root!();
    let (site, agent) = site();
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut mob = Mob::of(&site, "bin");
    mob.calls(40);
    mob.says(&Request::Take(Take { held: "a=1 ".repeat(62_500).into(), ..question("matlab") }));
    let heard = mob.hears();
    others_launch(&site);
    assert!(memory_of(&agent) < MOST, "{} KiB, {heard:?}", memory_of(&agent));
    // They wait, or are told why they do not.
    assert!(!heard.contains_key(&0), "{heard:?}");
}

/// Who does not read answers is not heard any more, and nobody else has to wait for that. What such a user
/// said before counts as said: a launch of theirs that beats is not taken for silent.
#[test]
fn who_does_not_read_answers_is_not_heard_and_loses_no_place() {
    needs_root!();
    let (site, _agent) = site();
    let holder = site.test().user("games").args(["run", "--", "matlab"]).spawn();
    let mut holders = Mob::of(&site, "bin");
    let mut first = Mob::of(&site, "bin");
    first.calls(1);
    first.says(&Request::Take(question("matlab")));
    assert_eq!(first.hears(), [(WAITS, 1)].into());
    let mut second =
        site.test().user("games").args(["run", "-q", "-w", "forever", "--", "matlab"]).background();
    second.write_line("it runs");
    eventually("both wait", || (waiting(&site) == 2).then_some(()));
    // Long answers, which nobody reads.
    for _ in 0..10 {
        holders.calls(20);
        holders.says(&Request::Take(Take { typed: "x".repeat(20_000).into(), ..question("free") }));
        assert_eq!(holders.hears(), [(GRANTED, 20)].into());
        holders.hangs_up();
    }
    let mut silent = Mob::of(&site, "bin");
    silent.calls(40);
    silent.says_all(&vec![Request::Look(vec!["free".to_owned()]); 5]);
    let mut asks = eventually("a question is not heard", || {
        let mut asks = Mob::of(&site, "bin");
        asks.calls(1);
        asks.says(&Request::About);
        // It comes after all that this user asked before, and long before so many launches of others.
        (0..30)
            .all(|_| {
                others_launch(&site);
                asks.obeys("unheard") == "1\n"
            })
            .then_some(asks)
    });
    // The beats of the first in the line lie unread, for longer than a launch may be silent.
    let begun = Instant::now();
    eventually("it was silent for long", || {
        first.says(&Request::Beat);
        others_launch(&site);
        (begun.elapsed() > LONG_SILENCE).then_some(())
    });
    holder.kill();
    others_launch(&site);
    silent.hangs_up();
    assert_eq!(first.ends_with(), [(GRANTED, 1)].into(), "it was passed over");
    assert_eq!(asks.hears(), [(ABOUT, 1)].into());
    first.hangs_up();
    drop(first);
    assert_eq!(second.read_line(), "it runs\n");
}
