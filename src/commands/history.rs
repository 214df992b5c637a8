//! `rungate history`: a log of JSON lines as a table, and what it adds up to.

use std::path::{Path, PathBuf};

use crate::{
    cli::HistoryArguments,
    commands::{history_summary::Summary, print, situation::Situation},
    error::Error,
    exit_status::ExitStatus,
    log::{event::Event, history},
    output::{clock::Clock, json, stream, table::Table, visible::visible},
    policy::{Log, LogTarget, Policy},
    sys::{accounts::NameCache, failure::errno_of},
};

/// Prints the events of a log, or their summary.
pub(super) fn show(arguments: &HistoryArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let path = match &arguments.file {
        Some(file) => situation.directory.join(file),
        None => log_of(&situation.load_policy(arguments.policy.policy.clone())?)?,
    };
    let (events, others) = history::read(&path).map_err(|error| {
        let reason = errno_of(&error).desc();
        Error::new(ExitStatus::System, format!("the log {} cannot be read: {reason}", visible(&path)))
    })?;
    if others > 0 {
        stream::complain(&format!("rungate: {}: {others} lines are no events of rungate", visible(&path)));
    }
    let text = match (arguments.json, arguments.summary) {
        (true, false) => json_lines(&events),
        (true, true) => json::render(&Summary::of(&events).to_json()),
        (false, true) => Summary::of(&events).to_text(),
        (false, false) => table(&events),
    };
    print(&text)
}

/// The first log of JSON lines that a layer of the policy asks for.
pub(super) fn file_of(policy: &Policy) -> Option<(&Path, &Log)> {
    policy.logs().find_map(|(_, log)| match &log.to {
        LogTarget::File(path) => Some((path.as_path(), log)),
        _ => None,
    })
}

fn log_of(policy: &Policy) -> Result<PathBuf, Error> {
    file_of(policy).map(|(path, _)| path.to_owned()).ok_or_else(|| {
        Error::new(ExitStatus::Usage, "the policy logs to no file of JSON lines").advise(
            "Name one: rungate history FILE. The journal is read with: journalctl -t rungate".to_owned(),
        )
    })
}

fn table(events: &[Event]) -> String {
    if events.is_empty() {
        return String::new();
    }
    let clock = Clock::now();
    let names = NameCache::new();
    let mut table = Table::new(&["TIME", "EVENT", "USER", ">PID", "COMMAND", ">SECONDS", "DETAILS"]);
    for event in events {
        let details: Vec<String> = [event.repositories.join(" ")]
            .into_iter()
            .chain(event.status.clone())
            .chain(event.holder.map(|holder| format!("PID {holder}")))
            .filter(|detail| !detail.is_empty())
            .collect();
        table.row([
            clock.short(event.moment()),
            event.event.name().to_owned(),
            visible(names.user(event.uid)),
            event.pid.to_string(),
            visible(&event.command),
            event.seconds.map_or_else(String::new, |seconds| format!("{seconds:.1}")),
            visible(details.join(", ")),
        ]);
    }
    table.render()
}

fn json_lines(events: &[Event]) -> String {
    events.iter().filter_map(|event| serde_json::to_string(event).ok()).map(|line| line + "\n").collect()
}
