//! `--limit matlab=8..16`: the result for each limit of a repository, and the answer in a sentence.

use std::{cell::RefCell, collections::BTreeMap};

use super::{
    By, Material,
    text::{self, reason, used},
    usage,
};
use crate::{
    cli::SimulateArguments,
    policy::{HIGHEST_LIMIT, Policy, Repository},
    text::{Clock, Error, Show, count, percent, table::Table, visible, wait},
    tools::logs::{
        simulation::{
            OfRepository, Row, Tally, Trial,
            sweep::{in_parallel, seats_for},
        },
        statistics::{Cell, seconds},
    },
};
use serde_json::{Map, Value, json};

/// The share that must start at once, by default.
const GOOD: f64 = 0.99;

/// Which limits are tried.
pub(super) struct Sweep {
    name: String,
    lowest: u32,
    highest: u32,
    share: f64,
    /// Whether one limit is searched, instead of printing all.
    is_search: bool,
}

/// Its result.
pub(super) struct Swept {
    name: String,
    rows: Vec<Row>,
    share: f64,
}

impl Sweep {
    /// Reads `matlab=8..16`.
    pub(super) fn read(text: &str, arguments: &SimulateArguments) -> Result<Self, Error> {
        let wrong = || {
            usage(format!(
                "--limit takes a repository and its limits, as matlab=8..16, not \"{}\"",
                text.shown()
            ))
        };
        let (name, range) = text.split_once('=').ok_or_else(wrong)?;
        let (lowest, highest) = range.split_once("..").unwrap_or((range, range));
        let number = |text: &str| {
            text.trim_start_matches('=').parse::<u32>().ok().filter(|limit| *limit <= HIGHEST_LIMIT)
        };
        let (Some(lowest), Some(highest)) = (number(lowest), number(highest)) else { return Err(wrong()) };
        if lowest > highest {
            return Err(wrong());
        }
        let share = arguments.seats_for.as_deref().map(percentage).transpose()?;
        Ok(Self {
            name: name.to_owned(),
            lowest,
            highest,
            share: share.unwrap_or(GOOD),
            is_search: share.is_some(),
        })
    }

    /// Returns whether the policy has the repository.
    pub(super) fn check(&self, policy: &Policy) -> Result<(), Error> {
        let names: Vec<&str> = policy.repositories().iter().map(Repository::shown_name).collect();
        if names.contains(&self.name.as_str()) {
            return Ok(());
        }
        let known: Vec<String> = names.into_iter().map(visible).collect();
        Err(usage(format!("the policy has no repository \"{}\"", self.name.shown()))
            .advise(format!("It has: {}", known.join(", "))))
    }

    /// Simulates each limit; in a search only the necessary ones.
    pub(super) fn play(
        &self,
        trial: &Trial<'_>,
        load: &impl Fn() -> Result<Policy, Error>,
    ) -> Result<Swept, Error> {
        let with = |limit: u32| {
            let policy = load()?.with_limit(&self.name, limit);
            policy.ok_or_else(|| usage(format!("the policy has no repository \"{}\"", self.name.shown())))
        };
        let row = |limit: u32, policy: &Policy| {
            let (tally, undecided) = trial.play_in_doubt(policy);
            Row::of(limit, &self.name, &tally, trial.traffic, undecided.is_empty())
        };
        let mut rows: BTreeMap<u32, Row> = BTreeMap::new();
        if self.is_search {
            let failed = RefCell::new(None);
            let found = seats_for(self.share, (self.lowest, self.highest), |limit| {
                let known = rows.get(&limit).cloned();
                let played = known.map_or_else(|| with(limit).map(|policy| row(limit, &policy)), Ok);
                let played = played.unwrap_or_else(|error| {
                    failed.borrow_mut().get_or_insert(error);
                    Row::of(limit, &self.name, &trial.traffic.then, trial.traffic, true)
                });
                rows.insert(limit, played.clone());
                played
            });
            if let Some(error) = failed.into_inner() {
                return Err(error);
            }
            // The answer also shows the cost of one seat less.
            if let Some(less) =
                found.and_then(|found| found.checked_sub(1)).filter(|less| *less >= self.lowest)
                && !rows.contains_key(&less)
            {
                rows.insert(less, row(less, &with(less)?));
            }
        } else {
            let policies = (self.lowest..=self.highest)
                .map(|limit| Ok((limit, with(limit)?)))
                .collect::<Result<Vec<_>, Error>>()?;
            let played = in_parallel(&policies, |(limit, policy)| row(*limit, policy));
            rows.extend(played.into_iter().map(|row| (row.limit, row)));
        }
        Ok(Swept { name: self.name.clone(), rows: rows.into_values().collect(), share: self.share })
    }
}

fn percentage(text: &str) -> Result<f64, Error> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    number
        .filter(|number| (0.0..=100.0).contains(number))
        .map(|number| number / 100.0)
        .ok_or_else(|| usage(format!("--seats-for takes a share such as 99%, not \"{}\"", text.shown())))
}

impl Swept {
    /// As a table, with the answer below.
    pub(super) fn to_text(&self, material: &Material<'_>) -> String {
        let launches = self.rows.first().map_or(0, |row| row.launches);
        let mut table = Table::new(&[
            ">LIMIT",
            ">AT ONCE",
            ">REFUSED",
            ">50%",
            ">95%",
            ">99%",
            ">LONGEST",
            ">USED",
            ">MOST",
            ">OVER 5M/DAY",
        ]);
        for row in &self.rows {
            if !row.is_known {
                let unknown = ["unknown", "unknown"].into_iter().chain(["-"; 7]).map(str::to_owned);
                table.row(std::iter::once(count(row.limit.into())).chain(unknown));
                continue;
            }
            table.row([
                count(row.limit.into()),
                percent(row.at_once),
                percent(row.refused),
                wait(row.waits.p50),
                wait(row.waits.p95),
                wait(row.waits.p99),
                wait(row.waits.longest),
                percent_of(row.used, row.limit),
                count(row.most),
                rate(row.long_waits),
            ]);
        }
        format!(
            "{}: {} launches in {} days\n{}{}\n",
            visible(&self.name),
            count(launches),
            rate(material.traffic.days()),
            table.render(),
            self.answer(material)
        ) + &text::outside(material)
    }

    fn answer(&self, material: &Material<'_>) -> String {
        if self.rows.iter().any(|row| !row.is_known) {
            return text::reason(material);
        }
        let wanted = percent_wanted(self.share);
        let Some(place) = self.rows.iter().position(|row| row.at_once >= self.share) else {
            let best = self.rows.last();
            return best.map_or_else(String::new, |best| {
                format!(
                    "None of these limits starts {wanted} at once; {} start {}.",
                    count(best.limit.into()),
                    percent(best.at_once)
                )
            });
        };
        let enough = &self.rows[place];
        let seats = |limit: u32| {
            if limit == 1 {
                "1 seat starts".to_owned()
            } else {
                format!("{} seats start", count(limit.into()))
            }
        };
        let fewer = place.checked_sub(1).map(|fewer| &self.rows[fewer]);
        let cost = fewer.map(|fewer| match (fewer.long_waits, fewer.refusals) {
            (waits, refused) if refused > waits => {
                format!("; {} cost {} refusals a day", count(fewer.limit.into()), rate(refused))
            }
            (waits, _) if waits > 0.0 => {
                format!("; {} cost {} waits over 5 minutes a day", count(fewer.limit.into()), rate(waits))
            }
            _ => format!("; {} start {}", count(fewer.limit.into()), percent(fewer.at_once)),
        });
        format!("{} {wanted} at once{}.", seats(enough.limit), cost.unwrap_or_default())
    }

    /// For scripts.
    pub(super) fn to_json(&self, material: &Material<'_>) -> Value {
        let row = |row: &Row| {
            if !row.is_known {
                return json!({ "limit": row.limit, "launches": row.launches });
            }
            json!({
                "limit": row.limit,
                "launches": row.launches,
                "at_once": row.at_once,
                "refused": row.refused,
                "wait_seconds": row.waits,
                "used": row.used,
                "most": row.most,
                "waits_over_5_minutes_a_day": row.long_waits,
                "refusals_a_day": row.refusals,
            })
        };
        let is_known = self.rows.iter().all(|row| row.is_known);
        let enough = self.rows.iter().find(|row| is_known && row.at_once >= self.share);
        json!({
            "repository": self.name,
            "days": material.traffic.days(),
            "share": self.share,
            "seats": enough.map(|row| row.limit),
            "limits": self.rows.iter().map(row).collect::<Vec<_>>(),
            "answer": self.answer(material),
        })
    }
}

fn percent_wanted(share: f64) -> String {
    // 0.29 * 100 is 28.999999999999996.
    format!("{}%", (share * 100.0 * 1e6).round() / 1e6)
}

fn percent_of(used: f64, limit: u32) -> String {
    if limit == 0 { "-".to_owned() } else { percent(used / f64::from(limit)) }
}

/// A number per day.
fn rate(number: f64) -> String {
    match number {
        0.0 => "0".to_owned(),
        small if small < 10.0 => format!("{small:.1}"),
        large => format!("{large:.0}"),
    }
}

// A simulation as JSON: the same numbers, for scripts. Waits are in seconds, moments in RFC 3339.

/// How many users, groups and commands there are at most.
const MOST: usize = 200;

pub(super) fn all(material: &Material<'_>, draws: &[Tally]) -> Value {
    let Some(now) = draws.first() else { return Value::Null };
    let traffic = material.traffic;
    json!({
        "from": Clock::stamp_of_micros(traffic.begin()),
        "until": Clock::stamp_of_micros(traffic.end),
        "then": tally(material, &traffic.then),
        "now": tally(material, now),
        "different": now.different,
        "users": lines(material, By::User, now),
        "groups": lines(material, By::Group, now),
        "commands": lines(material, By::Command, now),
        "draws": draws.iter().map(draw).collect::<Vec<_>>(),
        "ends": traffic.ends,
        "untold": traffic.untold,
        "outside": material.samples().collect::<BTreeMap<_, _>>(),
        "of_each_host": traffic.of_each_host,
    })
}

/// The remaining part if the log does not have enough data.
pub(super) fn unknown(material: &Material<'_>, undecided: &[usize]) -> Value {
    let traffic = material.traffic;
    json!({
        "from": Clock::stamp_of_micros(traffic.begin()),
        "until": Clock::stamp_of_micros(traffic.end),
        "then": tally(material, &traffic.then),
        "now": null,
        "unknown": reason(material),
        "undecided": undecided.len(),
        "ends": traffic.ends,
    })
}

fn draw(tally: &Tally) -> Value {
    json!({ "drawn": tally.drawn, "all": cell(&tally.all), "waits": tally.waits.percentiles() })
}

fn tally(material: &Material<'_>, tally: &Tally) -> Value {
    let repositories: Map<String, Value> =
        tally.repositories.iter().map(|(name, of)| (name.clone(), repository(material, of))).collect();
    json!({
        "all": cell(&tally.all),
        "waits": tally.waits.percentiles(),
        "repositories": repositories,
        "rules": tally.rules,
        "hours": tally.hours.iter().map(cell).collect::<Vec<_>>(),
    })
}

fn repository(material: &Material<'_>, of: &OfRepository) -> Value {
    let mut value = cell(&of.cell);
    value["limit"] = json!(of.limit);
    value["most"] = json!(of.most);
    value["waits"] = json!(of.waits.percentiles());
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
