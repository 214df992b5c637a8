//! A simulation as JSON: the same numbers, for scripts. Waits are in seconds.

use serde_json::{Map, Value, json};

use super::{
    material::{By, Material},
    text::{reason, used},
};
use crate::tools::logs::{
    simulation::{
        tally::{OfRepository, Tally},
        traffic::Traffic,
    },
    statistics::{counts::Cell, distribution::Distribution, usage::Ends},
};

/// How many users, groups and commands there are at most.
const MOST: usize = 200;

pub(super) fn all(material: &Material<'_>, draws: &[Tally]) -> Value {
    let Some(now) = draws.first() else { return Value::Null };
    let traffic = material.traffic;
    json!({
        "from": seconds(traffic.begin()),
        "until": seconds(traffic.end),
        "then": tally(material, &traffic.then),
        "now": tally(material, now),
        "different": now.different,
        "users": lines(material, By::User, now),
        "groups": lines(material, By::Group, now),
        "commands": lines(material, By::Command, now),
        "draws": draws.iter().map(draw).collect::<Vec<_>>(),
        "ends": ends(traffic),
        "untold": traffic.untold,
        "of_each_host": traffic.of_each_host,
    })
}

/// The remaining part if the log does not have enough data.
pub(super) fn unknown(material: &Material<'_>, undecided: &[usize]) -> Value {
    let traffic = material.traffic;
    json!({
        "from": seconds(traffic.begin()),
        "until": seconds(traffic.end),
        "then": tally(material, &traffic.then),
        "now": null,
        "unknown": reason(material),
        "undecided": undecided.len(),
        "ends": ends(traffic),
    })
}

fn ends(traffic: &Traffic) -> Value {
    let Ends { exact, bounded, missed, running } = traffic.ends;
    json!({ "exact": exact, "bounded": bounded, "missed": missed, "running": running })
}

fn draw(tally: &Tally) -> Value {
    json!({ "drawn": tally.drawn, "all": cell(&tally.all), "waits": waits(&tally.waits) })
}

fn tally(material: &Material<'_>, tally: &Tally) -> Value {
    let repositories: Map<String, Value> =
        tally.repositories.iter().map(|(name, of)| (name.clone(), repository(material, of))).collect();
    json!({
        "all": cell(&tally.all),
        "waits": waits(&tally.waits),
        "repositories": repositories,
        "rules": tally.rules,
        "hours": tally.hours.iter().map(cell).collect::<Vec<_>>(),
    })
}

fn repository(material: &Material<'_>, of: &OfRepository) -> Value {
    let mut value = cell(&of.cell);
    value["limit"] = json!(of.limit);
    value["most"] = json!(of.most);
    value["waits"] = waits(&of.waits);
    if of.slot_time > 0 {
        value["used"] = json!(used(material, of.slot_time));
    }
    value
}

fn lines(material: &Material<'_>, by: By, now: &Tally) -> Value {
    let lines = material.lines(by, now);
    lines
        .into_iter()
        .take(MOST)
        .map(|line| json!({ "name": line.name, "then": cell(&line.then), "now": cell(&line.now) }))
        .collect()
}

fn cell(cell: &Cell) -> Value {
    json!({
        "launches": cell.launches,
        "at_once": cell.at_once,
        "waited": cell.waited,
        "refused": cell.refused,
        "wait_seconds": seconds(cell.wait),
        "newly_refused": cell.newly_refused,
        "newly_started": cell.newly_started,
    })
}

fn waits(waits: &Distribution) -> Value {
    json!({
        "p50": seconds(waits.percentile(50.0)),
        "p95": seconds(waits.percentile(95.0)),
        "p99": seconds(waits.percentile(99.0)),
        "longest": seconds(waits.longest),
    })
}

/// Of microseconds.
#[expect(clippy::cast_precision_loss, reason = "times")]
pub(super) fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}
