//! A claim of a decision beside its repository as it is now: what `explain` shows of both.

use std::{ops::RangeInclusive, time::SystemTime};

use crate::{
    commands::{claims::Claims, names::SystemNames, situation::Situation},
    decision::{self, Claim, Decision, Verdict},
    output::{clock::Clock, visible::visible},
    repository::{
        claim::{Claim as Wanted, Demand},
        survey::Survey,
    },
};

/// A claim, and how its repository looks now.
pub(super) struct Look<'d, 'p> {
    pub(super) claim: &'d Claim<'p>,
    wanted: Wanted,
    pub(super) survey: Result<Survey, String>,
}

/// Looks at the repositories of every claim of a decision.
pub(super) fn looks_of<'d, 'p>(decision: &'d Decision<'p>, situation: &Situation) -> Vec<Look<'d, 'p>> {
    let Verdict::Start(terms) = &decision.verdict else { return Vec::new() };
    let claims = Claims::of(&terms.demands, &situation.runtime);
    let wanted = claims.demands.into_iter().flat_map(|demand| match demand {
        Demand::One(claim) => vec![claim],
        Demand::AnyOf(claims) => claims,
    });
    let judged = terms.demands.iter().flat_map(decision::Demand::claims);
    judged
        .zip(wanted)
        .map(|(claim, wanted)| Look {
            claim,
            wanted,
            survey: Survey::of(&claim.path).map_err(|error| error.to_string()),
        })
        .collect()
}

/// Whether a claim could be met now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Prospect {
    /// It could.
    Room,
    /// The limit is 0.
    Closed,
    /// It is for more than the limit, or than is not kept for others.
    Never,
    /// The limit is reached.
    Full,
    /// What is free is kept for others.
    Kept,
    /// Others came first.
    Behind(usize),
    /// The pause since the last launch is not over.
    TooSoon(SystemTime),
    /// Nobody knows.
    Unknown,
}

impl Look<'_, '_> {
    /// `seats-per-user [ann]`
    pub(super) fn title(&self) -> String {
        let member = self.claim.member_name(&SystemNames).map(|member| format!(" [{member}]"));
        visible(format!("{}{}", self.claim.repository.shown_name(), member.unwrap_or_default()))
    }

    /// How many slots it is for.
    pub(super) fn slots(&self) -> u64 {
        self.wanted.slots.under(self.wanted.limit)
    }

    /// Whether it could be met now, as far as can be seen without taking anything.
    pub(super) fn prospect(&self) -> Prospect {
        let Ok(survey) = &self.survey else { return Prospect::Unknown };
        let (limit, slots, reach) = (self.wanted.limit, self.slots(), self.wanted.reach());
        let free = |zones: &Vec<RangeInclusive<u64>>| zones.iter().map(|zone| survey.free_among(zone)).sum();
        if let Some(until) = survey.paused_until(self.wanted.pause, SystemTime::now()) {
            Prospect::TooSoon(until)
        } else if limit == 0 {
            Prospect::Closed
        } else if slots > reach {
            Prospect::Never
        } else if survey.used + slots > limit {
            Prospect::Full
        } else if slots > self.wanted.zones.as_ref().map_or(u64::MAX, free) {
            Prospect::Kept
        } else {
            match survey.waiting.iter().filter(|waiter| waiter.limit >= reach).count() {
                0 => Prospect::Room,
                ahead => Prospect::Behind(ahead),
            }
        }
    }

    /// The same, in words.
    pub(super) fn verdict(&self, clock: &Clock) -> String {
        match self.prospect() {
            Prospect::Room => "ok".to_owned(),
            Prospect::Closed => "CLOSED: its limit is 0".to_owned(),
            Prospect::Never => "NEVER: more than there can be".to_owned(),
            Prospect::Kept => "FULL: what is free is kept for others".to_owned(),
            Prospect::Behind(ahead) => format!("FULL: {ahead} in line come first"),
            Prospect::TooSoon(until) => format!("TOO SOON: not before {}", clock.time(until)),
            Prospect::Unknown => self.survey.as_ref().err().map_or_else(String::new, visible),
            Prospect::Full => format!("FULL: PID {}", self.holders()),
        }
    }

    fn holders(&self) -> String {
        const MOST: usize = 4;
        let mut pids: Vec<String> = Vec::new();
        for holder in self.survey.iter().flat_map(|survey| &survey.holders) {
            let pid = holder.pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string());
            if !pids.contains(&pid) {
                pids.push(pid);
            }
        }
        let more = if pids.len() > MOST { " …" } else { "" };
        pids.truncate(MOST);
        format!("{}{more}", pids.join(" "))
    }
}
