//! `rungate history`: the events of logs, as a table or as JSON.

mod members;

use crate::{
    cli::HistoryArguments,
    commands::shared::{
        logs::{Covered, Logs, filter::Filter},
        print,
        situation::Situation,
    },
    error::Error,
    escape::visible,
    log::event::Event,
    output::{clock::Clock, json, stream, table::Table},
    sys::accounts::NameCache,
};

/// So many bytes of JSON are written at once.
const PIECE: usize = 1 << 16;

/// Prints the events of logs.
pub(super) fn run(arguments: &HistoryArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let filter = Filter::of(arguments)?;
    let logs = Logs::of(&situation, &arguments.files, arguments.policy.policy.clone(), &filter)?;
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

fn table(events: &[Event]) -> String {
    if events.is_empty() {
        return String::new();
    }
    let clock = Clock::now();
    let names = NameCache::new();
    let mut table = Table::new(&["TIME", "EVENT", "USER", ">PID", "COMMAND", ">SECONDS", "DETAILS"]);
    for event in events {
        let details: Vec<String> = [members::repositories(event, &names)]
            .into_iter()
            .chain(event.status.clone())
            .chain(event.holder.map(|holder| format!("PID {holder}")))
            .chain(event.cut.map(|length| format!("a command of {length} bytes, cut")))
            .filter(|detail| !detail.is_empty())
            .collect();
        table.row([
            clock.short(event.moment()),
            event.event.name().to_owned(),
            visible(names.user(event.uid)),
            event.pid.to_string(),
            visible(&event.command),
            event.duration().map_or_else(String::new, |duration| format!("{:.1}", duration.as_secs_f64())),
            visible(details.join(", ")),
        ]);
    }
    table.render()
}

/// Each event as a line of JSON, as they come.
fn print_lines(logs: Logs, filter: Filter) -> Result<u8, Error> {
    let mut piece = String::new();
    let mut first: Option<u64> = None;
    let covered = logs.each(filter, |event| {
        first = Some(first.map_or(event.time, |first| first.min(event.time)));
        piece.extend(json::line(&event).ok().map(|line| line + "\n"));
        if piece.len() >= PIECE {
            print(&piece)?;
            piece.clear();
        }
        Ok(Some(event))
    })?;
    tell(&covered, first);
    print(&piece)
}
