//! `rungate list`: each slot that is held, and by whom.

use std::{fmt::Write as _, time::SystemTime};

use serde_json::{Value, json};

use crate::{
    cli::ListingArguments,
    commands::{
        print,
        repositories::{self, LockFileOf},
        situation::Situation,
    },
    error::Error,
    exit_status::ExitStatus,
    output::{age::age, clock::Clock, json, table::Table, visible::visible},
    repository::{hold::Hold, holder::Holder, line::Waiter, survey::Survey},
    sys::accounts::NameCache,
};

/// Lists the holders of the repositories that were asked for.
pub(super) fn list(arguments: &ListingArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let policy = situation.load_policy(arguments.policy.policy.clone())?;
    let files: Vec<LockFileOf> = repositories::wanted(&policy, &situation, &arguments.repositories)?
        .into_iter()
        .flat_map(|repository| repository.files)
        .collect();
    let surveys: Vec<_> = files.iter().map(LockFileOf::survey).collect();
    let failed = surveys.iter().any(Result::is_err);
    let names = NameCache::new();
    let text = if arguments.json {
        let listed = files.iter().zip(&surveys).map(|(file, survey)| match survey {
            Ok(survey) => to_json(file, survey, &names),
            Err(error) => json!({ "repository": file.name, "member": file.member, "path": visible(&file.path), "error": error.to_string() }),
        });
        json::render(&Value::Array(listed.collect()))
    } else {
        let clock = Clock::now();
        let listed = files.iter().zip(&surveys).map(|(file, survey)| match survey {
            Ok(survey) => to_text(file, survey, &clock, &names),
            Err(error) => format!("{}: {error}\n", visible(file.title())),
        });
        listed.collect::<Vec<_>>().join("\n")
    };
    print(&text)?;
    Ok(if failed { ExitStatus::Repository } else { ExitStatus::Success } as u8)
}

fn to_text(file: &LockFileOf, survey: &Survey, clock: &Clock, names: &NameCache) -> String {
    let mut text = visible(file.title());
    let _ = match file.limit {
        Some(limit) => write!(text, ": {} of {limit} used", survey.used),
        None => write!(text, ": {} used", survey.used),
    };
    if let Some(kept) = file.kept_note(survey) {
        let _ = write!(text, ", {kept}");
    }
    if !survey.waiting.is_empty() {
        let _ = write!(text, ", {} waiting", survey.waiting.len());
    }
    text.push('\n');
    if !survey.holders.is_empty() {
        let mut table =
            Table::new(&[">SLOT", ">PID", "USER", "HOST", "SINCE", ">AGE", "HOLD", "COMMAND", "RULE"]);
        for holder in &survey.holders {
            table.row(cells(holder, clock, names));
        }
        text += &table.render();
    }
    if !survey.waiting.is_empty() {
        let mut table = Table::new(&[">LINE", ">PID", "USER", "SINCE", ">AGE", ">LIMIT", "COMMAND"]);
        for (index, waiter) in survey.waiting.iter().enumerate() {
            table.row(waiter_cells(index + 1, waiter, clock, names));
        }
        text += &table.render();
    }
    text
}

fn cells(holder: &Holder, clock: &Clock, names: &NameCache) -> [String; 9] {
    let unknown = || "?".to_owned();
    let (first, last) = holder.slots;
    [
        if first == last { first.to_string() } else { format!("{first}-{last}") },
        holder.pid.map_or_else(unknown, |pid| pid.to_string()),
        holder.uid.map_or_else(unknown, |uid| visible(names.user(uid))),
        holder.host.as_ref().map_or_else(unknown, visible),
        holder.since.map_or_else(unknown, |since| clock.short(since)),
        holder.age(clock.system_time()).map_or_else(unknown, age),
        holder.hold.map_or_else(unknown, |hold| short_hold(hold).to_owned()),
        holder.command.as_ref().map_or_else(|| "(unknown holder)".to_owned(), visible),
        holder.rule.as_ref().map_or_else(String::new, visible),
    ]
}

fn waiter_cells(place: usize, waiter: &Waiter, clock: &Clock, names: &NameCache) -> [String; 7] {
    let unknown = || "?".to_owned();
    let since = clock.system_time().checked_sub(waiter.waited());
    [
        place.to_string(),
        waiter.pid.map_or_else(unknown, |pid| pid.to_string()),
        waiter.uid().map_or_else(unknown, |uid| visible(names.user(uid))),
        since.map_or_else(unknown, |since| clock.short(since)),
        age(waiter.waited()),
        waiter.limit.to_string(),
        waiter.command().map_or_else(unknown, visible),
    ]
}

fn short_hold(hold: Hold) -> &'static str {
    match hold {
        Hold::Supervisor => "superv.",
        Hold::Descriptor => "descr.",
        hold => hold.name(),
    }
}

fn to_json(file: &LockFileOf, survey: &Survey, names: &NameCache) -> Value {
    let holders: Vec<Value> = survey
        .holders
        .iter()
        .map(|holder| {
            json!({
                "slot": holder.slots.0,
                "last_slot": holder.slots.1,
                "pid": holder.pid,
                "uid": holder.uid,
                "user": holder.uid.map(|uid| names.user(uid)),
                "host": holder.host,
                "since": holder.since.and_then(Clock::stamp),
                "hold": holder.hold.map(Hold::name),
                "command": holder.command,
                "rule": holder.rule,
            })
        })
        .collect();
    let now = SystemTime::now();
    let waiting: Vec<Value> = survey
        .waiting
        .iter()
        .map(|waiter| {
            json!({
                "pid": waiter.pid,
                "uid": waiter.uid(),
                "user": waiter.uid().map(|uid| names.user(uid)),
                "since": now.checked_sub(waiter.waited()).and_then(Clock::stamp),
                "limit": waiter.limit,
                "command": waiter.command(),
            })
        })
        .collect();
    json!({
        "repository": file.name,
        "member": file.member,
        "path": visible(&file.path),
        "limit": file.limit,
        "used": survey.used,
        "kept": file.kept_idle(survey),
        "holders": holders,
        "waiting": waiting,
    })
}
