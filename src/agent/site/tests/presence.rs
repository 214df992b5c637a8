//! Until when the other hosts cannot consider this one dead.

use std::{sync::mpsc::channel, time::Duration};

use crate::{
    agent::{
        ledger::state::{SavedSilence, State},
        site::presence::Presence,
    },
    sys::process,
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn now() -> Duration {
    process::since_boot().expect("a clock")
}

fn presence(state: &State, ttl: u64) -> Presence {
    Presence::new(seconds(ttl), Duration::ZERO, channel().0, state)
}

/// The others know the ttl of the agent before this one. They may know that of this one, too, as soon as it
/// has begun to write.
#[test]
fn until_the_others_have_answered_the_shorter_time_counts() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    for (before, ttl) in [(10, 300), (60, 15), (8, 8)] {
        let confirmed = now().saturating_sub(seconds(5));
        let silence = SavedSilence { ttl: seconds(before), margin: Duration::ZERO };
        state.write_silence(&silence).expect("there is room");
        state.write_confirmation(confirmed).expect("there is room");
        let (first, mut presence, last) = (now(), presence(&state, ttl), now());
        let known = confirmed + seconds(before);
        let deadline = presence.deadline().expect("it was confirmed");
        assert!(deadline >= known.min(first + seconds(ttl)), "too soon: {before} {ttl}");
        assert!(deadline <= known.min(last + seconds(ttl)), "too late: {before} {ttl}");
        let sent = now();
        presence.on_registered(7, sent);
        presence.confirm(sent, &state);
        assert_eq!(presence.deadline(), Some(sent + seconds(ttl)));
        assert_eq!(
            (state.silence().map(|of| of.ttl), state.confirmation()),
            (Some(seconds(ttl)), Some(sent))
        );
    }
}

/// A host of the same name may have read its key a third of the ttl after this one has written it. So its
/// programs are over a ttl later.
#[test]
fn a_host_is_alone_by_its_name_when_the_programs_of_another_one_are_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = State::open(directory.path()).expect("it is new");
    let mut presence = presence(&state, 30);
    assert!(!presence.is_alone_by_its_name(), "it has written nothing");
    for (ago, is_alone) in [(32, false), (41, true)] {
        presence.on_registered(7, now().saturating_sub(seconds(ago)));
        assert_eq!(presence.is_alone_by_its_name(), is_alone, "{ago} s ago");
    }
}
