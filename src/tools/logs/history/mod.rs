//! `rungate history`: the events of logs, as a table or as JSON; those that were, or each as it comes.

mod members;

use std::mem;

use super::reading::{self, Covered, Logs, filter::Filter};
use crate::{
    cli::HistoryArguments,
    launch::{log::event::Event, situation::Situation},
    sys::accounts::NameCache,
    text::{
        clock::Clock,
        columns::width,
        error::Error,
        escape::visible,
        exit_status::ExitStatus,
        json::{self, Numbered},
        print::print,
        stream,
        table::Table,
    },
};

/// So many bytes of JSON are written at once.
const PIECE: usize = 1 << 16;

/// Prints the events of logs.
pub(crate) fn run(arguments: &HistoryArguments, situation: &Situation) -> Result<u8, Error> {
    let filter = Filter::of(arguments)?;
    if arguments.follow {
        return follow(arguments, situation, filter);
    }
    let logs = Logs::of(situation, &arguments.files, &filter)?;
    if arguments.json {
        return print_lines(logs, filter);
    }
    let is_open = filter.is_open();
    let mut events = Vec::new();
    let covered = logs.each(filter, |event| {
        events.push(event);
        Ok(None)
    })?;
    let first = events.iter().map(|event| event.time).min();
    tell(&covered, first);
    if events.is_empty() {
        let what = if is_open { "no events" } else { "no event of those that were asked for" };
        stream::complain(&format!("rungate: the log has {what}"));
    }
    print(&table(&events))
}

/// Says what was read beside the log, and how far back it goes.
fn tell(covered: &Covered, first: Option<u64>) {
    if let Some(text) = covered.to_text() {
        let since = first.map(|millis| std::time::UNIX_EPOCH + std::time::Duration::from_millis(millis));
        let since = since.map(|moment| format!(", since {}", Clock::now().day_and_time(moment)));
        stream::complain(&format!("rungate: {text}{}", since.unwrap_or_default()));
    }
}

const HEADINGS: [&str; 7] = ["TIME", "EVENT", "USER", ">PID", "COMMAND", ">SECONDS", "DETAILS"];

fn table(events: &[Event]) -> String {
    if events.is_empty() {
        return String::new();
    }
    let (clock, names) = (Clock::now(), NameCache::new());
    let mut table = Table::new(&HEADINGS);
    for event in events {
        table.row(row(event, &clock, &names));
    }
    table.render()
}

fn row(event: &Event, clock: &Clock, names: &NameCache) -> [String; 7] {
    let details: Vec<String> = [members::repositories(event, names)]
        .into_iter()
        .chain(event.status.clone())
        .chain(event.holder.map(|holder| match event.holder_uid {
            Some(uid) => format!("PID {holder} of {}", names.user(uid)),
            None => format!("PID {holder}"),
        }))
        .chain(event.cut.map(|length| format!("a command of {length} bytes, cut")))
        .filter(|detail| !detail.is_empty())
        .collect();
    [
        clock.short(event.moment()),
        event.event.name().to_owned(),
        visible(names.user(event.uid)),
        event.pid.to_string(),
        visible(&event.command),
        event.duration().map_or_else(String::new, |duration| format!("{:.1}", duration.as_secs_f64())),
        visible(details.join(", ")),
    ]
}

/// Events as they are logged: each as a row below headings, or as a line of JSON.
fn follow(arguments: &HistoryArguments, situation: &Situation, filter: Filter) -> Result<u8, Error> {
    let headings = line(&HEADINGS.map(|heading| heading.trim_start_matches('>').to_owned()));
    let mut text = if arguments.json { String::new() } else { headings };
    let names = NameCache::new();
    let mut show = |events: &[Event]| {
        let clock = Clock::now();
        for event in events {
            if arguments.json {
                text.extend(json::line(&Numbered::of(event)).ok().map(|line| line + "\n"));
            } else {
                text += &line(&row(event, &clock, &names));
            }
        }
        let shown = stream::print_part(&mem::take(&mut text));
        shown.map_err(|error| Error::new(ExitStatus::System, error.to_string()))
    };
    reading::follow(situation, &arguments.files, filter, &mut show)?;
    Ok(ExitStatus::Success as u8)
}

/// A row whose columns stand below each other without knowing what comes.
fn line(row: &[String; 7]) -> String {
    const WIDTHS: [usize; 7] = [6, 12, 8, 7, 12, 7, 0];
    let cell = |(number, (text, columns)): (usize, (&String, usize))| {
        let gap = columns.saturating_sub(width(text));
        if HEADINGS[number].starts_with('>') {
            format!("{:gap$}{text}", "")
        } else {
            format!("{text}{:gap$}", "")
        }
    };
    let cells: Vec<String> = row.iter().zip(WIDTHS).enumerate().map(cell).collect();
    format!("{}\n", cells.join(" ").trim_end())
}

/// Each event as a line of JSON, as they come.
fn print_lines(logs: Logs, filter: Filter) -> Result<u8, Error> {
    let mut piece = String::new();
    let mut first: Option<u64> = None;
    let covered = logs.each(filter, |event| {
        first = Some(first.map_or(event.time, |first| first.min(event.time)));
        piece.extend(json::line(&Numbered::of(&event)).ok().map(|line| line + "\n"));
        if piece.len() >= PIECE {
            print(&piece)?;
            piece.clear();
        }
        Ok(Some(event))
    })?;
    tell(&covered, first);
    print(&piece)
}
