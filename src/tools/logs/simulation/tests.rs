//! What queueing theory has known for a hundred years comes out again: Erlang's formulas for random arrivals.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::{Accounts, Dice, Kind, Launch, Reading, Recording, Terms, Traffic, Trial};
use crate::{
    judge::terms::{LookupError, Names},
    launch::log::event::Event,
    policy::{Hours, Policy, Wait},
    tools::logs::statistics::LaunchOutcome,
};

struct Nobody;

impl Names for Nobody {
    fn user_name(&self, _uid: u32) -> Result<Option<String>, LookupError> {
        Ok(None)
    }

    fn user_id(&self, _name: &str) -> Result<Option<u32>, LookupError> {
        Ok(None)
    }

    fn group_id(&self, _name: &str) -> Result<Option<u32>, LookupError> {
        Ok(None)
    }

    fn group_name(&self, _gid: u32) -> Result<Option<String>, LookupError> {
        Ok(None)
    }

    fn in_netgroup(&self, _netgroup: &str, _host: &str, _user: &str) -> Result<bool, LookupError> {
        Ok(false)
    }
}

impl Accounts for Nobody {
    fn groups_of(&self, _uid: u32) -> Vec<u32> {
        Vec::new()
    }
}

const MINUTE: f64 = 60e6;

/// Random arrivals, `load` of them in the time that one runs on average.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times after 1970")]
fn random(launches: usize, load: f64, seed: u64) -> Traffic {
    let mut dice = Dice::new(seed);
    let mut interval = |mean: f64| -mean * (1.0 - dice.share()).ln();
    let mut now = 1.7e15;
    let mut traffic = Traffic::default();
    traffic.kinds.push(Kind { command: "matlab".into(), ..Kind::default() });
    traffic.commands.push(0);
    for _ in 0..launches {
        now += interval(MINUTE / load);
        let lasts = interval(MINUTE) as u64;
        traffic.launches.push(Launch::new(now as u64, 0, LaunchOutcome::AtOnce, Some(lasts)));
    }
    traffic.end = now as u64;
    traffic
}

fn policy(limit: u32, wait: &str) -> Policy {
    let text = format!(
        "[repository.matlab]\nlimit = {limit}\nwait = \"{wait}\"\n[[rule]]\ncommands = [\"matlab\"]\nacquire = [\"matlab\"]"
    );
    Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"))
}

fn trial(traffic: &Traffic) -> Trial<'_> {
    Trial { traffic, accounts: &Nobody, terms: Terms::default(), seed: 1 }
}

/// The share of random arrivals that finds all seats taken, where nobody waits.
fn erlang_b(load: f64, seats: u32) -> f64 {
    (1..=seats).fold(1.0, |blocked, seats| load * blocked / (f64::from(seats) + load * blocked))
}

/// The share that has to wait, where everybody does.
fn erlang_c(load: f64, seats: u32) -> f64 {
    let (blocked, seats) = (erlang_b(load, seats), f64::from(seats));
    seats * blocked / (seats - load * (1.0 - blocked))
}

const LAUNCHES: usize = 12_000;

#[expect(clippy::cast_precision_loss, reason = "counts")]
#[test]
fn random_arrivals_are_refused_as_erlang_b_says() {
    for (load, seats) in [(8.0, 8), (8.0, 12), (20.0, 18)] {
        let traffic = random(LAUNCHES, load, 7);
        let tally = trial(&traffic).play(&policy(seats, "0s"), 0, &mut |_, _| {});
        let refused = tally.all.refused as f64 / tally.all.launches as f64;
        let exact = erlang_b(load, seats);
        // Refusals come in clusters, so the error is larger than that of as many throws of a coin.
        let error = 4.0 * (exact * (1.0 + load) / LAUNCHES as f64).sqrt();
        assert!((refused - exact).abs() < error, "{load} on {seats}: {refused} instead of {exact}");
        let used = tally.repositories["matlab"].slot_time as f64 / (traffic.end - traffic.begin()) as f64;
        let carried = load * (1.0 - exact);
        assert!((used / carried - 1.0).abs() < 0.05, "{load} on {seats}: {used} instead of {carried}");
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts")]
#[test]
fn random_arrivals_wait_as_erlang_c_says() {
    for (load, seats) in [(8.0, 12), (16.0, 20)] {
        let traffic = random(LAUNCHES, load, 7);
        let tally = trial(&traffic).play(&policy(seats, "forever"), 0, &mut |_, _| {});
        assert_eq!(tally.all.refused, 0);
        let waited = tally.all.waited as f64 / tally.all.launches as f64;
        let exact = erlang_c(load, seats);
        let error = 6.0 * (exact * (1.0 + load) / LAUNCHES as f64).sqrt();
        assert!((waited - exact).abs() < error, "{load} on {seats}: {waited} instead of {exact}");
        let wait = tally.all.wait as f64 / tally.all.launches as f64;
        let mean = exact * MINUTE / (f64::from(seats) - load);
        assert!((wait / mean - 1.0).abs() < 0.35, "{load} on {seats}: {wait} instead of {mean}");
    }
}

#[test]
fn who_came_first_starts_first_and_nobody_waits_longer_than_they_may() {
    let mut traffic = random(0, 1.0, 1);
    let second = 1_000_000;
    // One runs for ten seconds; the next three come a second after each other, and each would run for four.
    for (after, lasts) in [(0, 10), (1, 4), (2, 4), (3, 4)] {
        traffic.launches.push(Launch::new(
            second * (100 + after),
            0,
            LaunchOutcome::AtOnce,
            Some(second * lasts),
        ));
    }
    traffic.end = second * 200;
    let mut came = Vec::new();
    let tally = trial(&traffic).play(&policy(1, "12s"), 0, &mut |launch, outcome| {
        came.push((launch, outcome.fate, outcome.wait / second));
    });
    assert_eq!(
        came,
        [
            (0, LaunchOutcome::AtOnce, 0),
            (1, LaunchOutcome::Waited, 9),
            (2, LaunchOutcome::Waited, 12),
            (3, LaunchOutcome::TimedOut, 12)
        ]
        .map(|(launch, fate, wait)| (launch, fate, wait))
    );
    assert_eq!((tally.all.at_once, tally.all.waited, tally.all.refused), (1, 2, 1));
    assert_eq!(tally.repositories["matlab"].most, 1);
}

/// The wait that a launch asks for is one for all its claims, although it waits for one after the other. The
/// wait of a repository is for its own queue.
#[test]
fn a_launch_that_waits_in_two_queues_waits_no_longer_than_it_asked() {
    let policy = "[repository.a]\nlimit = 1\nwait = \"10s\"\n[repository.b]\nlimit = 1\nwait = \"10s\"\n\
        [[rule]]\ncommands = [\"first\", \"both\"]\nacquire = [\"a\"]\n\
        [[rule]]\ncommands = [\"second\", \"both\"]\nacquire = [\"b\"]\n";
    let policy = Policy::of_text("/p.toml", policy).unwrap_or_else(|faults| panic!("{faults}"));
    let second = 1_000_000;
    let mut traffic = Traffic::default();
    for (after, command, lasts) in [(0, "first", 8), (1, "both", 1), (5, "second", 20)] {
        let kind = u32::try_from(traffic.kinds.len()).expect("few");
        traffic.kinds.push(Kind { command: command.into(), ..Kind::default() });
        traffic.commands.push(kind);
        let at = second * (100 + after);
        traffic.launches.push(Launch::new(at, kind, LaunchOutcome::AtOnce, Some(second * lasts)));
    }
    traffic.end = second * 200;
    let waited = |wait: Option<Wait>| {
        let mut both = None;
        let terms = Terms { wait, ..Terms::default() };
        Trial { terms, ..trial(&traffic) }.play(&policy, 0, &mut |launch, outcome| {
            if launch == 1 {
                both = Some((outcome.fate, outcome.wait / second));
            }
        });
        both
    };
    // The first ends after 8 seconds; then the second has the other slot until 25.
    assert_eq!(waited(None), Some((LaunchOutcome::TimedOut, 17)));
    let seconds = |seconds| Some(Wait::For(Duration::from_secs(seconds)));
    assert_eq!(waited(seconds(10)), Some((LaunchOutcome::TimedOut, 10)));
    assert_eq!(waited(seconds(30)), Some((LaunchOutcome::Waited, 24)));
    assert_eq!(waited(seconds(0)), Some((LaunchOutcome::Refused, 0)));
    assert_eq!(waited(Some(Wait::Forever)), Some((LaunchOutcome::Waited, 24)));
}

#[test]
fn more_seats_in_the_evening_are_taken_by_those_who_wait() {
    let text = "[defaults]\ntime_zone = \"UTC\"\n[repository.matlab]\nlimit = 1\nwait = \"forever\"\n\
        limits = [{ when = [\"18:00-24:00\"], limit = 2 }]\n[[rule]]\ncommands = [\"matlab\"]\nacquire = [\"matlab\"]";
    let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
    let mut traffic = random(0, 1.0, 1);
    let hour = 3_600_000_000;
    // Both come at noon, and run for a day.
    let noon = hour * (24 * 20_000 + 12);
    for after in [0, 1] {
        traffic.launches.push(Launch::new(noon + after, 0, LaunchOutcome::AtOnce, Some(hour * 24)));
    }
    traffic.end = noon + hour * 48;
    let mut waits = Vec::new();
    trial(&traffic).play(&policy, 0, &mut |_, outcome| waits.push(outcome.wait / hour));
    assert_eq!(waits, [0, 5]);
}

/// An event of one user and one host, from its kind and its other fields.
fn event(text: &str) -> Event {
    let (kind, rest) = text.split_once(' ').unwrap_or_default();
    let text = format!(
        "{{\"time\":1790000000000,\"event\":\"{kind}\",\"command\":\"matlab\",\"uid\":1,\"host\":\"ws1\",{rest}}}"
    );
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Who sees an end writes it down a little later; whoever came in between and found room tells when it was.
#[test]
fn a_look_tells_which_end_came_before_it() {
    let seats = |told: &str| format!("\"tables\":[{{\"repository\":\"seats\",\"limit\":2{told}}}]");
    let started = |pid: u32, decided: u32, slot: u32, used: u32| {
        let seats = seats(&format!(",\"used\":{used}"));
        format!(
            "started \"pid\":{pid},\"decided\":1790000000000{decided},\"repositories\":[\"seats={slot}\"],{seats},\"launch\":{{}}"
        )
    };
    let ended = |pid: u32, decided: u32| format!("ended \"pid\":{pid},\"decided\":1790000000000{decided}");
    let refused = |decided: u32| {
        let seats = seats(",\"room\":1");
        format!(
            "refused \"pid\":9,\"decided\":1790000000000{decided},\"repositories\":[\"tokens\"],{seats},\"launch\":{{}}"
        )
    };
    let mut recording = Recording::new(Reading::default(), Hours::in_zone(TimeZone::UTC));
    // The second ends first, and is the last to be recorded; the refusal is read before it.
    for text in [started(1, 100, 1, 1), started(2, 200, 2, 2), refused(300), ended(2, 500), ended(1, 600)] {
        recording.see(event(&text));
    }
    let lasted: Vec<_> = recording.finish().launches.iter().map(|launch| launch.lasted()).collect();
    assert_eq!(lasted, [Some(500), Some(99), None]);
}

/// A program that could not be executed says nothing about how long such programs run.
#[test]
fn a_program_that_was_not_executed_is_no_sample() {
    let mut recording = Recording::new(Reading::default(), Hours::in_zone(TimeZone::UTC));
    for (pid, lasts, status) in [(1, 500, "0"), (2, 1, "not executed"), (3, 1, "not executed")] {
        for (kind, decided) in [("started", 2000 * pid), ("ended", 2000 * pid + lasts)] {
            recording.see(event(&format!(
                "{kind} \"pid\":{pid},\"decided\":179000000000{decided},\"repositories\":[\"seats=1\"],\"status\":\"{status}\""
            )));
        }
    }
    let Traffic { launches, durations, .. } = recording.finish();
    let lasted: Vec<_> = launches.iter().map(|launch| launch.lasted()).collect();
    assert_eq!(lasted, [Some(500), Some(1), Some(1)]);
    let drawn: Vec<_> = (0..20).map(|seed| durations.draw(1, 0, &mut Dice::new(seed))).collect();
    assert_eq!(drawn, [Some(500); 20]);
}
