//! What `explain` predicts for a launch: whether it would start, and in a few words why not.

use std::time::Duration;

use super::limits;
use crate::{
    acquire::{DryRun, Found, Prospect, Reason, Refusal, Refused, Room},
    judge::{
        Decision, Start, Verdict,
        terms::{Admit, Claim, Runs, Terms, provenance},
    },
    launch::SystemNames,
    policy::Policy,
    text::{Clock, ExitStatus, visible},
};

/// What would happen now, and the status of a refusal.
pub(crate) fn verdict(
    policy: &Policy,
    decision: &Decision<'_>,
    outlook: &DryRun<'_>,
) -> (String, Option<ExitStatus>) {
    if policy.is_empty() {
        return ("there is no policy that says what may start".to_owned(), Some(ExitStatus::Policy));
    }
    match &decision.verdict {
        Verdict::Denied { rule, matches } => {
            (format!("{} matches {}", rule.title(), visible(matches)), Some(ExitStatus::Denied))
        }
        Verdict::Unmatched => {
            ("no rule allows it (unmatched = \"refuse\")".to_owned(), Some(ExitStatus::Denied))
        }
        Verdict::LookupFailed { rule, failure } => {
            (format!("{failure}, needed by {}", rule.title()), Some(ExitStatus::System))
        }
        Verdict::Start(terms) => start(terms, outlook),
    }
}

fn start(start: &Start<'_>, outlook: &DryRun<'_>) -> (String, Option<ExitStatus>) {
    if let Some(rule) = start.exempt {
        return (format!("starts, exempt by {}", rule.title()), None);
    }
    if start.demands.is_empty() {
        return ("starts, with no slot: nothing limits it".to_owned(), None);
    }
    match &outlook.refusal {
        Err(error) => (visible(error.to_string()), Some(ExitStatus::Repository)),
        Ok(Some(refusal)) => (why(refusal), Some(refusal.status())),
        Ok(None) => ("starts".to_owned(), None),
    }
}

/// Why a launch would be refused.
fn why(refusal: &Refusal<'_>) -> String {
    let titles = |wanted: &dyn Fn(&Reason) -> bool| -> Vec<String> {
        refusal
            .claims()
            .filter(|refused| wanted(&refused.reason))
            .map(|refused| title(refused.claim))
            .collect()
    };
    if refusal.is_too_soon() {
        let too_soon = titles(&|reason| matches!(reason, Reason::TooSoon { .. })).join(", ");
        return format!("too soon after the last launch ({too_soon})");
    }
    if refusal.is_hopeless() {
        let never = titles(&|reason| matches!(reason, Reason::Never)).join(", ");
        let is_kept = |refused: &Refused<'_>| refused.claim.amount.is_kept_for_others();
        let mut hopeless = refusal.claims().filter(|refused| matches!(refused.reason, Reason::Never));
        if let Some(unclear) = refusal.claims().find_map(|refused| refused.claim.unclear.as_ref()) {
            return format!("{never}: {}", unclear.why);
        }
        return if hopeless.all(is_kept) {
            format!("no slot of {never} is for you")
        } else {
            format!("{never} can never give that many slots")
        };
    }
    let neither: Vec<String> = refusal.unmet.iter().filter_map(limits::neither).collect();
    if neither.len() == refusal.unmet.len() {
        return format!("{} can be had", neither.join(", and "));
    }
    let full = titles(&|reason| matches!(reason, Reason::Full(_)));
    let are = if full.len() == 1 { "is" } else { "are" };
    format!("{} {are} full", full.join(", "))
}

/// Whether a claim could be met now, in words.
pub(crate) fn verdict_on(prospect: &Prospect<'_>, clock: &Clock) -> String {
    let found = match &prospect.found {
        Ok(found) => found,
        Err(error) => return visible(error),
    };
    let why = match &found.room {
        None => "ok: a slot of the program above is used".to_owned(),
        Some(Room::Free(seats)) if !seats.shared.is_empty() => {
            format!("ok: shares slot {}", Runs::of(&seats.shared))
        }
        Some(Room::Free(_)) => "ok".to_owned(),
        Some(Room::Closed) => "CLOSED: its limit is 0".to_owned(),
        Some(Room::Never) => format!("NEVER: {}", never(prospect.claim)),
        Some(Room::Kept) => format!("FULL: {}", provenance::list(&prospect.claim.kept)),
        Some(Room::TooSoon(last)) => {
            let length = prospect.claim.pace.pause.map_or(Duration::ZERO, |pause| pause.length);
            format!("TOO SOON: not before {}", clock.time(*last + length))
        }
        // Waiting launches come first, but this reason is more helpful.
        Some(Room::Behind) if is_full(prospect.claim, found) => format!("FULL: PID {}", pids(found)),
        Some(Room::Behind) => {
            let usable = prospect.claim.amount.usable_slots();
            let ahead: Vec<_> =
                found.waiting.iter().filter(|waiter| waiter.class.capacity >= usable).collect();
            let first = ahead.iter().find_map(|waiter| waiter.process.shown_pid());
            let first = first.map_or_else(String::new, |pid| format!(", the first is PID {pid}"));
            let holders = pids(found);
            let holders = if holders.is_empty() { holders } else { format!(", it waits for PID {holders}") };
            format!("FULL: {} ahead in the queue{first}{holders}", ahead.len())
        }
        Some(Room::Full) => format!("FULL: PID {}", pids(found)),
    };
    let reasons = reasons(prospect.claim, found);
    let why = if reasons.is_empty() { why } else { format!("{why} ({})", reasons.join(", ")) };
    match (&found.room, prospect.claim.amount.admit) {
        (Some(room), Admit::Unenforced) if !matches!(room, Room::Free(_)) => {
            format!("{why}; not enforced")
        }
        _ => why,
    }
}

/// Needs no wait.
fn never(claim: &Claim) -> String {
    if let Some(unclear) = &claim.unclear {
        return unclear.why.to_string();
    }
    let (limit, kept) = (claim.amount.effective_limit(), provenance::list(&claim.kept));
    let is_by_others = !kept.is_empty() && claim.amount.admit != Admit::Always;
    match claim.amount.usable_slots() {
        usable if usable >= limit || !is_by_others => "more than there can be".to_owned(),
        0 => format!("none for you, {kept}"),
        usable => format!("only {usable} of {limit} for you, {kept}"),
    }
}

/// The reasons for its limit: the slots kept for others, if not already mentioned, and whose limit it is.
fn reasons(claim: &Claim, found: &Found) -> Vec<String> {
    let is_about_others = matches!(found.room, Some(Room::Full | Room::Behind)) && !claim.kept.is_empty();
    let kept = is_about_others.then(|| provenance::list(&claim.kept));
    let outside = (found.outside > 0).then(|| format!("{} in use outside rungate", found.outside));
    outside.into_iter().chain(kept).chain(claim.reason_of_limit()).collect()
}

fn is_full(claim: &Claim, found: &Found) -> bool {
    Terms::merge([&claim.amount]).is_some_and(|terms| !found.occupancy.fits(&terms))
}

fn pids(found: &Found) -> String {
    const MOST: usize = 4;
    let mut pids: Vec<String> = Vec::new();
    let known = found.table.known_holders(&found.occupancy, usize::MAX).unwrap_or_default();
    for holder in known.holders {
        let pid = holder.shown_pid().unwrap_or_else(|| "?".to_owned());
        if !pids.contains(&pid) {
            pids.push(pid);
        }
    }
    let more = if pids.len() > MOST { " …" } else { "" };
    pids.truncate(MOST);
    format!("{}{more}", pids.join(" "))
}

/// `seats-per-user [ann]`
pub(crate) fn title(claim: &Claim) -> String {
    visible(claim.title(&SystemNames))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{
        acquire::{self, AcquireContext, outlook},
        judge::terms::{Amount, Demand, FileLocation, Hold, Launch, Location, Slots},
        keeper::{Class, Holder, Keepers, Number, Store, memory},
        sys::Inherited,
    };

    /// The text about a claim on one slot of a table with this limit.
    fn said(store: &Store, limit: u64) -> String {
        let file = FileLocation::named(PathBuf::from("seats"), 0o600);
        let claim = Claim::outside_the_policy(file, Amount::plain(Slots::Number(1), limit), "--limit");
        let demands = [Demand::One(Claim { location: Location::Memory("seats".to_owned()), ..claim })];
        let inherited = Inherited::default();
        let asker = AcquireContext {
            launch: Launch { command: "job", host: "ws1", uid: 1000, ancestors: &[], hold: Hold::Process },
            keepers: Keepers { inherited: &inherited, memory: store.clone() },
            generation: 0,
            on_expired: &|_, _, _| {},
            clock: acquire::Clock::default(),
        };
        let prospects = outlook(&demands, &asker).prospects;
        prospects.iter().map(|prospect| verdict_on(prospect, &Clock::now())).collect()
    }

    /// A launch that wants more than it can ever get hears why.
    #[test]
    fn what_can_never_be_had_is_foretold() {
        let file = FileLocation::named(PathBuf::from("seats"), 0o600);
        let amount = |zone| Amount { zones: vec![zone], ..Amount::plain(Slots::Number(3), 4) };
        let claim = |zone| Claim::outside_the_policy(file.clone(), amount(zone), "--limit");
        assert_eq!(never(&claim(1..=4)), "more than there can be");
        assert_eq!(never(&claim(1..=2)), "more than there can be", "no slot is kept for others");
    }

    /// A process holds these slots.
    fn held(store: &Store, pid: i32, slots: &[u64]) -> memory::Held {
        let table = store.table("seats");
        let held = table.take(slots).expect("they are free");
        table.describe(slots, Holder { pid: Some(pid), ..Holder::unknown(1..=1) });
        held
    }

    /// Each holder is named once, and four of them at most.
    #[test]
    fn four_holders_are_named_each_once() {
        let store = Store::default();
        let _two = held(&store, 11, &[1, 3]);
        let _three = [(12, 2), (13, 4), (14, 5)].map(|(pid, slot)| held(&store, pid, &[slot]));
        assert_eq!(said(&store, 5), "FULL: PID 11 12 13 14");
        let _fifth = held(&store, 15, &[6]);
        assert_eq!(said(&store, 6), "FULL: PID 11 12 13 14 \u{2026}");
        assert_eq!(said(&store, 7), "ok");
    }

    /// If there is room for which others wait, the queue is named. If there is no room, the holders are.
    #[test]
    fn the_queue_is_named_where_there_is_room() {
        let store = Store::default();
        let _one = held(&store, 11, &[1]);
        let mut place = store.table("seats").take_place(Number(1)).expect("a number of its own");
        place.stand(&[Class { generation: 0, capacity: 2 }]);
        let behind = said(&store, 2);
        assert!(behind.starts_with("FULL: 1 ahead in the queue"), "{behind}");
        assert!(behind.ends_with(", it waits for PID 11"), "{behind}");
        let _two = held(&store, 12, &[2]);
        assert_eq!(said(&store, 2), "FULL: PID 11 12");
    }
}
