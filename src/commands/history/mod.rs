//! `rungate history`: what logs tell, as a table, as JSON, or as a summary.

mod filter;
mod members;
mod plot;
mod source;
mod summary;

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use crate::{
    cli::{HistoryArguments, Span},
    commands::{
        history::{filter::Filter, source::Source, summary::Summary},
        shared::{print, situation::Situation},
    },
    error::Error,
    escape::{Show, visible},
    exit_status::ExitStatus,
    log::{
        event::Event,
        history::Skipped,
        parsers::{Log as Lines, Parsers},
    },
    output::{clock::Clock, json, stream, table::Table, wrapped::answer},
    policy::{Hours, Log, LogTarget, Policy, system_zone},
    report::census::Census,
    sys::{accounts::NameCache, failure::errno_of, terminal},
};

/// So many bytes of JSON are written at once.
const PIECE: usize = 1 << 16;

/// Prints the events of logs, or their summary.
pub(super) fn run(arguments: &HistoryArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let filter = Filter::of(arguments)?;
    let sources = sources(&situation, &arguments.files, arguments.policy.policy.clone(), &filter)?;
    if arguments.plot {
        let mut census = Census::new(Hours::in_zone(system_zone()));
        each(sources, filter, |event| {
            census.see(&event);
            Ok(Some(event))
        })?;
        census.close();
        return print(&plot::plot(&census, &Clock::now(), terminal::columns()));
    }
    match (arguments.json, arguments.summary) {
        (true, false) => print_lines(sources, filter),
        (false, false) => {
            let is_open = filter.is_open();
            let mut events = Vec::new();
            each(sources, filter, |event| {
                events.push(event);
                Ok(None)
            })?;
            if events.is_empty() {
                let what = if is_open { "no events" } else { "no event of those that were asked for" };
                stream::complain(&format!("rungate: the log has {what}"));
            }
            print(&table(&events))
        }
        (is_json, true) => {
            let mut summary = Summary::default();
            each(sources, filter, |event| {
                summary.see(&event);
                Ok(Some(event))
            })?;
            print(&if is_json { json::render(&summary.to_json()) } else { answer(&summary.to_text()) })
        }
    }
}

/// Calls `see` for each event of a span of time; those of several logs in the order of their times. What it
/// gives back it no longer needs: whoever has made an event of a line unmakes it for less.
pub(super) fn each_of(
    situation: &Situation,
    files: &[PathBuf],
    span: &Span,
    see: &mut dyn FnMut(Event) -> Option<Event>,
) -> Result<(), Error> {
    let filter = Filter::within(span)?;
    let sources = sources(situation, files, None, &filter)?;
    each(sources, filter, |event| Ok(see(event)))
}

/// The logs that were named, or the one of the policy.
fn sources(
    situation: &Situation,
    files: &[PathBuf],
    policy: Option<PathBuf>,
    filter: &Filter,
) -> Result<Vec<Source>, Error> {
    Ok(match files {
        [] => vec![Source::of_policy(&situation.load_policy(policy)?, &situation.host, filter)?],
        files => files.iter().map(|file| Source::of_argument(&situation.directory, file)).collect(),
    })
}

/// The first log of JSON lines that a layer of the policy asks for, as this host writes it.
pub(super) fn file_of<'a>(policy: &'a Policy, host: &OsStr) -> Option<(PathBuf, &'a Log)> {
    policy.logs().find_map(|(_, log)| match &log.to {
        LogTarget::File(file) => Some((file.path(host), log)),
        _ => None,
    })
}

/// Says which lines of a log were left out.
pub(super) fn complain_of(skipped: Skipped, path: &Path) {
    let complain = |count: usize, one: &str, more: &str| {
        let lines = match count {
            0 => return,
            1 => format!("1 line is {one}"),
            count => format!("{count} lines are {more}"),
        };
        stream::complain(&format!("rungate: {}: {lines}", visible(path)));
    };
    complain(skipped.others, "no event of rungate", "no events of rungate");
    complain(
        skipped.too_long,
        "too long for an event, and was skipped",
        "too long for events, and were skipped",
    );
}

/// Calls `see` for each event that the filter lets through; those of several logs in the order of their
/// times.
fn each(
    sources: Vec<Source>,
    mut filter: Filter,
    mut see: impl FnMut(Event) -> Result<Option<Event>, Error>,
) -> Result<(), Error> {
    let unreadable = |source: &Source, error: &io::Error| {
        // What is no error of the system is one of unpacking.
        let is_of_system = error.raw_os_error().is_some();
        let reason =
            if is_of_system { errno_of(error).desc() } else { "it is compressed, and damaged or cut off" };
        Error::new(ExitStatus::System, format!("the log {} cannot be read: {reason}", source.name().shown()))
    };
    let parsers = Parsers::start(sources.len());
    let mut logs = Vec::new();
    for mut source in sources {
        let log = source.open().map_err(|error| unreadable(&source, &error))?;
        logs.push((source, Lines::new(log)));
    }
    // Which log goes on when; at the same time the one that was named first.
    let mut heads: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for (number, (source, log)) in logs.iter_mut().enumerate() {
        let time = log.time(&parsers).map_err(|error| unreadable(source, &error))?;
        heads.extend(time.map(|time| Reverse((time, number))));
    }
    while let Some(Reverse((_, number))) = heads.pop() {
        let (source, log) = &mut logs[number];
        if let Some(event) = log.take() {
            log.give_back(filter.pass(event, &mut see)?);
        }
        let time = log.time(&parsers).map_err(|error| unreadable(source, &error))?;
        heads.extend(time.map(|time| Reverse((time, number))));
    }
    for (source, log) in logs {
        complain_of(log.skipped(), source.name());
        source.close()?;
    }
    Ok(())
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
fn print_lines(sources: Vec<Source>, filter: Filter) -> Result<u8, Error> {
    let mut piece = String::new();
    each(sources, filter, |event| {
        piece.extend(json::line(&event).ok().map(|line| line + "\n"));
        if piece.len() >= PIECE {
            print(&piece)?;
            piece.clear();
        }
        Ok(Some(event))
    })?;
    print(&piece)
}
