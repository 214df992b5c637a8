//! `rungate report`: a summary of logs, as text, as a page that can be mailed, or as JSON.

mod to_json;

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use super::{
    reading::{self, Covered, single_tables},
    rendering::{
        figures::{self, Called},
        page::{self, Page},
        programs::{GOOD, Outcome, in_trouble, programs},
    },
    simulation::{Reading, Recording, Row, Terms, Traffic, Trial},
    statistics::{Counts, joiner},
};
use crate::{
    cli::ReportArguments,
    judge::terms::Names,
    launch::Situation,
    policy::{LayerKind, Limit, Policy, Repository, Rule},
    sys::{replaced_file, terminal},
    text::{Clock, Error, ExitStatus, age, answer, count, json, print, visible, word},
    tools::shared::KnownAccounts,
};

/// Everyone who gets it by mail can read it anyway.
const MODE: u32 = 0o644;

/// Prints or writes it.
pub(crate) fn run(arguments: &ReportArguments, situation: &Situation) -> Result<u8, Error> {
    // A report needs no policy, unless one was named.
    let named = situation.named_policy();
    let load = || match named {
        // As if it were the system's: one table for all users.
        Some(path) => {
            let files = [situation.directory.join(path)];
            situation.load_files(&files).map_err(|faults| situation.faulty_files(&faults, &files))
        }
        None => situation.load_silently(),
    };
    let policy = match load() {
        Err(error) if named.is_some() => return Err(error),
        read => read.unwrap_or_default(),
    };
    let accounts = KnownAccounts::of(situation, arguments.accounts.as_deref())?;
    let reading = Reading {
        inputs: policy.relevant_inputs(),
        tables: joiner::Reading { is_by_host: false, single: single_tables(&policy) },
        seed: 1,
        most: Some(MOST),
    };
    let names = policy.repositories().iter().map(Repository::shown_name);
    let rules = policy.rules().iter().map(Rule::shown_name);
    let counts = Counts::new(policy.hours(), names, rules);
    let mut recording = Recording::counted(reading, policy.hours(), counts);
    let covered =
        reading::each_of(situation, &arguments.files, &arguments.span, &mut |event| recording.see(event))?;
    let (traffic, mut counts) = recording.finish_counted();
    counts.closing.is_cut = arguments.span.since.is_some();
    let outcomes =
        traffic.map(|traffic| of(&traffic, &counts, &accounts, &policy, &load)).unwrap_or_default();
    let simulate = simulation(arguments, named, &policy);
    let (programs, more) = programs(&counts, &limits(&policy), &outcomes, &simulate);
    let user = |uid: u32| accounts.user_name(uid).ok().flatten().unwrap_or_else(|| uid.to_string());
    let group = |gid: u32| accounts.group_name(gid).ok().flatten().unwrap_or_else(|| gid.to_string());
    let message = |name: &str| -> Option<String> {
        let rule = policy.rules().iter().find(|rule| rule.shown_name() == name)?;
        rule.message().map(str::to_owned)
    };
    let called = Called { user: &user, group: &group, message: &message, zone: policy.time_zone() };
    if arguments.json {
        return print(&json::render(&to_json::all(&counts, &programs, &called, &covered)));
    }
    let subtitle = subtitle(&counts, &policy, &covered);
    let mut doubts = figures::doubts(&counts);
    if counts.all.launches == 0 {
        doubts.insert(0, nothing(arguments));
    }
    let table = figures::answer(&programs, more);
    let uses = figures::uses(&counts, &programs, &called);
    let details = figures::details(&counts, &programs, &called);
    let Some(output) = &arguments.html else {
        let mut parts = vec![page::answer(&subtitle, &table, &programs, &doubts)];
        let columns = terminal::columns();
        parts.extend(columns.map(|columns| page::uses(&programs, &uses, columns)));
        parts.extend(details.iter().map(|figure| page::figure(figure, columns.is_some())));
        parts.retain(|part| !part.is_empty());
        return print(&answer(&parts.join("\n")));
    };
    let figures: Vec<_> = uses.into_iter().chain(details).collect();
    let page =
        Page { subtitle: &subtitle, answer: &table, programs: &programs, doubts: &doubts, figures: &figures };
    let html = page.to_html();
    if output == Path::new("-") {
        return print(&html);
    }
    let path = situation.directory.join(output);
    replaced_file::replace(&path, html.as_bytes(), MODE).map_err(|failure| {
        Error::new(ExitStatus::System, format!("{} cannot be written: {failure}", visible(&path)))
    })?;
    Ok(ExitStatus::Success as u8)
}

/// The beginning of a command that simulates the same log under the same policy.
fn simulation(arguments: &ReportArguments, named: Option<&Path>, policy: &Policy) -> String {
    let mut words = vec!["rungate simulate".to_owned()];
    let is_of_system = policy.layers().iter().any(|layer| layer.kind() == LayerKind::System);
    match named {
        Some(path) if arguments.files.is_empty() => {
            words.extend([format!("--policy {}", word(path)), word(path)]);
        }
        Some(path) => words.push(word(path)),
        None if is_of_system => words.push("/etc/rungate".to_owned()),
        None => words.push("POLICY".to_owned()),
    }
    words.extend(arguments.files.iter().map(word));
    words.extend(arguments.accounts.iter().map(|directory| format!("--accounts {}", word(directory))));
    words.join(" ")
}

/// If the log has no launch.
fn nothing(arguments: &ReportArguments) -> String {
    let span = if arguments.span.since.is_some() || arguments.span.until.is_some() {
        " in this span of time"
    } else {
        ""
    };
    format!(
        "The log has no launch{span}. Launches are in it where the policy has a [log] section; in the journal and syslog refusals only, unless replay = true."
    )
}

/// The limits of a policy, where they do not depend on the machine.
fn limits(policy: &Policy) -> BTreeMap<String, u64> {
    let fixed = |repository: &Repository| match repository.limit() {
        Limit::Fixed(limit) => Some((repository.shown_name().to_owned(), u64::from(limit))),
        Limit::PerCpu(_) => None,
    };
    policy.repositories().iter().filter_map(fixed).collect()
}

/// The amount of data, and its time span.
fn subtitle(counts: &Counts, policy: &Policy, covered: &Covered) -> String {
    let launches = match counts.all.launches {
        1 => "1 launch".to_owned(),
        more => format!("{} launches", count(more)),
    };
    let users = match counts.users.len() {
        1 => "1 user".to_owned(),
        more => format!("{} users", count(more as u64)),
    };
    let mut text = format!("{launches} of {users}");
    if let Some((begin, end)) = counts.closing.span {
        let clock = Clock::in_zone(policy.time_zone());
        let moment = |micros: u64| clock.day_and_time_of_year(UNIX_EPOCH + Duration::from_micros(micros));
        text +=
            &format!(", {} to {} ({})", moment(begin), moment(end), age(Duration::from_micros(end - begin)));
    }
    if let Some(covered) = covered.to_text() {
        text += &format!("; read from {covered}");
    }
    text
}

// How many seats would have been enough, as a simulation of the log says: for the programs that were refused
// most.

/// Longer logs are not simulated here: `rungate simulate` does that.
const MOST: usize = 500_000;

/// The number of programs that are simulated.
const PROGRAMS: usize = 5;

/// For each of the worst programs how many seats are enough.
fn of(
    traffic: &Traffic,
    counts: &Counts,
    accounts: &KnownAccounts,
    policy: &Policy,
    load: &dyn Fn() -> Result<Policy, Error>,
) -> BTreeMap<String, Outcome> {
    // If the log lacks the facts of launches, no policy can judge them.
    if traffic.untold > 0 {
        return BTreeMap::new();
    }
    let trial = Trial { traffic, accounts, terms: Terms::default(), seed: 1 };
    let is_known = |name: &str, seats: u64| {
        let same = |known: &&Repository| known.shown_name() == name;
        policy.repositories().iter().find(same).is_some_and(|known| known.limit() == limit_of(seats))
    };
    let worst = in_trouble(counts).into_iter().filter(|(name, seats)| is_known(name, *seats));
    let found = worst.take(PROGRAMS).filter_map(|(name, seats)| {
        Some((name.to_owned(), enough(&trial, name, u32::try_from(seats).ok()?, load)?))
    });
    found.collect()
}

fn limit_of(seats: u64) -> Limit {
    Limit::Fixed(u32::try_from(seats).unwrap_or(u32::MAX))
}

/// The lowest number of seats that starts nearly all at once. The search goes up from the present number in
/// doubling steps.
fn enough(
    trial: &Trial<'_>,
    name: &str,
    seats: u32,
    load: &dyn Fn() -> Result<Policy, Error>,
) -> Option<Outcome> {
    // None if the policy cannot be read again, and empty if the log does not have enough data.
    let share = |limit: u32| -> Option<Option<f64>> {
        let policy = load().ok()?.with_limit(name, limit)?;
        let (tally, undecided) = trial.play_in_doubt(&policy);
        if !undecided.is_empty() {
            return Some(None);
        }
        Some(Some(Row::of(limit, name, &tally, trial.traffic, true).at_once))
    };
    let highest = seats.saturating_mul(4).max(seats + 8);
    let (mut low, mut high) = (seats + 1, seats + 1);
    loop {
        let Some(reached) = share(high)? else { return Some(Outcome::Unknown) };
        if reached >= GOOD {
            break;
        }
        if high >= highest {
            return Some(Outcome::NotEnough(high.into(), reached));
        }
        low = high + 1;
        high = (seats + (high - seats) * 2).min(highest);
    }
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(reached) = share(middle)? else { return Some(Outcome::Unknown) };
        if reached >= GOOD {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(Outcome::Enough(high.into()))
}
