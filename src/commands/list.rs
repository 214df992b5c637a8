//! `rungate list`: each slot that is held, and by whom.

use std::fmt::Write as _;

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
    output::{age::age, clock::Clock, table::Table, visible::visible},
    repository::{hold::Hold, holder::Holder, survey::Survey},
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
    let surveys: Vec<_> = files.iter().map(|file| Survey::of(&file.path)).collect();
    let failed = surveys.iter().any(Result::is_err);
    let names = NameCache::new();
    let text = if arguments.json {
        let listed = files.iter().zip(&surveys).map(|(file, survey)| match survey {
            Ok(survey) => to_json(file, survey, &names),
            Err(error) => json!({ "repository": file.name, "member": file.member, "path": visible(&file.path), "error": error.to_string() }),
        });
        format!("{:#}\n", Value::Array(listed.collect()))
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
    let mut text = format!("{}: ", visible(file.title()));
    match file.limit {
        Some(limit) => {
            let _ = writeln!(text, "{} of {limit} used", survey.used);
        }
        None => {
            let _ = writeln!(text, "{} used", survey.used);
        }
    }
    if survey.holders.is_empty() {
        return text;
    }
    let mut table =
        Table::new(&[">SLOT", ">PID", "USER", "HOST", "SINCE", ">AGE", "HOLD", "COMMAND", "RULE"]);
    for holder in &survey.holders {
        table.row(cells(holder, clock, names));
    }
    text + &table.render()
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
    json!({
        "repository": file.name,
        "member": file.member,
        "path": visible(&file.path),
        "limit": file.limit,
        "used": survey.used,
        "holders": holders,
    })
}
