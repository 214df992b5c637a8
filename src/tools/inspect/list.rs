//! `rungate list`: each held slot with its holder, and each waiter with what it waits for. Without names it
//! omits idle repositories, which `status` shows.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    cli::ListArguments,
    judge::terms::{Hold, Keyword},
    keeper::{Holder, KeeperError, TableSnapshot, Waiter, WaitingProcess},
    launch::{Situation, uid_of},
    sys::{NameCache, accounts},
    text::{Clock, Error, Style, age, answer, json, print, table::Table, visible},
    tools::shared::{Free, ListedFile, WaitsFor, repositories},
};

/// Lists the holders of the repositories that were asked for.
pub(crate) fn run(arguments: &ListArguments, situation: &Situation) -> Result<u8, Error> {
    let user = arguments.user.as_deref().map(uid_of).transpose()?;
    let (is_json, has_names) = (arguments.listing.json, !arguments.listing.repositories.is_empty());
    let shown = repositories::to_show(situation, &arguments.listing)?;
    let has_none = shown.repositories.is_empty();
    let files = shown.repositories.into_iter().flat_map(|repository| repository.files);
    let mut files: Vec<(ListedFile, Result<TableSnapshot, KeeperError>)> =
        files.map(|file| (file.survey(), file)).map(|(survey, file)| (file, survey)).collect();
    if !has_names {
        files.retain(|(file, survey)| is_busy(file, survey.as_ref().ok(), user));
    }
    let failed = files.iter().any(|(_, survey)| survey.is_err());
    let unknown = files.iter().any(|(file, _)| file.failure().is_some());
    let view = View { generation: shown.generation, user, clock: Clock::now(), names: NameCache::new() };
    let text = if is_json {
        let listed = files.iter().map(|(file, survey)| match survey {
            Ok(survey) => view.to_json(file, survey),
            Err(error) => json!({ "repository": file.name, "member": file.member, "path": file.path().map(visible), "error": error.to_string() }),
        });
        json::render(&Value::Array(listed.collect()))
    } else if has_none {
        repositories::NONE.to_owned()
    } else if files.is_empty() && has_names {
        "None of them has been used yet.\n".to_owned()
    } else if files.is_empty() {
        let nobody = match &arguments.user {
            None => "No slot is held, and no launch waits.".to_owned(),
            Some(user) => format!("{} holds no slot and waits for none.", visible(user)),
        };
        format!("{nobody} All repositories: rungate status\n")
    } else {
        let listed = files.iter().map(|(file, survey)| match survey {
            Ok(survey) => view.to_text(file, survey),
            Err(error) => {
                let title = Style::Name.paint(&visible(file.title()));
                answer(&format!("{title}: {}\n", Style::Fault.paint(&error.to_string())))
            }
        });
        listed.collect::<Vec<_>>().join("\n")
    };
    print(&text)?;
    Ok(repositories::status(shown.is_faulty, failed, unknown))
}

/// Whether it is listed without being named: it has use, a queue, or an error.
fn is_busy(file: &ListedFile, survey: Option<&TableSnapshot>, user: Option<u32>) -> bool {
    let Some(survey) = survey else { return true };
    // One whose user cannot be seen may be the user's.
    let may_be = |uid: Option<u32>| uid.is_none() || is_of(user, uid);
    let holders = survey.holders.iter().flat_map(Holder::all).any(|holder| may_be(holder.uid));
    let waiters = survey.waiting.iter().any(|waiter| may_be(waiter.uid()));
    holders || waiters || (user.is_none() && (survey.used > 0 || file.failure().is_some()))
}

/// Whether it is the user who was asked for.
fn is_of(wanted: Option<u32>, uid: Option<u32>) -> bool {
    wanted.is_none() || wanted == uid
}

/// The data that are the same for every table.
struct View {
    generation: u16,
    /// The user whose slots and positions are shown, if not all.
    user: Option<u32>,
    clock: Clock,
    names: NameCache,
}

impl View {
    fn to_text(&self, file: &ListedFile, survey: &TableSnapshot) -> String {
        let mut text = answer(&self.title(file, survey));
        let holders: Vec<&Holder> = self.holders(survey).flat_map(|(_, shown)| shown).collect();
        if !holders.is_empty() {
            // If slots have no names, there is no column for them.
            let is_shown = |title: &str| title != "NAME" || !file.names().is_empty();
            let mut table = Table::new(&head(&HOLDERS, &is_shown)).in_one_line();
            for holder in holders {
                table.row(shown(&HOLDERS, cells(file, holder, &self.clock, &self.names), &is_shown));
            }
            text += &table.render();
        }
        for slot in file.unreadable_slots(survey) {
            let _ = writeln!(text, "slot {}: {}; {}", slot.slot, slot.text(), slot.advice());
        }
        let waiting: Vec<(usize, &Waiter)> = self.waiting(survey).collect();
        if !waiting.is_empty() {
            // If no launch waits on another host, there is no column for hosts.
            let is_any_elsewhere = waiting.iter().any(|(_, waiter)| waiter.process.host.is_some());
            let is_shown = |title: &str| title != "HOST" || is_any_elsewhere;
            let mut table = Table::new(&head(&WAITERS, &is_shown)).in_one_line();
            for (index, waiter) in waiting {
                let waits_for = WaitsFor::of(survey, index, file.limit()).show(&self.names);
                let row = waiter_cells(index + 1, waiter, waits_for, &self.clock, &self.names);
                table.row(shown(&WAITERS, row, &is_shown));
            }
            text += &table.render();
        }
        text
    }

    /// `matlab: 43 of 50 used, 7 kept for cad, 3 waiting`
    fn title(&self, file: &ListedFile, survey: &TableSnapshot) -> String {
        let mut text = Style::Name.paint(&visible(file.title()));
        let limit = file.limit();
        let full = limit.is_some_and(|limit| survey.used >= limit);
        let used = match limit {
            Some(limit) => format!("{} of {limit} used", survey.used),
            None => format!("{} used", survey.used),
        };
        let _ = write!(text, ": {}", if full { Style::Warning.paint(&used) } else { used });
        if let Some(why) = file.limit_note() {
            let _ = write!(text, " ({why})");
        }
        if let Some(failure) = file.failure() {
            let _ = write!(text, ", limit unknown: {failure}");
        }
        let kept = [
            file.outside_note(),
            ListedFile::linger_note(survey),
            file.kept_note(survey),
            file.free(survey, self.generation).and_then(Free::note),
        ];
        for note in kept.into_iter().flatten() {
            let _ = write!(text, ", {note}");
        }
        if !survey.waiting.is_empty() {
            let _ = write!(text, ", {} waiting", file.queue.show(survey.waiting.len()));
        }
        if let Some(unknown @ 1..) = self.unknown(survey) {
            let _ = write!(text, ", {unknown} of a user who cannot be seen");
        }
        text.push('\n');
        text
    }

    /// The holders, each with those who share its slot and are shown, itself among them.
    fn holders<'s>(&self, survey: &'s TableSnapshot) -> impl Iterator<Item = (&'s Holder, Vec<&'s Holder>)> {
        let user = self.user;
        let shown = move |holder: &'s Holder| holder.all().filter(|one| is_of(user, one.uid)).collect();
        let all = survey.holders.iter().map(move |holder| (holder, shown(holder)));
        all.filter(|(_, shown): &(_, Vec<&Holder>)| !shown.is_empty())
    }

    /// The waiters, each with its index in the whole queue.
    fn waiting<'s>(&self, survey: &'s TableSnapshot) -> impl Iterator<Item = (usize, &'s Waiter)> {
        let user = self.user;
        survey.waiting.iter().enumerate().filter(move |(_, waiter)| is_of(user, waiter.uid()))
    }

    /// How many slots and places belong to unknown users, and so possibly to this user.
    fn unknown(&self, survey: &TableSnapshot) -> Option<u64> {
        self.user?;
        let holders = survey.holders.iter().filter(|holder| holder.uid.is_none());
        let slots: u64 = holders.map(|holder| holder.slots.1 - holder.slots.0 + 1).sum();
        Some(slots + survey.waiting.iter().filter(|waiter| waiter.uid().is_none()).count() as u64)
    }
}

/// The columns of holders, each with its cell in [`cells`].
const HOLDERS: [&str; 10] =
    [">SLOT", "NAME", ">PID", "USER", "HOST", "SINCE", ">AGE", "HOLD", "COMMAND", "RULE"];

/// The columns of waiters, each with its cell in [`waiter_cells`].
const WAITERS: [&str; 9] =
    [">LINE", ">PID", "USER", "HOST", "SINCE", ">AGE", ">WANTS", "WAITS FOR", "COMMAND"];

/// The titles that are shown.
fn head<'t>(titles: &[&'t str], is_shown: &dyn Fn(&str) -> bool) -> Vec<&'t str> {
    titles.iter().copied().filter(|title| is_shown(title)).collect()
}

/// The cells below titles that are shown.
fn shown<const N: usize>(
    titles: &[&str; N],
    cells: [String; N],
    is_shown: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    titles.iter().zip(cells).filter(|(title, _)| is_shown(title)).map(|(_, cell)| cell).collect()
}

fn cells(file: &ListedFile, holder: &Holder, clock: &Clock, names: &NameCache) -> [String; HOLDERS.len()] {
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
        holder.command.as_ref().map_or_else(|| Style::Warning.paint("(unknown holder)"), visible),
        holder.rule.as_ref().map_or_else(String::new, visible),
    ]
}

fn waiter_cells(
    place: usize,
    waiter: &Waiter,
    waits_for: String,
    clock: &Clock,
    names: &NameCache,
) -> [String; WAITERS.len()] {
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

/// The host on which a process waits: this one, if it is no other.
fn host_of(process: &WaitingProcess) -> String {
    let here = || accounts::name().unwrap_or_default().to_string_lossy().into_owned();
    process.host.as_deref().map_or_else(here, str::to_owned)
}

fn short_hold(hold: Hold) -> &'static str {
    match hold {
        Hold::Supervisor => "superv.",
        Hold::Descriptor => "descr.",
        hold => hold.word(),
    }
}

impl View {
    fn to_json(&self, file: &ListedFile, survey: &TableSnapshot) -> Value {
        let unreadable = file.unreadable_slots(survey);
        let key_of = |holder: &Holder| {
            let found = unreadable.iter().find(|slot| (holder.slots.0..=holder.slots.1).contains(&slot.slot));
            found.map(|slot| slot.key.clone())
        };
        let holders: Vec<Value> = self
            .holders(survey)
            .map(|(group, shown)| {
                let holder = shown.first().copied().unwrap_or(group);
                let others = group.all().filter(|other| !std::ptr::eq(*other, holder));
                json!({
                    "slot": holder.slots.0,
                    "last_slot": holder.slots.1,
                    "names": file.names_of(holder.slots),
                    "pid": holder.pid,
                    "uid": holder.uid,
                    "user": holder.uid.map(|uid| self.names.user(uid)),
                    "host": holder.host,
                    "since": holder.since.and_then(Clock::stamp),
                    "hold": holder.hold.map(Hold::word),
                    "command": holder.command,
                    "rule": holder.rule,
                    "unreadable_key": key_of(holder),
                    "lingers_until": holder.lingers_until.and_then(Clock::stamp),
                    "shared_with": others.map(|other| other.pid).collect::<Vec<_>>(),
                })
            })
            .collect();
        let waiting: Vec<Value> = self
            .waiting(survey)
            .map(|(index, waiter)| {
                let waits_for = WaitsFor::of(survey, index, file.limit());
                json!({
                    "place": index + 1,
                    "pid": waiter.process.pid,
                    "uid": waiter.uid(),
                    "user": waiter.uid().map(|uid| self.names.user(uid)),
                    "host": host_of(&waiter.process),
                    "since": waiter.since().and_then(Clock::stamp),
                    "wants": waiter.wants,
                    "limit": waiter.class.capacity,
                    "behind": waits_for.waiter().and_then(|ahead| ahead.pid),
                    "behind_host": waits_for.waiter().map(host_of),
                    "command": waiter.command(),
                })
            })
            .collect();
        let mut value = file.read_to_json(survey, file.free(survey, self.generation));
        value["holders"] = json!(holders);
        value["waiting"] = json!(waiting);
        value["unknown"] = json!(self.unknown(survey));
        value
    }
}
