//! The report as JSON: numbers, not words. Times are in seconds, moments in RFC 3339.

use std::{cmp::Reverse, collections::BTreeMap, hash::Hash};

use serde_json::{Map, Value, json};

use crate::{
    text::Clock,
    tools::logs::{
        reading::Covered,
        rendering::{
            figures::Called,
            programs::{Outcome, Program},
        },
        statistics::{Bounded, Cell, Counts, Distribution, Party, Reason, Rule},
    },
};

/// How many users, groups, commands and rules there are at most.
const MOST: usize = 200;

pub(super) fn all(
    counts: &Counts,
    programs: &[Program<'_>],
    called: &Called<'_>,
    covered: &Covered,
) -> Value {
    let span = counts.closing.span;
    json!({
        "from": span.and_then(|(begin, _)| Clock::stamp_of_micros(begin)),
        "until": span.and_then(|(_, end)| Clock::stamp_of_micros(end)),
        "rotated_files": covered.rotated,
        "unreadable_files": covered.unreadable.len(),
        "all": whole(counts),
        "programs": named(programs.iter().map(|program| (program.name.to_owned(), of_program(program)))),
        "rules": counts.rules.iter().filter(|(_, rule)| is_used(rule)).take(MOST).collect::<BTreeMap<_, _>>(),
        "users": parties(&counts.users, |uid| (called.user)(*uid)),
        "groups": parties(&counts.groups, |gid| (called.group)(*gid)),
        "commands": parties(&counts.commands, String::clone),
        "refused_by_hour": counts.refused,
        "waited_by_hour": counts.waited,
    })
}

fn whole(counts: &Counts) -> Value {
    let mut value = cell(&counts.all);
    value["would_be_refused"] = json!(counts.would_refuse);
    value["too_soon"] = json!(counts.too_soon);
    value["expired"] = json!(counts.expired);
    value["refusals"] = refusals(&counts.refusals);
    value["waits"] = lengths(&counts.waits);
    value["runs"] = lengths(&counts.runs);
    value["ends"] = json!(counts.ends);
    value
}

fn of_program(program: &Program<'_>) -> Value {
    let of = program.of;
    let mut value = cell(&of.cell);
    value["seats"] = json!(program.seats);
    value["seats_are_of_each_member"] = json!(of.usage.has_members);
    value["most"] = json!(program.most);
    value["average"] = json!(program.average);
    value["full_share_at_most"] = json!(program.full);
    value["would_be_refused"] = json!(of.would_refuse());
    value["too_soon"] = json!(of.too_soon());
    value["expired"] = json!(of.expired);
    value["refusals"] = refusals(&of.refusals);
    value["waits"] = lengths(&of.waits);
    value["runs"] = lengths(&of.runs);
    value["ends"] = json!(of.usage.ends);
    value["suggestions"] = json!(program.suggestions);
    value["enough_seats"] = match &program.outcome {
        Some(Outcome::Enough(seats)) => json!(seats),
        Some(Outcome::NotEnough(..) | Outcome::Unknown) | None => Value::Null,
    };
    value["answer"] = json!(program.answer().0);
    value
}

fn cell(cell: &Cell) -> Value {
    json!({
        "launches": cell.launches,
        "started": cell.started(),
        "at_once": cell.at_once,
        "waited": cell.waited,
        "refused": cell.refused,
    })
}

fn is_used(rule: &Rule) -> bool {
    rule.started + rule.refused + rule.would_refuse > 0
}

/// The users who were refused most, or would have been.
fn parties<K: Eq + Hash + Ord>(all: &Bounded<K, Party>, name: impl Fn(&K) -> String) -> Value {
    let mut sorted: Vec<(&K, &Party)> = all.iter().collect();
    sorted.sort_by_key(|(_, of)| Reverse((of.cell.refused + of.would_refuse, of.cell.launches)));
    named(sorted.into_iter().take(MOST).map(|(key, of)| {
        let mut value = cell(&of.cell);
        value["would_be_refused"] = json!(of.would_refuse);
        (name(key), value)
    }))
}

fn named(values: impl Iterator<Item = (String, Value)>) -> Value {
    Value::Object(values.collect::<Map<String, Value>>())
}

fn refusals(refusals: &BTreeMap<Reason, u64>) -> Value {
    let enforced = refusals.iter().filter(|((_, is_enforced), _)| *is_enforced);
    named(enforced.map(|((reason, _), count)| ((*reason).to_owned(), json!(count))))
}

fn lengths(lengths: &Distribution) -> Value {
    let mut value = json!(lengths.percentiles());
    value["count"] = json!(lengths.count);
    value
}
