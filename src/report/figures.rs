//! What is shown of a census: each figure with a sentence, a drawing where there is something to draw, and
//! always the table behind it.

use std::{collections::HashMap, hash::Hash};

use jiff::{Timestamp, tz::TimeZone};

use super::{
    census::{Census, HOUR, Repository},
    figure::Figure,
    plot::{OverTime, bars, over_time, week},
    suggestions::suggestions,
};
use crate::{
    output::figures::{count, percent, share, wait},
    simulation::{tally::Cell, waits::Waits},
};

/// What numbers are called.
pub struct Called<'a> {
    /// The name of a user.
    pub user: &'a dyn Fn(u32) -> String,
    /// The name of a group.
    pub group: &'a dyn Fn(u32) -> String,
    /// What the author of a rule has to say.
    pub message: &'a dyn Fn(&str) -> Option<String>,
    /// How clocks tell the time.
    pub zone: TimeZone,
}

/// How many points a line has at most: more could not be told apart.
const POINTS: u64 = 220;

/// How many rows a list has.
const LISTED: usize = 15;

/// All figures.
pub fn figures(census: &Census, called: &Called<'_>) -> Vec<Figure> {
    let mut figures = vec![overview(census)];
    let used = census.repositories.iter().filter(|(_, of)| of.cell.launches > 0);
    figures.extend(used.map(|(name, of)| use_of(name, of, census, called)));
    figures.push(by_hour("refused", "Refusals by weekday and hour", "refused", &census.refused));
    figures.push(by_hour("waited", "Waits by weekday and hour", "waited", &census.waited));
    figures.push(distribution("waits", "How long launches waited", "Of those that started", &census.waits));
    figures.push(distribution("runs", "How long programs ran", "Of those whose end is known", &census.runs));
    figures.push(top("users", "Users", &census.users, called.user));
    figures.push(top("groups", "Groups", &census.groups, called.group));
    figures.push(top_commands(census));
    figures.push(rules(census, called));
    figures.push(unprotected(census));
    figures.push(suggestions(census));
    figures.retain(|figure| !figure.rows.is_empty());
    figures
}

fn overview(census: &Census) -> Figure {
    let Cell { launches, at_once, waited, refused, .. } = census.all;
    let of = |part: u64| percent(share(part, launches));
    let row = |what: &str, number: String| vec![what.to_owned(), number];
    Figure {
        id: "overview".to_owned(),
        title: "Overview".to_owned(),
        says: format!("{} started at once, {} waited, {} refused.", of(at_once), of(waited), of(refused)),
        drawing: None,
        head: vec!["What", "Number"],
        rows: vec![
            row("Launches", count(launches)),
            row("Started at once", count(at_once)),
            row("Started after a wait", count(waited)),
            row("Refused", count(refused)),
            row("Users", count(census.users.len() as u64)),
            row("Commands", count(census.commands.len() as u64)),
            row("95% waited no longer than", wait(census.waits.percentile(95.0))),
            row("99% waited no longer than", wait(census.waits.percentile(99.0))),
            row("Overdue holders ended", count(census.expired)),
        ],
    }
}

/// What one point of a line is made of.
struct Point {
    from: u64,
    average: f64,
    most: u64,
    limit: u64,
    refused: u64,
    kept: u64,
    lent: u64,
}

#[expect(clippy::cast_precision_loss, reason = "averages and places in a drawing")]
fn use_of(name: &str, of: &Repository, census: &Census, called: &Called<'_>) -> Figure {
    let (begin, end) = census.span.unwrap_or_default();
    let (first, last) = (begin / HOUR, end / HOUR);
    let step = ((last - first) / POINTS + 1).max(1);
    let mut points = Vec::new();
    for from in (first..=last).step_by(usize::try_from(step).unwrap_or(1)) {
        let hours = || of.hours.range(from..from + step).map(|(_, hour)| hour);
        let length = ((from + step) * HOUR).min(end).saturating_sub((from * HOUR).max(begin)).max(1);
        let slot_time: u64 = hours().map(|hour| hour.slot_time).sum();
        points.push(Point {
            from,
            average: slot_time as f64 / length as f64,
            most: hours().map(|hour| hour.most).max().unwrap_or(0),
            limit: hours().map(|hour| hour.limit).max().unwrap_or(0),
            refused: hours().map(|hour| hour.refused).sum(),
            kept: hours().map(|hour| hour.kept).max().unwrap_or(0),
            lent: hours().map(|hour| hour.lent).sum(),
        });
    }
    let limit = of.limit();
    let label = |seconds: f64| {
        local(seconds, called, if end - begin > 3 * 24 * HOUR { "%-d %b" } else { "%a %H:%M" })
    };
    let line: Vec<(f64, f64, f64)> =
        points.iter().map(|point| ((point.from * 3600) as f64, point.average, point.most as f64)).collect();
    let drawing =
        over_time(&OverTime { points: &line, limit: (limit > 0).then_some(limit as f64), label: &label });
    let all: f64 = of.hours.values().map(|hour| hour.slot_time as f64).sum();
    let average = all / (end - begin).max(1) as f64;
    let full = of.hours.values().filter(|hour| limit > 0 && hour.most >= limit).count();
    let has_reserved = points.iter().any(|point| point.kept > 0 || point.lent > 0);
    let row = |point: &Point| {
        let mut row = vec![
            local((point.from * 3600) as f64, called, "%Y-%m-%d %H:%M"),
            format!("{:.1}", point.average),
            count(point.most),
            if point.limit > 0 { count(point.limit) } else { "-".to_owned() },
            count(point.refused),
        ];
        if has_reserved {
            row.extend([count(point.kept), count(point.lent)]);
        }
        row
    };
    let mut head = vec!["From", "Average", "Most", "Limit", "Refused"];
    if has_reserved {
        head.extend(["Kept idle", "Lent"]);
    }
    Figure {
        id: format!("use-{}", of_letters(name)),
        title: format!("Use of {name}"),
        says: format!(
            "{average:.1} on average and {} at most{}; {} of {} launches refused.{}{}",
            count(of.most()),
            if limit > 0 { format!(" of {}", count(limit)) } else { String::new() },
            count(of.cell.refused),
            count(of.cell.launches),
            if full > 0 {
                format!(" All were held at some time in {} hours.", count(full as u64))
            } else {
                String::new()
            },
            if has_reserved {
                let lent: u64 = points.iter().map(|point| point.lent).sum();
                let kept = points.iter().map(|point| point.kept).max().unwrap_or(0);
                format!(" Up to {} were idle and kept for some, {} were lent.", count(kept), count(lent))
            } else {
                String::new()
            },
        ),
        drawing,
        head,
        rows: points.iter().map(row).collect(),
    }
}

fn local(seconds: f64, called: &Called<'_>, form: &str) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
    let moment = Timestamp::from_second(seconds as i64).unwrap_or_default();
    moment.to_zoned(called.zone.clone()).strftime(form).to_string()
}

fn by_hour(id: &str, title: &str, what: &str, counts: &[[u64; 24]; 7]) -> Figure {
    const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let all: u64 = counts.iter().flatten().sum();
    let busiest = (0..7)
        .flat_map(|day| (0..24).map(move |hour| (day, hour)))
        .max_by_key(|(day, hour)| counts[*day][*hour]);
    let rows = |(day, hours): (usize, &[u64; 24])| {
        [DAYS[day].to_owned()].into_iter().chain(hours.iter().map(|number| count(*number))).collect()
    };
    let says = busiest.map_or_else(String::new, |(day, hour)| {
        format!("{} {what}, most of them on {} from {hour:02} to {:02}.", count(all), DAYS[day], hour + 1)
    });
    Figure {
        id: format!("hours-{id}"),
        title: title.to_owned(),
        says,
        drawing: week(counts),
        head: vec![
            "Day", "00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14",
            "15", "16", "17", "18", "19", "20", "21", "22", "23",
        ],
        rows: if all == 0 { Vec::new() } else { counts.iter().enumerate().map(rows).collect() },
    }
}

/// The classes that people think in, in seconds.
const CLASSES: [(u64, &str); 11] = [
    (1, "<1s"),
    (10, "10s"),
    (60, "1m"),
    (300, "5m"),
    (900, "15m"),
    (3600, "1h"),
    (4 * 3600, "4h"),
    (12 * 3600, "12h"),
    (24 * 3600, "1d"),
    (7 * 24 * 3600, "7d"),
    (u64::MAX / 1_000_000, "more"),
];

fn distribution(id: &str, title: &str, whose: &str, waits: &Waits) -> Figure {
    let mut counts = [0u64; CLASSES.len()];
    for (longest, number) in waits.classes() {
        let class = CLASSES
            .iter()
            .position(|(seconds, _)| longest < seconds * 1_000_000)
            .unwrap_or(CLASSES.len() - 1);
        counts[class] += number;
    }
    #[expect(clippy::cast_precision_loss, reason = "places in a drawing")]
    let drawn: Vec<(String, f64)> =
        CLASSES.iter().zip(counts).map(|((_, word), number)| ((*word).to_owned(), number as f64)).collect();
    let percentile = |percent: f64| wait(waits.percentile(percent));
    let row = |((_, word), number): (&(u64, &str), u64)| {
        let word = if *word == "more" || word.starts_with('<') {
            (*word).to_owned()
        } else {
            format!("up to {word}")
        };
        vec![word, count(number), percent(share(number, waits.count))]
    };
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        says: format!(
            "{whose} half were done within {}, 95% within {}, 99% within {}, the longest within {}.",
            percentile(50.0),
            percentile(95.0),
            percentile(99.0),
            wait(waits.longest)
        )
        .replace("within -", "at once"),
        drawing: (waits.count > 0).then(|| bars(&drawn)).flatten(),
        head: vec!["Length", "Launches", "Share"],
        rows: if waits.count == 0 { Vec::new() } else { CLASSES.iter().zip(counts).map(row).collect() },
    }
}

fn top<K: Copy + Eq + Hash + Ord>(
    id: &str,
    title: &str,
    cells: &HashMap<K, Cell>,
    name: &dyn Fn(K) -> String,
) -> Figure {
    let mut sorted: Vec<(K, &Cell)> = cells.iter().map(|(key, cell)| (*key, cell)).collect();
    sorted.sort_unstable_by_key(|(key, cell)| (std::cmp::Reverse(cell.launches), *key));
    list(id, title, sorted.len(), sorted.into_iter().take(LISTED).map(|(key, cell)| (name(key), cell)))
}

fn top_commands(census: &Census) -> Figure {
    let mut sorted: Vec<(&String, &Cell)> = census.commands.iter().collect();
    sorted.sort_unstable_by_key(|(name, cell)| (std::cmp::Reverse(cell.launches), *name));
    list(
        "commands",
        "Commands",
        sorted.len(),
        sorted.into_iter().take(LISTED).map(|(name, cell)| (name.clone(), cell)),
    )
}

fn list<'c>(id: &str, title: &str, all: usize, cells: impl Iterator<Item = (String, &'c Cell)>) -> Figure {
    let row = |(name, cell): (String, &Cell)| {
        vec![
            name,
            count(cell.launches),
            count(cell.refused),
            percent(share(cell.refused, cell.launches)),
            count(cell.waited),
            wait(cell.wait.checked_div(cell.waited).unwrap_or(0)),
        ]
    };
    let rows: Vec<Vec<String>> = cells.map(row).collect();
    let says = match rows.first() {
        Some(first) => {
            format!("{} starts most, {} of the launches; {} in all.", first[0], first[1], count(all as u64))
        }
        None => String::new(),
    };
    let head = vec!["Name", "Launches", "Refused", "Share", "Waited", "Mean wait"];
    Figure { id: id.to_owned(), title: title.to_owned(), says, drawing: None, head, rows }
}

fn rules(census: &Census, called: &Called<'_>) -> Figure {
    let mut sorted: Vec<_> = census.rules.iter().filter(|(_, rule)| rule.refused > 0).collect();
    sorted.sort_unstable_by_key(|(name, rule)| (std::cmp::Reverse(rule.refused), *name));
    let row = |(name, rule): &(&String, &super::census::Rule)| {
        let message = (called.message)(name).unwrap_or_default();
        vec![(*name).clone(), count(rule.refused), count(rule.denied), message]
    };
    Figure {
        id: "rules".to_owned(),
        title: "Refusals by rule".to_owned(),
        says: sorted.first().map_or_else(String::new, |(name, rule)| {
            format!("\"{name}\" refused most: {} launches.", count(rule.refused))
        }),
        drawing: None,
        head: vec!["Rule", "Refused", "Denied", "What it says"],
        rows: sorted.iter().map(row).collect(),
    }
}

fn unprotected(census: &Census) -> Figure {
    let rows = census.rules.iter().filter(|(_, rule)| rule.would_refuse > 0);
    Figure {
        id: "unenforced".to_owned(),
        title: "What is not enforced".to_owned(),
        says: format!(
            "{} launches started that would have been refused, were everything enforced.",
            count(census.unenforced)
        ),
        drawing: None,
        head: vec!["Rule", "Would have refused"],
        rows: rows.map(|(name, rule)| vec![name.clone(), count(rule.would_refuse)]).collect(),
    }
}

/// What may stand in a link.
fn of_letters(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}
