//! `rungate report`: what logs tell, as a page that can be mailed, or as the numbers behind it.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::{
    cli::ReportArguments,
    commands::{
        history,
        shared::{brought_accounts::KnownAccounts, print, situation::Situation},
    },
    error::Error,
    escape::visible,
    exit_status::ExitStatus,
    output::{clock::Clock, figures::count, json},
    policy::{Hours, Policy},
    report::{
        census::Census,
        figure::Figure,
        figures::{Called, figures},
        openmetrics::openmetrics,
        page::page,
    },
    sys::replaced_file,
    terms::names::Names,
};

/// Everybody whom it is mailed to can read it anyway.
const MODE: u32 = 0o644;

/// Prints or writes it.
pub(super) fn run(arguments: &ReportArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    // A log can be told of without any policy; only what rules have to say is missing then.
    let policy = situation.load_silently(arguments.policy.policy.clone()).unwrap_or_default();
    let accounts = KnownAccounts::of(&situation, arguments.accounts.as_deref())?;
    let census = census(&situation, &policy, arguments)?;
    let text = if arguments.openmetrics {
        openmetrics(&census)
    } else {
        let figures = drawn(&census, &policy, &accounts);
        match (arguments.json, arguments.csv) {
            (true, _) => json::render(&to_json(&figures)),
            (_, true) => to_csv(&figures),
            _ => page(&arguments.title, &subtitle(&census, &policy), &figures),
        }
    };
    let Some(output) = &arguments.output else { return print(&text) };
    let path = situation.directory.join(output);
    replaced_file::replace(&path, text.as_bytes(), MODE).map_err(|failure| {
        Error::new(ExitStatus::System, format!("{} cannot be written: {failure}", visible(&path)))
    })?;
    Ok(ExitStatus::Success as u8)
}

fn census(situation: &Situation, policy: &Policy, arguments: &ReportArguments) -> Result<Census, Error> {
    let mut census = Census::new(Hours::in_zone(policy.time_zone()));
    history::each_of(situation, &arguments.files, &arguments.span, &mut |event| {
        census.see(&event);
        Some(event)
    })?;
    census.close();
    if census.span.is_none() {
        return Err(Error::new(ExitStatus::Usage, "the log tells of nothing").advise(
            "Refusals are in it where the policy says: [log]; starts too with events = \"all\"".to_owned(),
        ));
    }
    Ok(census)
}

fn drawn(census: &Census, policy: &Policy, accounts: &KnownAccounts) -> Vec<Figure> {
    let user = |uid: u32| accounts.user_name(uid).ok().flatten().unwrap_or_else(|| uid.to_string());
    let group = |gid: u32| accounts.group_name(gid).ok().flatten().unwrap_or_else(|| gid.to_string());
    let message = |name: &str| -> Option<String> {
        let rule = policy.rules().iter().find(|rule| rule.shown_name() == name)?;
        rule.message().map(str::to_owned)
    };
    figures(census, &Called { user: &user, group: &group, message: &message, zone: policy.time_zone() })
}

fn subtitle(census: &Census, policy: &Policy) -> String {
    let clock = Clock::in_zone(policy.time_zone());
    let (begin, end) = census.span.unwrap_or_default();
    let moment = |micros: u64| clock.day_and_time(UNIX_EPOCH + Duration::from_micros(micros));
    format!(
        "{} launches of {} users, {} to {}",
        count(census.all.launches),
        count(census.users.len() as u64),
        moment(begin),
        moment(end)
    )
}

/// For each figure its rows, each an object by the titles of the columns.
fn to_json(figures: &[Figure]) -> Value {
    let row = |figure: &Figure, row: &Vec<String>| -> Value {
        let fields = figure.head.iter().zip(row).map(|(name, value)| ((*name).to_owned(), json!(value)));
        Value::Object(fields.collect::<Map<String, Value>>())
    };
    let figure = |figure: &Figure| {
        json!({
            "id": figure.id,
            "title": figure.title,
            "says": figure.says,
            "rows": figure.rows.iter().map(|cells| row(figure, cells)).collect::<Vec<_>>(),
        })
    };
    json!({ "figures": figures.iter().map(figure).collect::<Vec<_>>() })
}

/// One line for each cell: spreadsheets make a table of any of them.
fn to_csv(figures: &[Figure]) -> String {
    let mut text = "figure,row,column,value\n".to_owned();
    for figure in figures {
        for (number, row) in figure.rows.iter().enumerate() {
            for (name, value) in figure.head.iter().zip(row) {
                let number = (number + 1).to_string();
                let cells = [figure.id.as_str(), number.as_str(), name, value.as_str()];
                text.push_str(&cells.map(quoted).join(","));
                text.push('\n');
            }
        }
    }
    text
}

/// A cell: in quotes where it has a comma, and never a formula for whoever opens it.
fn quoted(cell: &str) -> String {
    let text = visible(cell);
    let text = if text.starts_with(['=', '+', '@', '\t']) { format!("'{text}") } else { text };
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
