//! The report on a log: each figure has a sentence, a chart if possible, and its table.

use std::{cmp::Reverse, collections::BTreeMap};

use jiff::{Timestamp, tz::TimeZone};

use super::programs::{Program, bounds};
use crate::{
    text::{count, percent, share, wait},
    tools::logs::statistics::{Bounded, Counts, Distribution, MINUTE, Party, Rule, Step},
};

/// The units of numbers.
pub struct Called<'a> {
    /// The name of a user.
    pub user: &'a dyn Fn(u32) -> String,
    /// The name of a group.
    pub group: &'a dyn Fn(u32) -> String,
    /// The message of a rule's author.
    pub message: &'a dyn Fn(&str) -> Option<String>,
    /// The format of times.
    pub zone: TimeZone,
}

/// How many rows a list has.
const LISTED: usize = 15;

/// In microseconds.
const DAY: u64 = 1440 * MINUTE;

/// Beyond this number of days each point of a drawing is a day: hours would be a row of spikes.
const DAILY: u64 = 10;

/// The columns of the first table.
pub const HEAD: [Column; 10] = [
    words("Program"),
    numbers("Seats"),
    numbers("Most in use"),
    numbers("Refused"),
    numbers("Waited"),
    numbers("Launches"),
    numbers("Time full"),
    numbers("Average"),
    numbers("95% waited up to"),
    numbers("Longest"),
];

/// The main table: one row for each program.
pub fn answer(programs: &[Program<'_>], more: usize) -> Figure {
    let says = match (programs.first(), more) {
        (None, _) => "No program requested a slot.".to_owned(),
        (Some(worst), 0) if worst.of.cell.refused + worst.of.cell.waited == 0 => {
            "Every launch started at once.".to_owned()
        }
        (Some(_), 0) => "The worst first.".to_owned(),
        (Some(_), more) => format!("The worst first; {} more are not listed.", count(more as u64)),
    };
    Figure {
        id: "programs".to_owned(),
        title: "Programs".to_owned(),
        says,
        drawing: None,
        columns: HEAD.to_vec(),
        rows: programs.iter().map(Program::row).collect(),
    }
}

/// Use over time of each program.
pub fn uses(counts: &Counts, programs: &[Program<'_>], called: &Called<'_>) -> Vec<Figure> {
    let used = programs.iter().filter(|program| program.of.cell.launches > 0);
    used.map(|program| use_of(program, counts, called)).collect()
}

/// Everything else.
pub fn details(counts: &Counts, programs: &[Program<'_>], called: &Called<'_>) -> Vec<Figure> {
    let mut figures = vec![suggested(programs)];
    // The use over time shows the hours of less than a day.
    if counts.closing.span.is_some_and(|(begin, end)| end - begin >= DAY) {
        figures.push(by_hour("refused", "Refusals by weekday and hour", "refused", &counts.refused));
        figures.push(by_hour("waited", "Waits by weekday and hour", "waited", &counts.waited));
    }
    figures.extend([
        waits(counts),
        runs(counts),
        top("users", "Users", "User", &counts.users, called.user),
        groups(counts, called),
        top("commands", "Commands", "Command", &counts.commands, &|name: String| name),
        rules(counts, called),
        unenforced(counts),
    ]);
    figures.retain(|figure| !figure.rows.is_empty() || !figure.says.is_empty());
    figures
}

/// The gaps of the log, in sentences.
pub fn doubts(counts: &Counts) -> Vec<String> {
    let ends = counts.ends;
    let mut doubts = Vec::new();
    if ends.missed > 0 {
        doubts.push(format!(
            "The log does not tell when {} of {} programs ended, so that use has bounds: \"1–3\" is at least 1 and at most 3. To \
             have ends logged, set replay = true in [log] and run \"rungate end --overdue\" every few minutes, or set hold = \
             \"supervisor\".",
            count(ends.missed),
            count(ends.exact + ends.bounded + ends.missed + ends.running)
        ));
    }
    let whose = match counts.closing.started_before {
        0 if counts.closing.is_cut && counts.all.launches > 0 => Some("programs".to_owned()),
        0 => None,
        1 => Some("1 program".to_owned()),
        more => Some(format!("{} programs", count(more))),
    };
    let before = if counts.closing.is_cut { "--since" } else { "the log begins" };
    doubts.extend(whose.map(|whose| {
        format!(
            "The slots of {whose} that started before {before} are in no figure: use may have been higher."
        )
    }));
    if counts.untold > 0 && counts.untold == counts.all.launches {
        doubts.push("Limits and groups are in a log with replay = true only.".to_owned());
    }
    if let Some(name) = &counts.closing.of_each_host {
        doubts
            .push(format!("Two hosts held one slot of {name} at the same time: each has seats of its own."));
    }
    if counts.closing.impossible > 0 {
        doubts.push(format!(
            "{} events with an impossible time were left out.",
            count(counts.closing.impossible)
        ));
    }
    for (what, is_more) in [
        ("repositories", counts.repositories.others.is_some()),
        ("rules", counts.rules.others.is_some()),
        ("users", counts.users.others.is_some()),
        ("commands", counts.commands.others.is_some()),
    ] {
        if is_more {
            doubts.push(format!(
                "The log has more {what} than are counted by name; the others count only in the totals."
            ));
        }
    }
    doubts
}

fn use_of(program: &Program<'_>, counts: &Counts, called: &Called<'_>) -> Figure {
    let (begin, end) = counts.closing.span.unwrap_or_default();
    let usage = &program.of.usage;
    let step = if end - begin > DAILY * DAY { counts.step().max(DAY) } else { counts.step() };
    let mut steps = usage.timeline.clone();
    steps.widen(step);
    let known: BTreeMap<u64, Step> = steps.steps().map(|(from, step)| (from, *step)).collect();
    let moments: Vec<u64> = (begin / step..=end / step).map(|number| number * step).collect();
    let of = |from: &u64| known.get(from).copied().unwrap_or_default();
    // The sum over all members is not the use of one member's seats.
    let has_members = usage.has_members;
    let peak = |of: &Step| if has_members { of.most } else { of.peak() };
    let average = |from: u64, of: &Step| {
        program.average?;
        let length = (from + step).min(end).saturating_sub(from.max(begin)).max(1);
        #[expect(clippy::cast_precision_loss, reason = "an average")]
        let average = of.slot_time as f64 / length as f64;
        // The log may break off within a step.
        Some(if has_members { average } else { average.min(usize_to_f64(of.peak())) })
    };
    let points = moments.iter().map(|from| {
        let of = of(from);
        Point { average: average(*from, &of).filter(|_| !has_members), most: peak(&of) }
    });
    let drawing = Use {
        points: points.collect(),
        seats: program.seats,
        labels: labels(begin, end, called),
        is_of_members: has_members,
        has_bounds: !usage.is_known(),
        step: length_of(step),
    };
    let has_reserved = known.values().any(|step| step.kept > 0 || step.lent > 0);
    let row = |from: &u64| {
        let of = of(from);
        let mut row = vec![
            local(*from, called, "%Y-%m-%d %H:%M"),
            average(*from, &of).map_or_else(|| "unknown".to_owned(), |average| format!("{average:.1}")),
            count(peak(&of)),
            if of.limit > 0 { count(of.limit) } else { "-".to_owned() },
            count(of.started),
            count(of.refused),
            count(of.waited),
        ];
        if has_reserved {
            row.extend([count(of.kept), count(of.lent)]);
        }
        row
    };
    let mut columns = vec![
        words("From"),
        numbers("Average"),
        numbers("Most"),
        numbers("Limit"),
        numbers("Started"),
        numbers("Refused"),
        numbers("Waited"),
    ];
    if has_reserved {
        columns.extend([numbers("Kept idle"), numbers("Lent")]);
    }
    let reserved = if has_reserved {
        let lent: u64 = known.values().map(|step| step.lent).sum();
        let kept = known.values().map(|step| step.kept).max().unwrap_or(0);
        format!(" Up to {} were kept idle for some users, {} were lent.", count(kept), count(lent))
    } else {
        String::new()
    };
    Figure {
        id: format!("use-{}", of_letters(program.name)),
        title: format!("Use of {}", program.name),
        says: sentence(program) + &reserved,
        drawing: Some(Drawing::Use(drawing)),
        columns,
        rows: moments.iter().map(row).collect(),
    }
}

/// The text of a program's chart.
fn sentence(program: &Program<'_>) -> String {
    let cell = &program.of.cell;
    let average = match program.average {
        None => "The average use is unknown;".to_owned(),
        Some(average) => {
            let all = if program.of.usage.has_members { " over all members" } else { "" };
            format!("{} on average{all},", bounds(average, |number| format!("{number:.1}")))
        }
    };
    let each = if program.of.usage.has_members { " of one member" } else { "" };
    let seats = program.seats.map_or_else(String::new, |seats| format!(" of {}", count(seats)));
    let refused = if cell.refused > 0 {
        format!(" {} of {} launches refused.", count(cell.refused), count(cell.launches))
    } else {
        " No launch was refused.".to_owned()
    };
    format!("{average} {}{seats} at most{each}.{refused}", bounds(program.most, count))
}

fn usize_to_f64(number: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a number of slots")]
    let number = number as f64;
    number
}

/// `hour`, `5 minutes`.
fn length_of(step: u64) -> String {
    let several = |number: u64, one: &str| match number {
        1 => one.to_owned(),
        number => format!("{} {one}s", count(number)),
    };
    match step / MINUTE {
        minutes @ 0..60 => several(minutes, "minute"),
        minutes @ 60..1440 => several(minutes / 60, "hour"),
        minutes => several(minutes / 1440, "day"),
    }
}

/// Labels below a drawing: no two the same, the first and the last with their year.
fn labels(begin: u64, end: u64, called: &Called<'_>) -> Vec<String> {
    let length = end - begin;
    let (edge, between) = match length {
        0..60_000_000 => ("%-d %b %Y %H:%M:%S", "%H:%M:%S"),
        _ if length <= DAY => ("%-d %b %Y %H:%M", "%H:%M"),
        _ if length <= 4 * DAY => ("%-d %b %Y %H:%M", "%a %H:%M"),
        _ => ("%-d %b %Y", "%-d %b"),
    };
    let first = local(begin, called, edge);
    let last = local(end, called, edge);
    if first == last {
        return vec![first];
    }
    let middle = local(begin + length / 2, called, between);
    vec![first, middle, last]
}

fn local(micros: u64, called: &Called<'_>, form: &str) -> String {
    let moment = i64::try_from(micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    moment.unwrap_or_default().to_zoned_datetime(called.zone.clone()).strftime(form).to_string()
}

fn suggested(programs: &[Program<'_>]) -> Figure {
    let row = |program: &Program<'_>| -> Vec<Vec<String>> {
        let row = |suggestion: &super::programs::Suggestion| {
            vec![program.name.to_owned(), suggestion.setting.clone(), suggestion.evidence.clone()]
        };
        program.suggestions.iter().map(row).collect()
    };
    let rows: Vec<Vec<String>> = programs.iter().flat_map(row).collect();
    let says = if rows.is_empty() {
        String::new()
    } else {
        "Times for [repository.NAME] that the figures suggest. Nothing was changed.".to_owned()
    };
    Figure {
        id: "suggestions".to_owned(),
        title: "Suggestions".to_owned(),
        says,
        drawing: None,
        columns: vec![words("Program"), words("Setting"), words("Evidence")],
        rows,
    }
}

fn by_hour(id: &str, title: &str, what: &str, counts: &[[u64; 24]; 7]) -> Figure {
    const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    const HOURS: [&str; 24] = [
        "00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16",
        "17", "18", "19", "20", "21", "22", "23",
    ];
    let all: u64 = counts.iter().flatten().sum();
    if all == 0 {
        return Figure::default();
    }
    let busiest = (0..7)
        .flat_map(|day| (0..24).map(move |hour| (day, hour)))
        .max_by_key(|(day, hour)| (counts[*day][*hour], Reverse((*day, *hour))));
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
        drawing: Some(Drawing::Week(*counts)),
        columns: [words("Day")].into_iter().chain(HOURS.map(numbers)).collect(),
        rows: counts.iter().enumerate().map(rows).collect(),
    }
}

/// The usual classes of durations, in seconds.
const CLASSES: [(u64, &str); 11] = [
    (1, "up to 1s"),
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

fn waits(counts: &Counts) -> Figure {
    if counts.waits.count == 0 {
        return Figure::default();
    }
    let says = if counts.all.waited == 0 {
        "No launch waited.".to_owned()
    } else {
        format!(
            "{} of {} launches that started had waited; 95% of all started within {}, 99% within {}, the last after {}.",
            count(counts.all.waited),
            count(counts.all.started()),
            or_at_once(counts.waits.percentile(95.0)),
            or_at_once(counts.waits.percentile(99.0)),
            wait(counts.waits.longest)
        )
    };
    let is_worth = counts.all.waited > 0;
    distribution("waits", "How long launches waited", says, Some(&counts.waits).filter(|_| is_worth))
}

fn or_at_once(micros: u64) -> String {
    if micros == 0 { "no time".to_owned() } else { wait(micros) }
}

fn runs(counts: &Counts) -> Figure {
    let runs = &counts.runs;
    if counts.all.started() == 0 {
        return Figure::default();
    }
    let says = if runs.count == 0 {
        "The log does not tell when programs ended.".to_owned()
    } else {
        format!(
            "Of {} programs whose end is known half took up to {}, 95% up to {}, the longest {}.",
            count(runs.count),
            wait(runs.percentile(50.0)),
            wait(runs.percentile(95.0)),
            wait(runs.longest)
        )
    };
    distribution("runs", "How long programs ran", says, Some(runs).filter(|runs| runs.count > 0))
}

fn distribution(id: &str, title: &str, says: String, lengths: Option<&Distribution>) -> Figure {
    let mut figure = Figure { id: id.to_owned(), title: title.to_owned(), says, ..Figure::default() };
    let Some(lengths) = lengths else { return figure };
    let mut counts = [0u64; CLASSES.len()];
    for (length, number) in lengths.values() {
        let class = CLASSES.iter().position(|(seconds, _)| length <= seconds * 1_000_000);
        counts[class.unwrap_or(CLASSES.len() - 1)] += number;
    }
    let last = counts.iter().rposition(|number| *number > 0).unwrap_or(0);
    let shown = || CLASSES.iter().zip(counts).take(last + 1);
    figure.drawing = Some(Drawing::Bars(shown().map(|((_, word), number)| (*word, number)).collect()));
    figure.columns = vec![words("Length"), numbers("Launches"), numbers("Share")];
    figure.rows = shown()
        .map(|((_, word), number)| {
            vec![(*word).to_owned(), count(number), percent(share(number, lengths.count))]
        })
        .collect();
    figure
}

fn top<K: Clone + Eq + std::hash::Hash + Ord>(
    id: &str,
    title: &str,
    head: &'static str,
    parties: &Bounded<K, Party>,
    name: &dyn Fn(K) -> String,
) -> Figure {
    let sorted: Vec<(K, &Party)> = parties.iter().map(|(key, of)| (key.clone(), of)).collect();
    list(id, title, head, sorted, name)
}

/// A group with a single user of the same name is the user's own, and shows nothing new.
fn groups(counts: &Counts, called: &Called<'_>) -> Figure {
    // Only as many names are looked up as can be shown.
    let is_own = |gid: u32, of: &Party| {
        let same = counts.users.get(&gid).is_some_and(|user| user.cell == of.cell);
        same && (called.user)(gid) == (called.group)(gid)
    };
    let mut all: Vec<(u32, &Party)> = counts.groups.iter().map(|(gid, of)| (*gid, of)).collect();
    if all.len() < 10_000 {
        all.retain(|(gid, of)| !is_own(*gid, of));
    }
    list("groups", "Groups", "Group", all, called.group)
}

fn list<K: Clone + Ord>(
    id: &str,
    title: &str,
    head: &'static str,
    mut sorted: Vec<(K, &Party)>,
    name: &dyn Fn(K) -> String,
) -> Figure {
    let all = sorted.len();
    sorted.sort_unstable_by_key(|(key, of)| {
        (Reverse(of.cell.refused + of.would_refuse), Reverse(of.cell.launches), key.clone())
    });
    let is_refused = sorted.first().is_some_and(|(_, of)| of.cell.refused + of.would_refuse > 0);
    sorted.truncate(LISTED);
    let row = |(key, of): &(K, &Party)| {
        let cell = &of.cell;
        vec![
            name(key.clone()),
            count(cell.launches),
            count(cell.refused),
            percent(share(cell.refused, cell.launches)),
            count(cell.waited),
            wait(cell.mean_wait()),
            count(of.would_refuse),
        ]
    };
    let says = match all {
        0 => String::new(),
        all if !is_refused && all > LISTED => {
            format!("The ones with most launches, of {} in all.", count(all as u64))
        }
        _ if !is_refused => String::new(),
        all if all > LISTED => format!("The ones with most refusals, of {} in all.", count(all as u64)),
        _ => "The ones with most refusals come first.".to_owned(),
    };
    let columns = vec![
        words(head),
        numbers("Launches"),
        numbers("Refused"),
        numbers("Share"),
        numbers("Waited"),
        numbers("Mean wait"),
        numbers("Would refuse"),
    ];
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        says,
        drawing: None,
        columns,
        rows: sorted.iter().map(row).collect(),
    }
}

fn rules(counts: &Counts, called: &Called<'_>) -> Figure {
    let mut sorted: Vec<(&String, &Rule)> =
        counts.rules.iter().filter(|(_, rule)| rule.started + rule.refused > 0).collect();
    sorted.sort_by_key(|(name, rule)| (Reverse(rule.refused), Reverse(rule.started), *name));
    let row = |(name, rule): &(&String, &Rule)| {
        let message = (called.message)(name).unwrap_or_default();
        vec![(*name).clone(), count(rule.started), count(rule.refused), count(rule.denied), message]
    };
    let says = match sorted.first() {
        None => String::new(),
        Some((_, worst)) if worst.refused == 0 => "No rule refused anything.".to_owned(),
        Some((name, worst)) => format!("\"{name}\" refused most: {} launches.", count(worst.refused)),
    };
    Figure {
        id: "rules".to_owned(),
        title: "Rules".to_owned(),
        says,
        drawing: None,
        columns: vec![
            words("Rule"),
            numbers("Started"),
            numbers("Refused"),
            numbers("Denied"),
            words("What it says"),
        ],
        rows: sorted.iter().take(200).map(row).collect(),
    }
}

fn unenforced(counts: &Counts) -> Figure {
    let rules = counts.rules.iter().filter(|(_, rule)| rule.would_refuse > 0);
    let rows: Vec<Vec<String>> =
        rules.map(|(name, rule)| vec![name.clone(), count(rule.would_refuse)]).collect();
    if rows.is_empty() {
        return Figure::default();
    }
    Figure {
        id: "unenforced".to_owned(),
        title: "What is not enforced".to_owned(),
        says: format!(
            "{} launches started that would have been refused if everything were enforced.",
            count(counts.would_refuse)
        ),
        drawing: None,
        columns: vec![words("Rule"), numbers("Would refuse")],
        rows,
    }
}

/// The characters of a link.
fn of_letters(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

// The kinds of figures.

#[derive(Debug, Default)]
pub struct Figure {
    /// For links.
    pub id: String,
    pub title: String,
    pub says: String,
    /// Its chart.
    pub drawing: Option<Drawing>,
    /// The columns of its table.
    pub columns: Vec<Column>,
    /// The table.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    /// Whether it has numbers, which are aligned by their last digit.
    pub is_number: bool,
}

pub const fn words(title: &'static str) -> Column {
    Column { title, is_number: false }
}

pub const fn numbers(title: &'static str) -> Column {
    Column { title, is_number: true }
}

/// A drawing, as numbers.
#[derive(Debug)]
pub enum Drawing {
    /// Use over time.
    Use(Use),
    /// The numbers for each hour of a week, Monday first.
    Week([[u64; 24]; 7]),
    /// The number for each name.
    Bars(Vec<(&'static str, u64)>),
}

/// Use over time.
#[derive(Debug)]
pub struct Use {
    /// In order and without a gap.
    pub points: Vec<Point>,
    /// How many slots there were, if the log tells it.
    pub seats: Option<u64>,
    /// Labels below it: at the beginning, between and at the end.
    pub labels: Vec<String>,
    /// Whether it is for one member, because each member has its own seats.
    pub is_of_members: bool,
    /// Whether ends are missing, so that the points are upper bounds.
    pub has_bounds: bool,
    /// How long a point lasts: "hour", "day".
    pub step: String,
}

/// A length of time.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// How many slots were held on average, at most; none if unknown.
    pub average: Option<f64>,
    /// How many were held at once, at most.
    pub most: u64,
}
