//! `rungate status`: use and limit of every repository at a glance.

use serde_json::{Value, json};

use super::watch;
use crate::{
    cli::StatusArguments,
    keeper::{KeeperError, TableSnapshot},
    launch::Situation,
    sys::terminal,
    text::{Clock, Error, Style, age, answer, json, print, table::Table, visible},
    tools::shared::{Free, ListedFile, NONE, repositories},
};

/// Shows the repositories that were asked for.
pub(crate) fn run(arguments: &StatusArguments, situation: Situation) -> Result<u8, Error> {
    if arguments.watch {
        return watch::run(&arguments.listing, situation);
    }
    let arguments = &arguments.listing;
    let shown = repositories::to_show(&situation, arguments)?;
    let generation = shown.generation;
    let repositories: Vec<Surveyed> = shown
        .repositories
        .into_iter()
        .map(|repository| Surveyed {
            name: repository.name,
            limit: repository.limit,
            of_members: repository.of_members,
            files: repository.files.into_iter().map(|file| Seen::of(file, generation)).collect(),
        })
        .collect();
    let files = || repositories.iter().flat_map(|repository| &repository.files);
    let failed = files().any(|seen| seen.survey.is_err());
    let unknown = files().any(|seen| seen.file.failure().is_some());
    let clock = Clock::now();
    let is_named = !arguments.repositories.is_empty();
    let text = if arguments.json { to_json(&repositories) } else { to_text(&repositories, is_named, &clock) };
    print(&text)?;
    Ok(repositories::status(shown.is_faulty, failed, unknown))
}

/// A repository, and each of its lock files with what was found there.
struct Surveyed {
    name: String,
    limit: Option<u64>,
    of_members: bool,
    files: Vec<Seen>,
}

/// A file, and what was found there.
struct Seen {
    file: ListedFile,
    survey: Result<TableSnapshot, KeeperError>,
    free: Option<Free>,
}

impl Seen {
    fn of(file: ListedFile, generation: u16) -> Self {
        let survey = file.survey();
        let free = survey.as_ref().ok().and_then(|survey| file.free(survey, generation));
        Self { file, survey, free }
    }

    /// Whether no slot of it is held, no launch waits, and no error occurred.
    fn is_idle(&self) -> bool {
        let is_idle = |survey: &TableSnapshot| survey.used == 0 && survey.waiting.is_empty();
        self.survey.as_ref().is_ok_and(is_idle) && self.file.failure().is_none()
    }
}

/// More idle members than this are listed only if their repository is named.
const MOST_IDLE: usize = 10;

impl Surveyed {
    /// The members that are listed, and how many idle ones are not.
    fn listed(&self, is_named: bool) -> (impl Iterator<Item = &Seen>, usize) {
        let idle = self.files.iter().filter(|seen| seen.is_idle()).count();
        let is_left_out = self.of_members && !is_named && idle > MOST_IDLE;
        let listed = self.files.iter().filter(move |seen| !is_left_out || !seen.is_idle());
        (listed, if is_left_out { idle } else { 0 })
    }
}

fn to_text(repositories: &[Surveyed], is_named: bool, clock: &Clock) -> String {
    if repositories.is_empty() {
        return NONE.to_owned();
    }
    // Without kept slots, there is no column for them.
    let mut files = repositories.iter().flat_map(|repository| &repository.files);
    let keeps = files.any(|seen| seen.file.keeps() || seen.free.is_some_and(|free| free.for_queue > 0));
    let titles = ["REPOSITORY", ">USED", ">LIMIT", ">FREE", ">KEPT", ">WAIT", ">OLDEST", "NOTE"];
    let shown = |column: &usize| keeps || titles[*column] != ">KEPT";
    let only_shown = |row: [String; 8]| -> Vec<String> {
        row.into_iter().enumerate().filter(|(column, _)| shown(column)).map(|(_, cell)| cell).collect()
    };
    let head: Vec<&str> = (0..titles.len()).filter(shown).map(|column| titles[column]).collect();
    let mut table = Table::new(&head).in_one_line();
    for repository in repositories {
        let (listed, left_out) = repository.listed(is_named);
        if repository.of_members {
            table.row(only_shown(summary(repository, left_out)));
        }
        for seen in listed {
            let title = match &seen.file.member {
                Some(member) => format!("  {}", visible(member)),
                None if repository.of_members => "  ?".to_owned(),
                None => Style::Name.paint(&visible(&repository.name)),
            };
            table.row(only_shown(line(title, seen, clock)));
        }
    }
    let is_cut = terminal::columns().is_some();
    let failures = repositories.iter().flat_map(|repository| &repository.files).filter(|_| is_cut);
    let failures = failures.filter_map(|seen| {
        let failure = seen.survey.as_ref().err().map(ToString::to_string);
        let failure = failure.or_else(|| seen.file.failure().map(ToString::to_string))?;
        Some(format!(
            "\n{}: {}",
            Style::Name.paint(&visible(seen.file.title())),
            Style::Fault.paint(&failure)
        ))
    });
    // In the table they are cut.
    let failures: String = failures.collect();
    table.render() + &if failures.is_empty() { failures } else { answer(&format!("{failures}\n")) }
}

/// The line above those of the members.
fn summary(repository: &Surveyed, left_out: usize) -> [String; 8] {
    let known: Vec<(&TableSnapshot, &ListedFile)> =
        repository.files.iter().filter_map(|seen| Some((seen.survey.as_ref().ok()?, &seen.file))).collect();
    let is_full = |(survey, file): &&(&TableSnapshot, &ListedFile)| {
        survey.used > 0 && file.limit().is_some_and(|limit| survey.used >= limit)
    };
    let used = known.iter().filter(|(survey, _)| was_used(survey)).count();
    let full = known.iter().filter(is_full).count();
    let awaited = known.iter().filter(|(survey, _)| !was_used(survey) && !survey.waiting.is_empty()).count();
    let unknown = repository.files.len() - known.len();
    let notes = [
        (used, "in use or used before"),
        (full, "full"),
        (awaited, "only waited for"),
        (unknown, "not known"),
        (left_out, "idle, not listed"),
    ];
    let notes: Vec<String> =
        notes.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let note = match (repository.files.is_empty(), notes.is_empty()) {
        (true, _) => Style::Dim.paint("never used"),
        (false, true) => Style::Dim.paint("none in use"),
        (false, false) => notes.join(", "),
    };
    let dash = || "-".to_owned();
    let limit = repository.limit.map_or_else(dash, |limit| limit.to_string());
    [Style::Name.paint(&visible(&repository.name)), dash(), limit, dash(), dash(), dash(), dash(), note]
}

/// Whether a slot is or was held: waiting and refused launches never held one.
fn was_used(survey: &TableSnapshot) -> bool {
    survey.used > 0 || survey.last_start.is_some() || survey.last_end.is_some()
}

fn line(title: String, seen: &Seen, clock: &Clock) -> [String; 8] {
    let Seen { file, survey, free } = seen;
    let unknown = if file.failure().is_some() { "?" } else { "-" };
    let limit_text = file.limit().map_or_else(|| unknown.to_owned(), |limit| limit.to_string());
    match survey {
        Ok(survey) => {
            let oldest = survey.oldest().and_then(|holder| holder.age(clock.system_time()));
            [
                title,
                survey.used.to_string(),
                limit_text,
                free.map_or_else(|| "-".to_owned(), shown_free),
                (file.kept_idle(survey) + free.map_or(0, |free| free.for_queue)).to_string(),
                file.queue.show(survey.waiting.len()),
                oldest.map_or_else(|| "-".to_owned(), age),
                note(file, survey, *free, clock),
            ]
        }
        Err(error) => {
            let unknown = || "?".to_owned();
            let error = Style::Fault.paint(&error.to_string());
            [title, unknown(), limit_text, unknown(), unknown(), unknown(), unknown(), error]
        }
    }
}

fn shown_free(free: Free) -> String {
    if free.now == 0 { Style::Warning.paint("0") } else { free.now.to_string() }
}

fn note(file: &ListedFile, survey: &TableSnapshot, free: Option<Free>, clock: &Clock) -> String {
    if let Some(failure) = file.failure() {
        return Style::Fault.paint(&failure.to_string());
    }
    let use_of_it = note_of_use(file, survey, clock);
    let for_queue = free.and_then(Free::note).unwrap_or_default();
    let outside = file.outside_note().unwrap_or_default();
    let lingering = ListedFile::linger_note(survey).unwrap_or_default();
    let notes = [use_of_it, outside, lingering, for_queue, file.limit_note().unwrap_or_default()];
    notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The use exceeds the limit if the limit was lowered, or if a rule has `action = "count"`.
fn note_of_use(file: &ListedFile, survey: &TableSnapshot, clock: &Clock) -> String {
    match file.limit() {
        Some(0) => Style::Warning.paint("closed: its limit is 0"),
        Some(limit) if survey.used > limit => {
            Style::Warning.paint(&format!("{} over the limit", survey.used - limit))
        }
        _ if survey.used > 0 && file.keeps() => file.kept_note(survey).unwrap_or_default(),
        _ if survey.used == 0 => {
            survey.last_start.map_or_else(String::new, |last| format!("last start {}", clock.short(last)))
        }
        _ => String::new(),
    }
}

fn to_json(repositories: &[Surveyed]) -> String {
    let listed: Vec<Value> = repositories
        .iter()
        .flat_map(|repository| &repository.files)
        .map(|Seen { file, survey, free }| {
            let mut value = match survey {
                Ok(survey) => {
                    let mut value = file.read_to_json(survey, *free);
                    value["free"] = json!(free.map(|free| free.now));
                    value["waiting"] = json!(survey.waiting.len());
                    value["oldest"] =
                        json!(survey.oldest().and_then(|holder| holder.since).and_then(Clock::stamp));
                    value["last_start"] = json!(survey.last_start.and_then(Clock::stamp));
                    value
                }
                Err(error) => {
                    let mut value = file.to_json();
                    value["error"] = json!(error.to_string());
                    value
                }
            };
            if let Some(failure) = file.failure() {
                value["error"] = json!(failure.to_string());
            }
            value
        })
        .collect();
    json::render(&Value::Array(listed))
}
