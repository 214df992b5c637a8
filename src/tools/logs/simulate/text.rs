//! A simulation in words and tables, compared with the log.

use std::collections::BTreeMap;

use super::{By, Line, Material};
use crate::{
    text::{count, percent, share, table::Table, visible, wait},
    tools::logs::{
        simulation::{Outcome, Tally},
        statistics::{Cell, Distribution, Ends, LaunchOutcome},
    },
};

/// How many users, groups and commands are listed.
const MOST: usize = 10;

/// How many launches with another result are shown one by one.
const EXAMPLES: usize = 5;

/// The differences from the log.
#[derive(Default)]
pub(super) struct Compared {
    examples: Vec<(usize, Outcome)>,
    changes: BTreeMap<(LaunchOutcome, LaunchOutcome), u64>,
}

impl Compared {
    pub(super) fn see(&mut self, launch: usize, outcome: Outcome) {
        let Some(then) = outcome.then.filter(|then| *then != outcome.fate) else { return };
        *self.changes.entry((then, outcome.fate)).or_default() += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push((launch, outcome));
        }
    }
}

pub(super) fn all(material: &Material<'_>, draws: &[Tally], compared: &Compared) -> String {
    let Some(now) = draws.first() else { return String::new() };
    let parts = [
        head(material, now),
        overall(material, now),
        changes(material, compared, draws),
        repositories(material, now),
        rules(material, now),
        lines(material, now, "USER", By::User),
        lines(material, now, "GROUP", By::Group),
        lines(material, now, "COMMAND", By::Command),
        hours(material, now),
        doubts(material, now),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// The answer if the log does not have enough data.
pub(super) fn unknown(material: &Material<'_>, undecided: &[usize]) -> String {
    let then = &material.traffic.then;
    [
        head(material, then),
        format!(
            "unknown: whether {} of the launches would start depends on ends that are not in the log.\n{}\n",
            count(undecided.len() as u64),
            reason(material)
        ),
        doubts(material, then),
    ]
    .join("\n")
}

/// Why a result is unknown, and which setting to switch on.
pub(super) fn reason(material: &Material<'_>) -> String {
    format!(
        "The log does not tell when {} programs ended. To have ends logged, set replay = true in [log] and \
         run \"rungate end --overdue\" every few minutes (systemctl enable --now rungate-overdue.timer), or set hold = \
         \"supervisor\".",
        count(material.traffic.vague.len() as u64)
    )
}

fn head(material: &Material<'_>, now: &Tally) -> String {
    let (traffic, clock) = (material.traffic, material.clock());
    let moment = |micros: u64| std::time::UNIX_EPOCH + std::time::Duration::from_micros(micros);
    let users: std::collections::BTreeSet<u32> = traffic.kinds.iter().map(|kind| kind.uid).collect();
    format!(
        "{} launches of {} user{}, {} to {}, under {}\n",
        count(now.all.launches),
        count(users.len() as u64),
        if users.len() == 1 { "" } else { "s" },
        clock.day_and_time(moment(traffic.begin())),
        clock.day_and_time(moment(traffic.end)),
        visible(&material.arguments.tried),
    )
}

fn overall(material: &Material<'_>, now: &Tally) -> String {
    let mut table =
        Table::new(&["", ">LAUNCHES", ">AT ONCE", ">WAITED", ">REFUSED", ">50%", ">95%", ">99%", ">LONGEST"]);
    let mut row = |name: &str, cell: &Cell, waits: &Distribution| {
        let of = |part: u64| percent(share(part, cell.launches));
        table.row([
            name.to_owned(),
            count(cell.launches),
            of(cell.at_once),
            of(cell.waited),
            of(cell.refused),
            wait(waits.percentile(50.0)),
            wait(waits.percentile(95.0)),
            wait(waits.percentile(99.0)),
            wait(waits.longest),
        ]);
    };
    let then = &material.traffic.then;
    row("then", &then.all, &then.waits);
    row("now", &now.all, &now.waits);
    table.render()
}

/// The launches that are newly refused, and those that no longer are.
fn changes(material: &Material<'_>, compared: &Compared, draws: &[Tally]) -> String {
    let Some(now) = draws.first() else { return String::new() };
    if now.different == 0 {
        return "No launch has another result.\n".to_owned();
    }
    let mut text = String::new();
    for ((then, now), number) in &compared.changes {
        text.push_str(&format!("{} {} then, {} now\n", count(*number), then.word(), now.word()));
    }
    let lines = material.lines(By::User, now);
    let who = |number: fn(&Cell) -> u64| {
        let mut those: Vec<(u64, &str)> =
            lines.iter().map(|line| (number(&line.now), line.name.as_str())).collect();
        those.retain(|(number, _)| *number > 0);
        those.sort_by_key(|(number, name)| (std::cmp::Reverse(*number), *name));
        let all = those.len();
        let mut shown: Vec<String> = those
            .iter()
            .take(5)
            .map(|(number, name)| format!("{} {}", visible(*name), count(*number)))
            .collect();
        if all > shown.len() {
            shown.push(format!("and {} others", count((all - shown.len()) as u64)));
        }
        shown.join(", ")
    };
    for (what, number) in [
        ("Newly refused: ", (|cell| cell.newly_refused) as fn(&Cell) -> u64),
        ("Newly started: ", |cell| cell.newly_started),
    ] {
        if number(&now.all) > 0 {
            text.push_str(&format!("{what}{}\n", who(number)));
        }
    }
    for (launch, outcome) in &compared.examples {
        text.push_str(&example(material, *launch, *outcome));
    }
    text.push_str(&drawn(draws));
    text
}

fn example(material: &Material<'_>, launch: usize, outcome: Outcome) -> String {
    let launched = material.traffic.launches[launch];
    let kind = &material.traffic.kinds[launched.kind as usize];
    let moment = std::time::UNIX_EPOCH + std::time::Duration::from_micros(launched.arrived());
    format!(
        "  {} {} {}: {} then, {} now\n",
        material.clock().day_and_time(moment),
        visible(material.user(kind.uid)),
        visible(&kind.command),
        outcome.then.unwrap_or(outcome.fate).word(),
        outcome.fate.word(),
    )
}

/// The sampled durations, and their effect.
fn drawn(draws: &[Tally]) -> String {
    let Some(now) = draws.first().filter(|now| now.drawn > 0) else { return String::new() };
    let refused = draws.iter().map(|draw| draw.all.refused);
    let (least, most) = (refused.clone().min().unwrap_or(0), refused.max().unwrap_or(0));
    let waits = draws.iter().map(|draw| draw.waits.percentile(95.0));
    let (shortest, longest) = (waits.clone().min().unwrap_or(0), waits.max().unwrap_or(0));
    let range =
        |least: String, most: String| if least == most { least } else { format!("{least} to {most}") };
    let refused = range(count(least), count(most));
    let waited = match longest {
        0 => String::new(),
        _ => format!(", and 95% wait no longer than {}", range(wait(shortest), wait(longest))),
    };
    format!(
        "{} did not run in the log: their durations are drawn from those of the same user and command.\n\
         In {} draws {refused} are refused{waited}.\n",
        count(now.drawn),
        draws.len(),
    )
}

fn repositories(material: &Material<'_>, now: &Tally) -> String {
    if now.repositories.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        "REPOSITORY",
        ">LIMIT",
        ">LAUNCHES",
        ">AT ONCE",
        ">REFUSED",
        ">THEN",
        ">95%",
        ">99%",
        ">USED",
        ">MOST",
    ]);
    for (name, of) in &now.repositories {
        let then = material.traffic.then.repositories.get(name);
        table.row([
            visible(name),
            count(of.limit),
            count(of.cell.launches),
            percent(share(of.cell.at_once, of.cell.launches)),
            count(of.cell.refused),
            then.map_or_else(|| "-".to_owned(), |then| count(then.cell.refused)),
            wait(of.waits.percentile(95.0)),
            wait(of.waits.percentile(99.0)),
            format!("{:.1}", used(material, of.slot_time)),
            count(of.most),
        ]);
    }
    table.render()
}

/// How many slots were held on average.
#[expect(clippy::cast_precision_loss, reason = "an average")]
pub(super) fn used(material: &Material<'_>, slot_time: u128) -> f64 {
    let traffic = material.traffic;
    slot_time as f64 / traffic.end.saturating_sub(traffic.begin()).max(1) as f64
}

fn rules(material: &Material<'_>, now: &Tally) -> String {
    let then = &material.traffic.then.rules;
    let names: std::collections::BTreeSet<&String> = then.keys().chain(now.rules.keys()).collect();
    if names.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["RULE", ">REFUSED THEN", ">NOW"]);
    for name in names {
        let of = |rules: &BTreeMap<String, u64>| rules.get(name).copied().unwrap_or(0);
        table.row([visible(name), count(of(then)), count(of(&now.rules))]);
    }
    table.render()
}

fn lines(material: &Material<'_>, now: &Tally, title: &str, by: By) -> String {
    let lines = material.lines(by, now);
    let mut table = table_of_cells(title);
    for Line { name, then, now } in lines.iter().take(MOST) {
        table.row(cells(visible(name), then, now));
    }
    let left = lines.len().saturating_sub(MOST);
    let rest = if left > 0 { format!(" ... {} more (--json)\n", count(left as u64)) } else { String::new() };
    if lines.is_empty() { rest } else { table.render() + &rest }
}

fn hours(material: &Material<'_>, now: &Tally) -> String {
    let mut table = table_of_cells("HOUR");
    for (hour, (then, now)) in material.traffic.then.hours.iter().zip(&now.hours).enumerate() {
        if then.launches + now.launches > 0 {
            table.row(cells(format!("{hour:02}"), then, now));
        }
    }
    table.render()
}

fn table_of_cells(title: &str) -> Table {
    Table::new(&[title, ">LAUNCHES", ">REFUSED THEN", ">NOW", ">WAITED THEN", ">NOW", ">MEAN WAIT"])
}

fn cells(name: String, then: &Cell, now: &Cell) -> [String; 7] {
    [
        name,
        count(now.launches),
        count(then.refused),
        count(now.refused),
        count(then.waited),
        count(now.waited),
        wait(now.mean_wait()),
    ]
}

/// For a repository that takes use outside rungate into account, if the log has no sample of it.
pub(super) fn unmeasured(repository: &str) -> String {
    format!(
        "Use of {} outside rungate is not in the log: the simulation assumes that there was none.\n\
         To have it logged, set replay = true in [log] and run rungate-measure.service.\n",
        visible(repository)
    )
}

/// Whether the log has the use outside rungate, for each repository that takes it into account.
pub(super) fn outside(material: &Material<'_>) -> String {
    let sentence = |name: String, samples: u64| match samples {
        0 => unmeasured(&name),
        samples => format!(
            "Use of {} outside rungate: {} sample{} of the log.\n",
            visible(&name),
            count(samples),
            if samples == 1 { "" } else { "s" }
        ),
    };
    material.samples().map(|(name, samples)| sentence(name, samples)).collect()
}

/// The gaps of the log.
fn doubts(material: &Material<'_>, _now: &Tally) -> String {
    let traffic = material.traffic;
    let mut text = String::new();
    let ends = traffic.ends;
    let Ends { exact, bounded, missed, running } = ends;
    text.push_str(&format!(
        "Ends: {} to the second, {} within bounds, {} not seen, {} after the end of the log.\n",
        count(exact),
        count(bounded),
        count(missed),
        count(running)
    ));
    if traffic.untold > 0 {
        text.push_str(&format!(
            "Of {} launches the log has only user and command (see [log] replay).\n",
            count(traffic.untold)
        ));
    }
    text.push_str(&outside(material));
    if let Some(name) = &traffic.of_each_host {
        text.push_str(&format!(
            "Two hosts held one slot of {} at the same time: it is one for each host. Try --each-host.\n",
            visible(name)
        ));
    }
    text
}
