//! What the reader of a refusal can do next, in one sentence and one or two commands. Nothing is suggested
//! that would be refused again, or that the reader may not do.

use std::{ops::RangeInclusive, time::Duration};

use super::{hints::Hints, waits};
use crate::{
    acquire::refusal::{Alternative, Full, Reason, Refusal, Refused, Unmet},
    judge::terms::{
        claim::Claim,
        keyword::{Hold, Nested},
        location::Location,
        slots_wanted::Amount,
    },
    keeper::{Holder, occupancy::Occupancy},
    launch::run::launch_spec::rules,
    policy::Wait,
    sys::credentials::own_uid,
};

/// The wait that is suggested to those who did not ask for one.
const USUAL_WAIT: Duration = Duration::from_secs(30 * 60);

/// What is to be done next, in one sentence and one or two commands.
pub(super) fn advice(hints: &Hints, refusal: &Refusal<'_>) -> String {
    let full: Vec<(&Claim<'_>, &Full)> = refusal.claims().filter_map(full_claim).collect();
    if refusal.is_too_soon() {
        let claims: Vec<&Claim<'_>> = refusal.too_soon().map(|refused| refused.claim).collect();
        let is_of_agent = claims.iter().any(|claim| matches!(claim.location, Location::Agent(_)));
        let reset = hints.reset(&claims);
        // Only root may ask the agent for that.
        return match own_uid() {
            uid if uid != 0 && is_of_agent => format!("Ask your administrator to let it start now: {reset}"),
            _ => format!("To start it now all the same: {reset}"),
        };
    }
    if refusal.is_hopeless() {
        let is_kept = |refused: &Refused<'_>| {
            matches!(refused.reason, Reason::Never) && refused.claim.amount.reach() == 0
        };
        let explain = hints.explain();
        return if refusal.claims().any(is_kept) {
            format!(
                "Fewer slots would not help. To see for whom they are kept: {explain}\n\
                 If that is wrong, ask your administrator."
            )
        } else {
            format!("Ask for fewer slots, or ask your administrator: {explain}")
        };
    }
    if full.iter().any(|(_, full)| full.only_ancestors) {
        return among_ancestors(&full);
    }
    if refusal.unmet.iter().any(is_closed) {
        return "Nothing new may start there now. Ask your administrator how long.".to_owned();
    }
    let (first, is_mine) = what_helps(refusal);
    let next = match waits::longest_wait(refusal).filter(|_| !hints.are_of_no_use()) {
        Some(most) if refusal.waited.is_some() && waits::could_wait_longer(refusal) => {
            format!(", or wait longer: {}", hints.wait(most.min(longer(refusal))))
        }
        _ if refusal.waited.is_some() && is_mine => ", or try again later".to_owned(),
        _ if refusal.waited.is_some() => String::new(),
        None if is_mine => ", or try again later".to_owned(),
        None => String::new(),
        Some(most) => format!(", or stand in line: {}", hints.wait(most.min(Wait::For(USUAL_WAIT)))),
    };
    // A claim of the command line is all there in the message already.
    let why = if full.iter().any(|(claim, _)| rules(claim).next().is_some()) {
        format!("\nTo see why: {}", hints.explain())
    } else {
        String::new()
    };
    let end = if is_mine { end_of_own(hints, &full) } else { None };
    let end = end.map_or_else(String::new, |end| format!("\nTo end the oldest of yours: {end}"));
    format!("{first}{next}{why}{end}")
}

/// Ends the program of the caller's that has held its slots for longest, if its end alone makes room.
fn end_of_own(hints: &Hints, full: &[(&Claim<'_>, &Full)]) -> Option<String> {
    let (first, others) = full.split_first()?;
    let frees = |pid: i32, (claim, full): &(&Claim<'_>, &Full)| {
        let zones = &claim.amount.zones;
        let slots = |holder: &Holder| within(zones, &(holder.slots.0..=holder.slots.1));
        let all: u64 = own(full).filter(|holder| holder.pid == Some(pid)).map(slots).sum();
        to_free(claim, full).into_iter().all(|missing| all >= missing)
    };
    // A lock file does not prove who holds a slot that is kept by a descriptor.
    let is_proved = |holder: &&Holder| {
        let (claim, _) = first;
        let is_of_file = matches!(claim.location, Location::File(_));
        !is_of_file || holder.hold != Some(Hold::Descriptor) || claim.pace.expiry.is_some()
    };
    let mut holders: Vec<&Holder> = own(first.1).filter(is_proved).collect();
    holders.sort_by_key(|holder| holder.since);
    let pids = holders.into_iter().filter_map(|holder| holder.pid);
    let pid = pids.into_iter().find(|pid| [first].into_iter().chain(others).all(|of| frees(*pid, of)))?;
    Some(hints.end(first.0, pid))
}

/// A longer wait than the one that was not long enough, in whole minutes.
fn longer(refusal: &Refusal<'_>) -> Wait {
    let minutes = refusal.waited.unwrap_or_default().as_secs() / 30 + 1;
    Wait::For(Duration::from_secs(minutes * 60).max(USUAL_WAIT))
}

fn full_claim<'r, 'c>(refused: &'r Refused<'c>) -> Option<(&'c Claim<'c>, &'r Full)> {
    match &refused.reason {
        Reason::Full(full) => Some((refused.claim, full)),
        Reason::Never | Reason::TooSoon { .. } => None,
    }
}

/// Whether each alternative needs a repository whose limit is 0.
fn is_closed(unmet: &Unmet<'_>) -> bool {
    unmet.alternatives.iter().all(alternative_is_closed)
}

fn alternative_is_closed(alternative: &Alternative<'_>) -> bool {
    let mut full = alternative.refused.iter().filter_map(full_claim);
    full.any(|(claim, _)| claim.amount.effective_limit() == 0)
}

/// How many slots have to be freed before a claim can be met: of all, and of those that are not kept for
/// others.
pub(super) fn to_free(claim: &Claim<'_>, full: &Full) -> [u64; 2] {
    let Amount { zones, .. } = &claim.amount;
    let (wanted, limit) = (claim.amount.wanted(), claim.amount.effective_limit());
    let open: u64 = zones.iter().map(|zone| zone.end() + 1 - zone.start()).sum();
    let spans = full.occupancy().map_or(&[][..], Occupancy::spans);
    let held: u64 = spans.iter().map(|span| within(zones, &span.slots)).sum();
    [(full.used() + wanted).saturating_sub(limit), (held + wanted).saturating_sub(open)]
}

/// How many of these slots are in the zones.
fn within(zones: &[RangeInclusive<u64>], slots: &RangeInclusive<u64>) -> u64 {
    let common = |zone: &RangeInclusive<u64>| {
        (1 + *slots.end().min(zone.end())).saturating_sub(*slots.start().max(zone.start()))
    };
    zones.iter().map(common).sum()
}

/// How many slots the caller holds of those that the claim could get.
pub(super) fn slots_of_caller(claim: &Claim<'_>, full: &Full) -> u64 {
    own_slots(full).map(|slots| within(&claim.amount.zones, &slots)).sum()
}

fn own_slots(full: &Full) -> impl Iterator<Item = RangeInclusive<u64>> {
    own(full).map(|holder| holder.slots.0..=holder.slots.1)
}

fn own(full: &Full) -> impl Iterator<Item = &Holder> {
    full.known_holders().holders.iter().filter(|holder| holder.uid == Some(own_uid()))
}

/// What the reader can do besides waiting, and whether it is to close something of their own: that is shown
/// only where the same launch would start afterwards.
fn what_helps(refusal: &Refusal<'_>) -> (String, bool) {
    let helps = |unmet: &Unmet<'_>| {
        let open = unmet.alternatives.iter().filter(|alternative| !alternative_is_closed(alternative));
        open.map(help_for).min_by_key(|help| (!help.is_enough, help.slots)).unwrap_or_default()
    };
    let all: Vec<Help> = refusal.unmet.iter().map(helps).collect();
    let slots = all.iter().map(|help| help.slots).max().unwrap_or(1);
    let is_enough = all.iter().all(|help| help.is_enough);
    let text = match (is_enough, slots) {
        (true, 1) => "Close one of yours".to_owned(),
        (true, slots) => format!("Close programs of yours that hold {slots} slots"),
        (false, 0 | 1) => "Try again later".to_owned(),
        (false, slots) => format!("Try again once {slots} slots are freed"),
    };
    (text, is_enough)
}

/// What would help one alternative.
#[derive(Default)]
struct Help {
    /// The most slots that have to be freed in one repository.
    slots: u64,
    /// Whether the reader holds that many wherever something is full, and no other launch gets them first.
    is_enough: bool,
}

fn help_for(alternative: &Alternative<'_>) -> Help {
    let mut help = Help { slots: 1, is_enough: true };
    for (claim, full) in alternative.refused.iter().filter_map(full_claim) {
        let [of_all, of_open] = to_free(claim, full);
        let mine_of_all: u64 = own_slots(full).map(|slots| slots.end() + 1 - slots.start()).sum();
        let mine_of_open = slots_of_caller(claim, full);
        let slots = of_all.max(of_open);
        help.slots = help.slots.max(slots);
        // Those who wait come first.
        help.is_enough &=
            slots > 0 && mine_of_all >= of_all && mine_of_open >= of_open && full.waiting() == 0;
    }
    help
}

// What to do where a launch would wait for itself.

/// What there is to do where only programs above this one stand in the way. An administrator hears of what is
/// not yet so.
pub(super) fn among_ancestors(full: &[(&Claim<'_>, &Full)]) -> String {
    let (mut takes, mut is_weak) = (false, false);
    for (claim, full) in full.iter().filter(|(_, full)| full.only_ancestors) {
        takes |= claim.nested == Nested::Take;
        is_weak |= full.holders().iter().any(|holder| holder.hold.is_none_or(|hold| hold == Hold::Process));
    }
    let missing = match (takes, is_weak) {
        (true, true) => "nested = \"join\" and hold = \"descriptor\"",
        (true, false) => "nested = \"join\"",
        (false, true) => "hold = \"descriptor\"",
        (false, false) => {
            return "Start it outside of the program that holds the slot.\n\
                    The slot can be shared, but only for the same command, and by one program at a time."
                .to_owned();
        }
    };
    format!(
        "Start it outside of the program that holds the slot.\n\
         An administrator can let it share that slot: {missing}."
    )
}
