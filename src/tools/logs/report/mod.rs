//! `rungate report`: what logs come to, as text, as a page that can be mailed, or as JSON.

mod outcomes;
mod to_json;

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use super::reading::{self, Covered, single_tables};
use super::{
    rendering::{
        figures::{self, Called},
        page::Page,
        programs::programs,
        text,
    },
    simulation::traffic::{Reading, Recording},
    statistics::{counts::Counts, joiner},
};
use crate::{
    cli::ReportArguments,
    judge::terms::names::Names,
    policy::{Limit, Policy, Repository, Rule},
    sys::{replaced_file, terminal},
    text::{
        clock::{Clock, age},
        columns::answer,
        error::Error,
        escape::visible,
        exit_status::ExitStatus,
        figures::count,
        json,
    },
};
use crate::{launch::situation::Situation, text::print::print, tools::shared::file_accounts::KnownAccounts};

/// Everybody whom it is mailed to can read it anyway.
const MODE: u32 = 0o644;

/// Prints or writes it.
pub(crate) fn run(arguments: &ReportArguments, situation: &Situation) -> Result<u8, Error> {
    // A log can be told of without any policy, unless one was named.
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
        looks: policy.looks(),
        tables: joiner::Reading { is_by_host: false, single: single_tables(&policy) },
        seed: 1,
        most: Some(outcomes::MOST),
    };
    let names = policy.repositories().iter().map(Repository::shown_name);
    let rules = policy.rules().iter().map(Rule::shown_name);
    let counts = Counts::new(policy.hours(), names, rules);
    let mut recording = Recording::counted(reading, policy.hours(), counts);
    let covered =
        reading::each_of(situation, &arguments.files, &arguments.span, &mut |event| recording.see(event))?;
    let (traffic, counts) = recording.finish_counted();
    let outcomes =
        traffic.map(|traffic| outcomes::of(&traffic, &counts, &accounts, &policy, &load)).unwrap_or_default();
    let (programs, more) = programs(&counts, &limits(&policy), &outcomes);
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
        let mut parts = vec![text::answer(&subtitle, &table, &programs, &doubts)];
        let columns = terminal::columns();
        parts.extend(columns.map(|columns| text::uses(&programs, &uses, columns)));
        parts.extend(details.iter().map(|figure| text::figure(figure, columns.is_some())));
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

/// Where the log tells of no launch.
fn nothing(arguments: &ReportArguments) -> String {
    let span = if arguments.span.since.is_some() || arguments.span.until.is_some() {
        " in this span of time"
    } else {
        ""
    };
    format!(
        "The log has no launch{span}. Refusals are in it where the policy has a [log] section, and starts with events = \"all\"."
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

/// How much it is, and of which time.
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
