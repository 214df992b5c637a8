//! `rungate list`: each slot that is held, and by whom.

use std::{fmt::Write as _, time::SystemTime};

use serde_json::{Value, json};

use crate::{
    cli::ListingArguments,
    commands::shared::{
        listed_file::{Free, ListedFile},
        listing, print,
        situation::Situation,
        waits_for::WaitsFor,
    },
    error::Error,
    escape::visible,
    keeper::{
        file::{holder::Holder, survey::Survey},
        line::{Waiter, WaitingProcess},
    },
    output::{age::age, clock::Clock, json, table::Table, wrapped::answer},
    sys::{accounts::NameCache, host},
    terms::hold::Hold,
};

/// Lists the holders of the repositories that were asked for.
pub(super) fn run(arguments: &ListingArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let shown = listing::to_show(&situation, arguments)?;
    let has_none = shown.repositories.is_empty();
    let files: Vec<ListedFile> =
        shown.repositories.into_iter().flat_map(|repository| repository.files).collect();
    let generation = shown.generation;
    let surveys: Vec<_> = files.iter().map(ListedFile::survey).collect();
    let failed = surveys.iter().any(Result::is_err);
    let unknown = files.iter().any(|file| file.failure().is_some());
    let names = NameCache::new();
    let text = if arguments.json {
        let listed = files.iter().zip(&surveys).map(|(file, survey)| match survey {
            Ok(survey) => to_json(file, survey, generation, &names),
            Err(error) => json!({ "repository": file.name, "member": file.member, "path": file.path().map(visible), "error": error.to_string() }),
        });
        json::render(&Value::Array(listed.collect()))
    } else if has_none {
        listing::NONE.to_owned()
    } else if files.is_empty() {
        "Nobody has used any of them yet.\n".to_owned()
    } else {
        let clock = Clock::now();
        let listed = files.iter().zip(&surveys).map(|(file, survey)| match survey {
            Ok(survey) => to_text(file, survey, generation, &clock, &names),
            Err(error) => format!("{}: {error}\n", visible(file.title())),
        });
        answer(&listed.collect::<Vec<_>>().join("\n"))
    };
    print(&text)?;
    Ok(listing::status(shown.is_faulty, failed, unknown))
}

fn to_text(file: &ListedFile, survey: &Survey, generation: u16, clock: &Clock, names: &NameCache) -> String {
    let mut text = visible(file.title());
    let _ = match file.limit() {
        Some(limit) => {
            let why = file.limit_note().map_or_else(String::new, |why| format!(" ({why})"));
            write!(text, ": {} of {limit} used{why}", survey.used)
        }
        None => write!(text, ": {} used", survey.used),
    };
    if let Some(failure) = file.failure() {
        let _ = write!(text, ", limit unknown: {failure}");
    }
    if let Some(kept) = file.kept_note(survey) {
        let _ = write!(text, ", {kept}");
    }
    if let Some(note) = file.free(survey, generation).and_then(Free::note) {
        let _ = write!(text, ", {note}");
    }
    if !survey.waiting.is_empty() {
        let _ = write!(text, ", {} waiting", file.queue.show(survey.waiting.len()));
    }
    text.push('\n');
    if !survey.holders.is_empty() {
        // Where slots have no names, there is no column for them.
        let is_shown = |index: &usize| *index != 1 || !file.names().is_empty();
        let titles = [">SLOT", "NAME", ">PID", "USER", "HOST", "SINCE", ">AGE", "HOLD", "COMMAND", "RULE"];
        let head: Vec<&str> = (0..titles.len()).filter(is_shown).map(|index| titles[index]).collect();
        let mut table = Table::new(&head);
        for holder in &survey.holders {
            let row = cells(file, holder, clock, names).into_iter().enumerate();
            table.row(row.filter(|(index, _)| is_shown(index)).map(|(_, cell)| cell).collect::<Vec<_>>());
        }
        text += &table.render();
    }
    for slot in file.unreadable_slots(survey) {
        let _ = writeln!(text, "slot {}: {}; {}", slot.slot, slot.text(), slot.advice());
    }
    if !survey.waiting.is_empty() {
        // Where nobody waits on another host, there is no column for hosts.
        let is_any_elsewhere = survey.waiting.iter().any(|waiter| waiter.process.host.is_some());
        let is_shown = |index: &usize| *index != 3 || is_any_elsewhere;
        let titles = [">LINE", ">PID", "USER", "HOST", "SINCE", ">AGE", ">WANTS", "WAITS FOR", "COMMAND"];
        let head: Vec<&str> = (0..titles.len()).filter(is_shown).map(|index| titles[index]).collect();
        let mut table = Table::new(&head);
        for (index, waiter) in survey.waiting.iter().enumerate() {
            let waits_for = WaitsFor::of(survey, index, file.limit()).show(names);
            let row = waiter_cells(index + 1, waiter, waits_for, clock, names).into_iter().enumerate();
            table.row(row.filter(|(index, _)| is_shown(index)).map(|(_, cell)| cell).collect::<Vec<_>>());
        }
        text += &table.render();
    }
    text
}

fn cells(file: &ListedFile, holder: &Holder, clock: &Clock, names: &NameCache) -> [String; 10] {
    let unknown = || "?".to_owned();
    let (first, last) = holder.slots;
    [
        if first == last { first.to_string() } else { format!("{first}-{last}") },
        visible(file.names_of(holder.slots).join(",")),
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

fn waiter_cells(
    place: usize,
    waiter: &Waiter,
    waits_for: String,
    clock: &Clock,
    names: &NameCache,
) -> [String; 9] {
    let unknown = || "?".to_owned();
    let waited = waiter.waited();
    let since = waited.and_then(|waited| clock.system_time().checked_sub(waited));
    [
        place.to_string(),
        waiter.process.pid.map_or_else(unknown, |pid| pid.to_string()),
        waiter.uid().map_or_else(unknown, |uid| visible(names.user(uid))),
        visible(host_of(&waiter.process)),
        since.map_or_else(unknown, |since| clock.short(since)),
        waited.map_or_else(unknown, age),
        waiter.wants.map_or_else(unknown, |wants| wants.to_string()),
        waits_for,
        waiter.command().map_or_else(unknown, visible),
    ]
}

/// The host on which a process waits: this one, where it is no other.
fn host_of(process: &WaitingProcess) -> String {
    let here = || host::name().unwrap_or_default().to_string_lossy().into_owned();
    process.host.as_deref().map_or_else(here, str::to_owned)
}

fn short_hold(hold: Hold) -> &'static str {
    match hold {
        Hold::Supervisor => "superv.",
        Hold::Descriptor => "descr.",
        hold => hold.name(),
    }
}

fn to_json(file: &ListedFile, survey: &Survey, generation: u16, names: &NameCache) -> Value {
    let unreadable = file.unreadable_slots(survey);
    let key_of = |holder: &Holder| {
        let found = unreadable.iter().find(|slot| (holder.slots.0..=holder.slots.1).contains(&slot.slot));
        found.map(|slot| slot.key.clone())
    };
    let holders: Vec<Value> = survey
        .holders
        .iter()
        .map(|holder| {
            json!({
                "slot": holder.slots.0,
                "last_slot": holder.slots.1,
                "names": file.names_of(holder.slots),
                "pid": holder.pid,
                "uid": holder.uid,
                "user": holder.uid.map(|uid| names.user(uid)),
                "host": holder.host,
                "since": holder.since.and_then(Clock::stamp),
                "hold": holder.hold.map(Hold::name),
                "command": holder.command,
                "rule": holder.rule,
                "unreadable_key": key_of(holder),
            })
        })
        .collect();
    let now = SystemTime::now();
    let waiting: Vec<Value> = survey
        .waiting
        .iter()
        .enumerate()
        .map(|(index, waiter)| {
            let waits_for = WaitsFor::of(survey, index, file.limit());
            json!({
                "pid": waiter.process.pid,
                "uid": waiter.uid(),
                "user": waiter.uid().map(|uid| names.user(uid)),
                "host": host_of(&waiter.process),
                "since": waiter.waited().and_then(|waited| now.checked_sub(waited)).and_then(Clock::stamp),
                "wants": waiter.wants,
                "limit": waiter.class.reach,
                "behind": waits_for.waiter().and_then(|ahead| ahead.pid),
                "behind_host": waits_for.waiter().map(host_of),
                "command": waiter.command(),
            })
        })
        .collect();
    let mut value = file.to_json();
    value["used"] = json!(survey.used);
    value["kept"] = json!(file.kept_idle(survey));
    value["kept_for"] = json!(file.kept_note(survey));
    value["kept_for_queue"] = json!(file.free(survey, generation).map(|free| free.for_queue));
    value["holders"] = json!(holders);
    value["waiting"] = json!(waiting);
    value
}
