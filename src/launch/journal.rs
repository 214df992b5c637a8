//! What `run` writes into the logs of the policy. A log that cannot be written never stops a launch; `-v`
//! reports it.

use std::{
    cell::{Cell, OnceCell},
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    ops::RangeInclusive,
    path::Path,
    time::{Duration, SystemTime},
};

use super::{
    LaunchSpec,
    log::{
        event::{Circumstances, Event, FREED, HAD_LEFT, Kind, NOT_EXECUTED, TableSeen, micros},
        sink::{Sink, Target},
    },
};
use crate::{
    acquire::{Grant, Reason, Refusal, Refused},
    judge::{
        Unenforced,
        terms::{Claim, Member, Runs},
    },
    keeper::{Delivery, EvictionOutcome, Occupancy, Overdue, UnverifiedTarget},
    policy::{LayerKind, Log, LogTarget, Policy, Rule},
    sys::{Ending, errno_of, signals},
    text::{Show, age, stream, visible},
};

/// Where systemd's journal listens, if it runs.
pub(crate) const JOURNAL: &str = "/run/systemd/journal/socket";

/// The logs of one launch.
pub(crate) struct Journal<'a> {
    sinks: Vec<Sink>,
    command: &'a str,
    uid: u32,
    host: OsString,
    /// The script whose descriptors keep the slots, once it has them: its events are not this process's.
    script: Cell<Option<i32>>,
    /// The facts of the decision, if a log records them; known after the decision.
    launch: OnceCell<Box<Circumstances>>,
    /// Whether to say which log cannot be written.
    is_verbose: bool,
}

impl<'a> Journal<'a> {
    /// For a command of this user.
    pub(crate) fn open(policy: &Policy, command: &'a str, uid: u32, host: &OsStr, is_verbose: bool) -> Self {
        let sinks = sinks(policy, host);
        let (host, script, launch) = (host.to_owned(), Cell::new(None), OnceCell::new());
        Self { sinks, command, uid, host, script, launch, is_verbose }
    }

    /// What follows is about a script.
    pub(crate) fn continue_for(&self, script: i32) {
        self.script.set(Some(script));
    }

    /// Collects the facts of the decision, if a log records them.
    pub(crate) fn tell(&self, circumstances: impl FnOnce() -> Circumstances) {
        if self.is_replayed() {
            self.launch.get_or_init(|| Box::new(circumstances()));
        }
    }

    fn is_replayed(&self) -> bool {
        self.sinks.iter().any(|sink| sink.replay)
    }

    /// What would have refused the command if it were enforced.
    pub(crate) fn would_refuse(&self, rules: &[Unenforced<'_>], claims: &[&Claim]) {
        if self.sinks.is_empty() {
            return;
        }
        for would in rules {
            let mut event = self.event(Kind::WouldRefuse);
            match would {
                Unenforced::Denied(rule) => event.rules = vec![rule.shown_name().to_owned()],
                Unenforced::Unmatched => event.status = Some("unmatched".to_owned()),
            }
            self.write(event);
        }
        if !claims.is_empty() {
            let mut event = self.event(Kind::WouldRefuse);
            event.repositories = claims.iter().map(|claim| claim.repository.to_string()).collect();
            event.rules = claims.iter().copied().flat_map(names_of_rules).collect();
            self.write(event);
        }
    }

    /// The command is about to start.
    pub(crate) fn started(&self, wanted: &LaunchSpec, grant: &Grant<'_>, arrived: Option<SystemTime>) {
        if !self.sinks.iter().any(|sink| sink.everything) {
            return;
        }
        let mut event = self.event(Kind::Started);
        event.repositories =
            grant.slots().iter().map(|held| format!("{}={}", held.name, held.slots)).collect();
        let joined = grant.slots().iter().filter(|held| held.joined.count() > 0);
        event.joined = joined.map(|held| format!("{}={}", held.name, held.joined)).collect();
        event.rules = wanted.claims().flat_map(names_of_rules).collect();
        if self.is_replayed() {
            (event.decided, event.arrived) = (Some(micros(grant.started())), arrived.map(micros));
            let of = |claim: &&Claim| {
                let own = grant.slots_of(claim);
                TableSeen {
                    shared: grant.is_shared(claim),
                    lent: own.map_or(0, |own| within(&claim.reserved.lent, |slot| own.has(slot))),
                    ..table_seen(claim, grant.seen_held(claim))
                }
            };
            event.tables = grant.claims().iter().map(of).collect();
        }
        self.write(event);
    }

    /// The command waited, and got its turn.
    pub(crate) fn waited(&self, grant: &Grant<'_>, waited: Duration, arrived: Option<SystemTime>) {
        let mut event = self.event(Kind::Waited);
        event.seconds = Some(waited.as_secs_f64());
        if self.is_replayed() {
            (event.decided, event.arrived) = (Some(micros(grant.started())), arrived.map(micros));
        }
        self.write(event);
    }

    /// Some claims could not be met. These other claims could have been met.
    pub(crate) fn refused<'c>(
        &self,
        refusal: &Refusal<'_>,
        met: impl FnOnce() -> Vec<&'c Claim>,
        decided: Option<SystemTime>,
        arrived: Option<SystemTime>,
    ) {
        let mut event = self.event(if refusal.is_too_soon() { Kind::TooSoon } else { Kind::Refused });
        for refused in refusal.claims() {
            event.repositories.push(refused.claim.repository.to_string());
            event.rules.extend(names_of_rules(refused.claim));
        }
        event.seconds = refusal.waited.map(|waited| waited.as_secs_f64());
        event.status = refusal.waited.map(|_| "timed out".to_owned());
        if self.is_replayed() {
            (event.decided, event.arrived) = (decided.map(micros), arrived.map(micros));
            let refused = |refused: &Refused<'_>| table_seen(refused.claim, seen_held(&refused.reason));
            let met = met()
                .into_iter()
                .map(|claim| TableSeen { room: Some(claim.amount.wanted()), ..table_seen(claim, None) });
            event.tables = refusal.claims().map(refused).chain(met).collect();
        }
        self.write(event);
    }

    /// A rule, or the lack of one, refused the command.
    pub(crate) fn denied(&self, rule: Option<&Rule>) {
        let mut event = self.event(Kind::Refused);
        event.rules = rule.map(|rule| rule.shown_name().to_owned()).into_iter().collect();
        event.status = Some(if rule.is_some() { "denied" } else { "unmatched" }.to_owned());
        self.write(event);
    }

    /// The supervised command has ended.
    pub(crate) fn ended(&self, ran: Duration, ending: Ending) {
        let mut event = self.event(Kind::Ended);
        event.seconds = Some(ran.as_secs_f64());
        event.status = Some(match ending {
            Ending::Exited(status) => status.to_string(),
            Ending::Killed(number) => signals::name(number),
        });
        self.write(event);
    }

    /// The logged start did not happen: the program could not be executed.
    pub(crate) fn not_executed(&self) {
        let mut event = self.event(Kind::Ended);
        event.status = Some(NOT_EXECUTED.to_owned());
        self.write(event);
    }

    /// A holder was overdue.
    pub(crate) fn expired(&self, claim: &Claim, overdue: &Overdue, fate: EvictionOutcome) {
        self.write(expired(self.event(Kind::Expired), &claim.repository, overdue, fate));
    }

    fn event(&self, kind: Kind) -> Event {
        let event = Event::now(kind, self.command, self.uid, &self.host);
        Event { pid: self.script.get().unwrap_or(event.pid), ..event }
    }

    /// Writes an event, each rule once: one that counts against two repositories is one rule nevertheless.
    fn write(&self, mut event: Event) {
        let mut named = BTreeSet::new();
        event.rules.retain(|rule| named.insert(rule.clone()));
        if self.is_replayed() {
            event.written_now();
            event.decided = event.decided.or_else(|| Some(micros(SystemTime::now())));
            let is_decision =
                !matches!(event.event, Kind::Waited | Kind::Ended | Kind::Expired | Kind::Evicted);
            event.launch = self.launch.get().filter(|_| is_decision).cloned();
        }
        for sink in &self.sinks {
            match sink.write(&event) {
                Err(error) if self.is_verbose => {
                    let reason = errno_of(&error).desc();
                    stream::complain(&format!("rungate: {} cannot be written: {reason}", sink.target));
                }
                Ok(()) | Err(_) => {}
            }
        }
    }
}

/// Fills in the event of a holder that was to be ended. It is about the holder, on its host.
pub(crate) fn expired(event: Event, repository: &str, overdue: &Overdue, fate: EvictionOutcome) -> Event {
    Event {
        host: overdue.elsewhere.clone().unwrap_or(event.host),
        repositories: vec![repository.to_owned()],
        rules: overdue.holder.rule.clone().into_iter().collect(),
        seconds: overdue.by.map(|by| by.as_secs_f64()),
        holder: Some(overdue.pid),
        status: Some(match fate {
            EvictionOutcome::Ended(signal, _) => signal.as_str().to_owned(),
            EvictionOutcome::LeftOthers(signal) => format!("{}, left others", signal.as_str()),
            EvictionOutcome::HadLeft => HAD_LEFT.to_owned(),
            EvictionOutcome::NotPermitted => "not permitted".to_owned(),
            EvictionOutcome::NotProved(_) => "not proved".to_owned(),
            EvictionOutcome::Survived => "survived".to_owned(),
            EvictionOutcome::Noticed => "noticed".to_owned(),
            EvictionOutcome::NotOverdueThere => "not overdue there".to_owned(),
            EvictionOutcome::Freed => FREED.to_owned(),
        }),
        ..event
    }
}

/// The logs that the layers of the policy request. Without a setting, a system policy logs refusals and ended
/// holders to the journal.
pub(crate) fn sinks(policy: &Policy, host: &OsStr) -> Vec<Sink> {
    let mut sinks: Vec<Sink> = policy.logs().map(|(_, log)| sink(log, host)).collect();
    let is_system = |kind: LayerKind| kind == LayerKind::System;
    if policy.layers().iter().any(|layer| is_system(layer.kind()))
        && !policy.logs().any(|(kind, _)| is_system(kind))
        && Path::new(JOURNAL).exists()
    {
        sinks.push(Sink { target: Target::Journal, everything: false, replay: false });
    }
    sinks
}

/// The log of one layer.
pub(crate) fn sink(log: &Log, host: &OsStr) -> Sink {
    Sink {
        target: match &log.to {
            LogTarget::Off => Target::Off,
            LogTarget::Journald => Target::Journal,
            LogTarget::Syslog => Target::Syslog,
            LogTarget::File(file) => Target::File(file.path(host)),
        },
        everything: log.has_every_event(),
        replay: log.replay,
    }
}

/// A claim's table at the time of a decision, with the held slots, as far as known.
fn table_seen(claim: &Claim, held: Option<Runs>) -> TableSeen {
    let member = |member: &Member| match member {
        Member::User(uid) => format!("uid {uid}"),
        Member::Group(gid) => format!("gid {gid}"),
        Member::Text { shown, .. } => shown.clone(),
    };
    let members: Vec<String> = claim.member.iter().map(member).collect();
    TableSeen {
        repository: claim.repository.to_string(),
        member: (!members.is_empty()).then(|| members.join(", ")),
        limit: claim.amount.effective_limit(),
        limit_of_all: Some(claim.amount.limit).filter(|all| *all > claim.amount.effective_limit()),
        used: held.as_ref().map(Runs::count),
        kept: held.as_ref().map_or(0, |held| within(&claim.reserved.kept, |slot| !held.has(slot))),
        held: held.map(|held| held.to_string()),
        ..TableSeen::default()
    }
}

/// How many of these slots are of that kind.
fn within(slots: &[RangeInclusive<u64>], is_such: impl Fn(u64) -> bool) -> u64 {
    slots.iter().cloned().flatten().filter(|slot| is_such(*slot)).count() as u64
}

fn seen_held(reason: &Reason) -> Option<Runs> {
    match reason {
        Reason::Full(full) if !full.is_more_used() => full.occupancy().ok().map(Occupancy::runs),
        Reason::Full(_) | Reason::Never | Reason::TooSoon { .. } => None,
    }
}

fn names_of_rules(claim: &Claim) -> Vec<String> {
    claim.rules().map(|origin| origin.rule.to_string()).collect()
}

// The message about a holder that should be ended.

/// One line for the launch that wanted the slot; one more with manual steps, if nothing was done.
pub(crate) fn describe(
    repository: &str,
    path: Option<&Path>,
    overdue: &Overdue,
    fate: EvictionOutcome,
) -> String {
    let name = visible(repository);
    let by_hand = by_hand(path);
    let comma = if overdue.by.is_some() { "," } else { "" };
    let (who, subject) = (who(overdue), format!("{}{comma}", who(overdue)));
    let slot = overdue.holder.slots.0;
    let lingers = overdue.holder.lingers_until.is_some();
    match fate {
        EvictionOutcome::Freed => format!("rungate: {name}: freed slot {slot} of {who}"),
        EvictionOutcome::HadLeft if lingers => {
            format!("rungate: {name}: slot {slot} of {who} does not linger any more")
        }
        EvictionOutcome::Noticed if lingers => {
            format!("rungate: {name}: slot {slot} of {who} still lingers: its host was asked to free it")
        }
        EvictionOutcome::Ended(signal, Delivery::Full | Delivery::Partly) => {
            format!("rungate: {name}: ended {who}, with {}", signal.as_str())
        }
        EvictionOutcome::Ended(signal, Delivery::NoGroup) => format!(
            "rungate: {name}: ended {who}, with {} to the process alone: it leads no group of its own",
            signal.as_str()
        ),
        EvictionOutcome::LeftOthers(signal) => format!(
            "rungate: {name}: ended {who}, with {}, but a process that it left behind keeps the slot{by_hand}",
            signal.as_str(),
        ),
        EvictionOutcome::HadLeft => format!("rungate: {name}: {subject} had already exited"),
        EvictionOutcome::NotPermitted => {
            format!("rungate: {name}: {subject} belongs to another user and was not ended")
        }
        EvictionOutcome::NotProved(doubt) => {
            format!("rungate: {name}: {subject} was not ended: {}{by_hand}", why_not(doubt))
        }
        EvictionOutcome::Survived => {
            format!("rungate: {name}: {subject} survived SIGKILL: it hangs in the kernel")
        }
        EvictionOutcome::Noticed => {
            format!("rungate: {name}: {subject} is still running: its host was asked to end it")
        }
        EvictionOutcome::NotOverdueThere => {
            format!(
                "rungate: {name}: {subject} was not ended: by the policy and the clock of its host it is not overdue"
            )
        }
    }
}

/// What an administrator can inspect if nothing proves the holder of a slot.
pub(crate) fn by_hand(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| {
        format!("\n  To see who has its file open (as root): fuser -v {}", path.shown())
    })
}

/// The holder, and by how much it is overdue.
pub(crate) fn who(overdue: &Overdue) -> String {
    let command = overdue.holder.command.as_ref().map_or_else(|| "?".to_owned(), visible);
    let host = overdue.elsewhere.as_ref().map_or_else(String::new, |host| format!(" on {}", visible(host)));
    let by = overdue.by.map_or_else(String::new, |by| format!(", overdue by {}", age(by)));
    format!("PID {} ({command}){host}{by}", overdue.pid)
}

/// Why it is not signalled.
pub(crate) fn why_not(doubt: UnverifiedTarget) -> &'static str {
    match doubt {
        UnverifiedTarget::Gone | UnverifiedTarget::NoGuardian => {
            "nothing proves that it is the job that holds the slot"
        }
        UnverifiedTarget::Privileged => "it runs a set-user-id program",
        UnverifiedTarget::InTransit => {
            "it has ended, and the descriptor that keeps its slot lies in the queue of a socket"
        }
        UnverifiedTarget::OutOfSight => "it cannot be inspected from here",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{keeper::Holder, sys::signals::Signal};

    fn overdue(by: Option<u64>, lingers: bool) -> Overdue {
        let holder = Holder {
            command: Some("matlab".to_owned()),
            lingers_until: lingers.then_some(SystemTime::UNIX_EPOCH),
            ..Holder::unknown(3..=3)
        };
        let by = by.map(Duration::from_secs);
        let (elsewhere, job, with) = (None, Ok(7), Vec::new());
        Overdue { holder, pid: 7, elsewhere, by, slots: 1, job, may_be_signalled: true, with }
    }

    /// The process number of a holder belongs to its host, so the event of its end is of that host.
    #[test]
    fn the_event_of_a_holder_is_of_its_host() {
        for (elsewhere, host) in [(None, "ws17"), (Some("ws18"), "ws18")] {
            let holder = Overdue { elsewhere: elsewhere.map(str::to_owned), ..overdue(Some(90), false) };
            let event = Event::now(Kind::Expired, "matlab", 7, OsStr::new("ws17"));
            let event = expired(event, "seats", &holder, EvictionOutcome::HadLeft);
            assert_eq!((event.host.as_str(), event.holder), (host, Some(7)));
        }
    }

    /// The text about the holder of a slot, which may have ended.
    fn said(fate: EvictionOutcome, by: Option<u64>, lingers: bool) -> String {
        let overdue = overdue(by, lingers);
        let said = describe("seats", Some(Path::new("/run/seats.lock")), &overdue, fate);
        said.strip_prefix("rungate: seats: ").unwrap_or_default().to_owned()
    }

    /// The message about a holder says by how much it is overdue, and what came of it. If it is not clear
    /// what keeps the slot, it says how to find that.
    #[test]
    fn what_came_of_a_holder_is_said() {
        let late = |fate| said(fate, Some(90), false);
        let kill = Signal::SIGKILL;
        for delivery in [Delivery::Full, Delivery::Partly] {
            let ended = late(EvictionOutcome::Ended(kill, delivery));
            assert_eq!(ended, "ended PID 7 (matlab), overdue by 1m30s, with SIGKILL");
        }
        let alone = " to the process alone: it leads no group of its own";
        assert!(late(EvictionOutcome::Ended(kill, Delivery::NoGroup)).ends_with(alone));
        let by_hand = "\n  To see who has its file open (as root): fuser -v /run/seats.lock";
        let left = late(EvictionOutcome::LeftOthers(kill));
        let others = ", but a process that it left behind keeps the slot";
        assert!(left.contains(others) && left.ends_with(by_hand), "{left}");
        let doubt = late(EvictionOutcome::NotProved(UnverifiedTarget::Gone));
        assert!(doubt.contains(", was not ended: nothing proves") && doubt.ends_with(by_hand), "{doubt}");
        for (fate, end) in [
            (EvictionOutcome::HadLeft, "had already exited"),
            (EvictionOutcome::NotPermitted, "belongs to another user and was not ended"),
            (EvictionOutcome::Survived, "survived SIGKILL: it hangs in the kernel"),
            (EvictionOutcome::Noticed, "is still running: its host was asked to end it"),
        ] {
            assert_eq!(late(fate), format!("PID 7 (matlab), overdue by 1m30s, {end}"));
            assert_eq!(said(fate, None, false), format!("PID 7 (matlab) {end}"));
        }
    }

    /// Of a slot that lingers its number is shown, because its program has ended.
    #[test]
    fn what_came_of_a_lingering_slot_is_said() {
        let slot = "slot 3 of PID 7 (matlab)";
        for (fate, expected) in [
            (EvictionOutcome::Freed, format!("freed {slot}")),
            (EvictionOutcome::HadLeft, format!("{slot} does not linger any more")),
            (EvictionOutcome::Noticed, format!("{slot} still lingers: its host was asked to free it")),
        ] {
            assert_eq!(said(fate, None, true), expected);
        }
    }
}
