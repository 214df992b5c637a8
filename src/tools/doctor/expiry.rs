//! Overdue holders: whether anything ends them while no launch wants their slot. Otherwise they continue
//! until a launch comes that may end them, of root or of their own user.

use super::{
    boot::{self, Unit},
    command_line::word,
    context::Context,
    finding::{Finding, Section},
    jobs,
};
use crate::{
    cli::Topic,
    judge::terms::{keyword::Keeper, span_of_time::show_duration},
    policy::{Policy, Repository},
    sys::executable,
    text::escape::Show,
};

const TIMER: &str = "rungate-overdue.timer";
const SERVICE: &str = "rungate-overdue.service";

/// The findings that depend on time.
const END_OVERDUE: &str = "rungate end --overdue";

/// What happens to overdue holders if nothing ends them.
const OTHERWISE: &str =
    "overdue holders continue until a launch of root, or of their own user, needs the slot";

pub(super) fn look(examination: &Context) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Expiry);
    };
    let limited = limited(policy);
    if limited.is_empty() {
        return Section::new(Topic::Expiry, "not needed: nothing in lock files is ever overdue", Vec::new());
    }
    let finding = match jobs::saying(END_OVERDUE) {
        Some(job) => Finding::fine("expiry", format!("{}: {END_OVERDUE}", job.shown())),
        None if boot::is_systemd() => of_timer(),
        None => Finding::warning("expiry-off", format!("nothing runs \"{END_OVERDUE}\": {OTHERWISE}"))
            .mend(cron()),
    };
    Section::new(Topic::Expiry, limited.join(", "), vec![finding])
}

/// The system's repositories whose holders can be overdue, each with how long they have. The agent ends its
/// own.
fn limited(policy: &Policy) -> Vec<String> {
    let is_looked_after =
        |known: &&Repository| known.keeper() == Keeper::File && policy.layers()[known.layer].is_of_system();
    let shown = |known: &Repository| {
        let after = known.pace().expiry?.after;
        Some(format!("{} after {}", known.shown_name().shown(), show_duration(after)))
    };
    policy.repositories().iter().filter(is_looked_after).filter_map(shown).collect()
}

fn of_timer() -> Finding {
    let unit = Unit::ask(TIMER, "LoadState,ActiveState,UnitFileState,LastTriggerUSec");
    let Some(unit) = unit else {
        return Finding::note("expiry-unknown", format!("systemctl does not report the state of {TIMER}"))
            .mend(format!("systemctl status {TIMER}"));
    };
    let off = |what: &str| Finding::warning("expiry-off", format!("{TIMER} {what}: {OTHERWISE}"));
    let enable = format!("systemctl enable --now {TIMER}");
    match (unit.said("LoadState"), unit.said("ActiveState"), unit.said("UnitFileState")) {
        ("not-found", ..) => off("is not installed").mend(cron()),
        ("masked", ..) => off("is masked").mend(format!("systemctl unmask {TIMER} && {enable}")),
        (_, state, _) if state != "active" => off("is not running").mend(enable),
        (.., "disabled") => Finding::warning(
            "expiry-until-boot",
            format!("{TIMER} runs, but is not enabled for the next boot"),
        )
        .mend(enable),
        _ => of_last_run(unit.said("LastTriggerUSec")),
    }
}

/// A timer that runs may start what fails.
fn of_last_run(last: &str) -> Finding {
    let service = Unit::ask(SERVICE, "Result,ExecMainStatus");
    let result = service.as_ref().map_or("", |service| service.said("Result"));
    let when = match last {
        "" | "n/a" => "has not run yet".to_owned(),
        last => format!("last run {}", last.shown()),
    };
    if result.is_empty() || result == "success" {
        return Finding::fine("expiry", format!("{TIMER} is on; {when}"));
    }
    let status = service.as_ref().map_or("", |service| service.said("ExecMainStatus")).shown().to_string();
    let text = format!("{SERVICE} failed ({}, status {status}; {when}): {OTHERWISE}", result.shown());
    Finding::warning("expiry-failed", text).mend(format!("journalctl -u {SERVICE}"))
}

/// A job that does what the timer does.
fn cron() -> String {
    let rungate = executable::own_path().map_or_else(|| "rungate".to_owned(), word);
    format!("echo '*/5 * * * * root {rungate} end --overdue' >/etc/cron.d/rungate")
}
