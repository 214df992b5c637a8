//! `explain` as JSON.

use std::ffi::OsString;

use serde_json::{Map, Value, json};

use super::{Explained, Standing};
use crate::{
    acquire::{
        dry_run::{Found, Prospect},
        refusal::Refusal,
    },
    judge::terms::provenance::{self, Provenance},
    launch::situation::{Situation, SystemNames},
    policy::Captured,
    text::{escape::visible, json},
};

impl Explained<'_, '_> {
    pub(super) fn to_json(&self, command: &OsString) -> String {
        let Situation { credentials, host, directory, .. } = self.situation;
        let (verdict, status) = self.verdict();
        let rules: Vec<Value> =
            self.decision
                .trace
                .iter()
                .map(|entry| {
                    let captured = entry.captured.iter().map(|Captured { name, value }| {
                        (name.clone(), String::from_utf8_lossy(value).into())
                    });
                    json!({
                        "rule": entry.rule.shown_name(),
                        "place": entry.rule.place().to_string(),
                        "matches": entry.matches(),
                        "captured": captured.collect::<Map<String, Value>>(),
                        "result": entry.describe(self.policy).to_string(),
                    })
                })
                .collect();
        let claims: Vec<Value> = self.prospects().map(claim_as_json).collect();
        let refusal = self.outlook.refusal.as_ref().ok().and_then(Option::as_ref);
        let in_the_way: Vec<&str> = refusal
            .iter()
            .flat_map(|refusal| refusal.told())
            .map(|refused| &*refused.claim.repository)
            .collect();
        let value = json!({
            "command": command.to_string_lossy(),
            "path": visible(&self.program.path),
            "canonical": visible(&self.program.canonical),
            "found": self.missing.is_none(),
            "shim": self.program.shim.as_ref().map(visible),
            "uid": credentials.uid,
            "gids": credentials.groups,
            "host": host.to_string_lossy(),
            "directory": visible(directory),
            "rules": rules,
            "claims": claims,
            "starts": status.is_none(),
            "status": status.map(|status| status as u8),
            "in_the_way": in_the_way,
            "waits": refusal.and_then(Refusal::wait).map(|wait| wait.to_string()),
            "verdict": verdict,
            "contacts": self.contacts(),
        });
        json::render(&value)
    }
}

fn claim_as_json((standing, prospect): (Standing, &Prospect<'_>)) -> Value {
    let Prospect { claim, found } = prospect;
    let path = claim.location.path().map(visible);
    let found = found.as_ref();
    json!({
        "demand": standing.demand,
        "alternative": standing.alternative,
        "repository": claim.repository,
        "member": claim.member_name(&SystemNames),
        "path": path,
        "wanted": claim.amount.wanted(),
        "limit": claim.amount.effective_limit(),
        "limit_of": claim.limit_of.as_ref().map(Provenance::limit),
        "out_of_order": claim.out_of_order,
        "kept_for": (!claim.kept.is_empty()).then(|| provenance::list(&claim.kept)),
        "used": found.ok().map(|found| found.occupancy.shown()),
        "waiting": found.ok().map(|found| found.waiting.len()),
        "error": found.err().map(ToString::to_string),
        "has_room": found.is_ok_and(Found::has_room),
        "wait": claim.wait.resolve().to_string(),
        "max_wait": claim.wait.bound.map(|longest| longest.to_string()),
        "queue": claim.queue.most,
        "queue_per_user": claim.queue.per_user,
        "rules": claim.origins.iter().map(|origin| origin.rule).collect::<Vec<_>>(),
    })
}
