//! `explain` without a command, as JSON.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Limit, Mine, Past};
use crate::{
    launch::situation::SystemNames,
    policy::Rule,
    text::{clock::Clock, escape::visible, json},
};

impl<F: FnOnce() -> Past> Mine<'_, '_, F> {
    pub(super) fn to_json(&self) -> String {
        let credentials = &self.situation.credentials;
        let held = self.held().map(|(file, holder)| {
            json!({
                "repository": file.name,
                "member": file.member,
                "slot": holder.slots.0,
                "last_slot": holder.slots.1,
                "pid": holder.pid,
                "host": holder.elsewhere(),
                "since": holder.since.and_then(Clock::stamp),
                "command": holder.command,
                "rule": holder.rule,
            })
        });
        let places = self.places().map(|place| {
            json!({
                "repository": place.file.name,
                "member": place.file.member,
                "place": place.number,
                "of": place.of,
                "pid": place.waiter.process.pid,
                "host": place.waiter.process.host.as_deref(),
                "since": place.waiter.since().and_then(Clock::stamp),
                "wants": place.waiter.wants,
                "behind": place.waits_for.waiter().and_then(|ahead| ahead.pid),
                "waits_for": place.waits_for.show(&self.names),
                "command": place.waiter.command(),
            })
        });
        let names = self.repositories();
        let waits = names.iter().filter_map(|name| {
            let waits = self.past.waits.get(*name)?;
            let seconds = |percent| {
                let wait = Duration::from_micros(waits.took.percentile(percent));
                (waits.took.count > 0).then_some(wait.as_secs_f64())
            };
            Some(json!({
                "repository": name,
                "started": waits.took.count,
                "gave_up": waits.gave_up,
                "median_seconds": seconds(50.0),
                "p90_seconds": seconds(90.0),
            }))
        });
        json::render(&json!({
            "user": self.names.user(credentials.uid),
            "uid": credentials.uid,
            "gids": credentials.groups,
            "host": self.situation.host.to_string_lossy(),
            "denied": self.personal.denied.map(Rule::shown_name),
            "exempt": self.personal.exempt.map(Rule::shown_name),
            "limits": self.limits.iter().map(Limit::to_json).collect::<Vec<Value>>(),
            "by_command": self.personal.open.iter().map(|one| one.shown_name()).collect::<Vec<_>>(),
            "held": held.collect::<Vec<Value>>(),
            "waiting": places.collect::<Vec<Value>>(),
            "waits": waits.collect::<Vec<Value>>(),
            "waits_days": Past::DAYS,
            "waits_error": self.past.failure,
        }))
    }
}

impl Limit<'_> {
    fn to_json(&self) -> Value {
        let found = self.survey.as_ref();
        let lower = self.lower.iter().map(|(slots, origin)| json!({ "rule": origin.rule, "limit": slots }));
        json!({
            "repository": self.claim.repository,
            "member": self.claim.member_name(&SystemNames),
            "path": self.claim.location.path().map(visible),
            "limit": self.claim.amount.reach(),
            "limit_of_all": self.claim.amount.limit,
            "lower": lower.collect::<Vec<Value>>(),
            "mine": found.ok().map(|_| self.mine),
            "used": found.ok().map(|survey| survey.used),
            "waiting": found.ok().map(|survey| survey.waiting.len()),
            "rules": self.claim.origins.iter().map(|origin| origin.rule).collect::<Vec<_>>(),
            "error": found.err(),
        })
    }
}
