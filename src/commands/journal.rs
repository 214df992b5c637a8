//! What `run` writes into the logs that the policy asks for. A log that cannot be written never stops a launch.

use std::{path::Path, time::Duration};

use crate::{
    commands::{refusal::is_too_soon, run::Asked},
    decision::Unenforced,
    log::{
        event::{Event, Kind},
        sink::{Sink, Target},
    },
    policy::{LayerKind, Log, LogEvents, LogTarget, Policy, Rule},
    repository::{
        admitted::Admitted,
        claim::Claim,
        expiry::{Fate, Overdue},
        refused::Refused,
    },
    sys::{child::Ending, signal},
};

/// Where systemd's journal listens, where it runs.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// The logs of one launch.
pub(super) struct Journal<'a> {
    sinks: Vec<Sink>,
    command: &'a str,
    uid: u32,
}

impl<'a> Journal<'a> {
    /// The logs that the layers of the policy ask for. A system policy that says nothing logs refusals to the journal.
    pub(super) fn open(policy: &Policy, command: &'a str, uid: u32) -> Self {
        let mut sinks: Vec<Sink> = policy.logs().map(|(_, log)| sink(log)).collect();
        let is_system = |kind: LayerKind| kind == LayerKind::System;
        if policy.layers().iter().any(|layer| is_system(layer.kind()))
            && !policy.logs().any(|(kind, _)| is_system(kind))
            && Path::new(JOURNAL).exists()
        {
            sinks.push(Sink { target: Target::Journal, everything: false });
        }
        Self { sinks, command, uid }
    }

    /// The command is about to start.
    pub(super) fn started(&self, asked: &Asked<'_>, admitted: &Admitted) {
        if self.sinks.is_empty() {
            return;
        }
        for would in &asked.terms.would_refuse {
            let mut event = self.event(Kind::WouldRefuse);
            match would {
                Unenforced::Denied(rule) => event.rules = vec![name_of(rule)],
                Unenforced::Unmatched => event.status = Some("unmatched".to_owned()),
            }
            self.write(&event);
        }
        let claims = asked.claims();
        for number in admitted.unenforced() {
            let mut event = self.event(Kind::WouldRefuse);
            event.repositories = claims.get(*number).map(|claim| claim.name.clone()).into_iter().collect();
            event.rules = asked.judged.get(*number).map_or_else(Vec::new, |claim| names_of(&claim.rules));
            self.write(&event);
        }
        let mut event = self.event(Kind::Started);
        event.repositories = admitted
            .slots()
            .iter()
            .map(|held| {
                let slots: Vec<String> = held.slots.iter().map(u64::to_string).collect();
                format!("{}={}", held.name, slots.join(","))
            })
            .collect();
        event.rules = asked.judged.iter().flat_map(|claim| names_of(&claim.rules)).collect();
        event.rules.dedup();
        self.write(&event);
    }

    /// The command stood in line, and got its turn.
    pub(super) fn waited(&self, waited: Duration) {
        let mut event = self.event(Kind::Waited);
        event.seconds = Some(waited.as_secs_f64());
        self.write(&event);
    }

    /// Some claims could not be met. `waited` says for how long it was tried.
    pub(super) fn refused(&self, asked: &Asked<'_>, refused: &[Refused], waited: Option<Duration>) {
        let claims = asked.claims();
        let mut event = self.event(if is_too_soon(refused) { Kind::TooSoon } else { Kind::Refused });
        for refused in refused {
            event.repositories.extend(claims.get(refused.claim).map(|claim| claim.name.clone()));
            event.rules.extend(
                asked.judged.get(refused.claim).map_or_else(Vec::new, |claim| names_of(&claim.rules)),
            );
        }
        event.seconds = waited.map(|waited| waited.as_secs_f64());
        event.status = waited.map(|_| "timed out".to_owned());
        self.write(&event);
    }

    /// A rule, or the lack of one, refused the command.
    pub(super) fn denied(&self, rule: Option<&Rule>) {
        let mut event = self.event(Kind::Refused);
        event.rules = rule.map(name_of).into_iter().collect();
        event.status = Some(if rule.is_some() { "denied" } else { "unmatched" }.to_owned());
        self.write(&event);
    }

    /// The supervised command has ended.
    pub(super) fn ended(&self, ran: Duration, ending: Ending) {
        let mut event = self.event(Kind::Ended);
        event.seconds = Some(ran.as_secs_f64());
        event.status = Some(match ending {
            Ending::Exited(status) => status.to_string(),
            Ending::Killed(number) => signal::name(number),
        });
        self.write(&event);
    }

    /// What was written as started was not: the program could not be executed.
    pub(super) fn not_executed(&self) {
        let mut event = self.event(Kind::Ended);
        event.status = Some("not executed".to_owned());
        self.write(&event);
    }

    /// A holder was overdue.
    pub(super) fn expired(&self, claim: &Claim, overdue: &Overdue, fate: Fate) {
        self.write(&expired(self.event(Kind::Expired), &claim.name, overdue, fate));
    }

    fn event(&self, kind: Kind) -> Event {
        Event::now(kind, self.command, self.uid)
    }

    fn write(&self, event: &Event) {
        for sink in &self.sinks {
            let _ = sink.write(event);
        }
    }
}

/// Fills in the event of an overdue holder.
pub(super) fn expired(event: Event, repository: &str, overdue: &Overdue, fate: Fate) -> Event {
    Event {
        repositories: vec![repository.to_owned()],
        seconds: Some(overdue.by.as_secs_f64()),
        holder: Some(overdue.pid),
        status: Some(match fate {
            Fate::Ended(signal) => signal.as_str().to_owned(),
            Fate::HadLeft => "had left".to_owned(),
            Fate::NotPermitted => "not permitted".to_owned(),
            Fate::Survived => "survived".to_owned(),
        }),
        ..event
    }
}

/// Where one layer wants its events.
pub(super) fn sink(log: &Log) -> Sink {
    Sink {
        target: match &log.to {
            LogTarget::Off => Target::Off,
            LogTarget::Journald => Target::Journal,
            LogTarget::Syslog => Target::Syslog,
            LogTarget::File(path) => Target::File(path.clone()),
        },
        everything: log.events == LogEvents::All,
    }
}

fn name_of(rule: &Rule) -> String {
    rule.shown_name().to_owned()
}

fn names_of(rules: &[&Rule]) -> Vec<String> {
    rules.iter().map(|rule| name_of(rule)).collect()
}
