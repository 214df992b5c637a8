//! The databases of users and groups: which ones are queried, whether they answer, and how long that takes. A
//! failed look-up refuses the launch, and a slow one delays every launch.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use super::{Context, Finding, Section};
use crate::{cli::Topic, sys::accounts, text::Show};

const NSSWITCH: &str = "/etc/nsswitch.conf";

/// No user has this name, so every database must be asked.
const NOBODY: &str = "rungate-doctor-asks-for-nobody";

/// A slower look-up delays each launch noticeably.
const LONG: Duration = Duration::from_millis(200);

/// Services that are part of the C library.
const BUILT_IN: [&str; 2] = ["files", "dns"];

pub(super) fn look(examination: &Context) -> Section {
    let text = fs::read_to_string(NSSWITCH).unwrap_or_default();
    let services = |database| services(&text, database);
    let summary =
        format!("users from {}; groups from {}", services("passwd").join(", "), services("group").join(", "));
    let mut findings: Vec<Finding> = ["passwd", "group"]
        .into_iter()
        .flat_map(|database| services(database).into_iter().map(move |service| (database, service)))
        .filter_map(|(database, service)| missing_module(database, service))
        .collect();
    findings.extend([
        timed("a user", || accounts::account_of_name(NOBODY).map(drop)),
        timed("a group", || accounts::group_id(NOBODY).map(drop)),
    ]);
    findings.extend(nameless(examination.situation.credentials.uid));
    Section::new(Topic::Names, summary, findings)
}

/// The services for a database, in their order; the default is the files.
fn services<'t>(text: &'t str, database: &str) -> Vec<&'t str> {
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(database)?.trim_start().strip_prefix(':'));
    let Some(line) = line else { return vec!["files"] };
    let line = line.split('#').next().unwrap_or_default();
    // `[NOTFOUND=return]` is the action after an answer.
    line.split_whitespace().filter(|word| !word.contains(['[', ']', '='])).collect()
}

fn missing_module(database: &str, service: &str) -> Option<Finding> {
    let name = format!("libnss_{service}.so.2");
    let is_there = BUILT_IN.contains(&service)
        || library_directories().iter().any(|directory| Path::new(directory).join(&name).exists());
    (!is_there).then(|| {
        let (service, text) = (service.shown(), name.shown());
        Finding::warning(
            "name-service-missing",
            format!(
                "{NSSWITCH} queries {service} for {database}, but {text} is not installed: its names \
                are unknown here"
            ),
        )
        .fix(format!("Install the package that has {text}, or remove {service} from {NSSWITCH}."))
    })
}

/// Where libraries are, with a directory for each machine on Debian.
fn library_directories() -> Vec<String> {
    let roots = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];
    let below = roots.iter().flat_map(|root| fs::read_dir(root).into_iter().flatten().flatten());
    let of_machines =
        below.map(|entry| entry.path()).filter(|path| path.to_string_lossy().ends_with("-linux-gnu"));
    roots
        .iter()
        .map(|root| (*root).to_owned())
        .chain(of_machines.map(|path| path.to_string_lossy().into_owned()))
        .collect()
}

/// A slow look-up is repeated: this process may have been slow.
fn timed(whom: &str, look_up: impl Fn() -> Result<(), accounts::LookupFailure>) -> Finding {
    let timed = || {
        let begun = Instant::now();
        (look_up(), begun.elapsed())
    };
    let (answer, took) = match timed() {
        (Ok(()), took) if took > LONG => {
            let (answer, again) = timed();
            (answer, took.min(again))
        }
        first => first,
    };
    answered(whom, answer, took)
}

fn answered(whom: &str, answer: Result<(), accounts::LookupFailure>, took: Duration) -> Finding {
    match answer {
        Err(failure) => Finding::fault(
            "look-up-failed",
            format!("{failure}: launches under rules that name {whom} are refused (71)"),
        )
        .fix("getent passwd; getent group; systemctl status sssd nslcd winbind systemd-userdbd"),
        Ok(()) if took > LONG => Finding::warning(
            "look-up-slow",
            format!(
                "a look-up of {whom} that does not exist takes {} ms, and launches may wait for it",
                took.as_millis()
            ),
        )
        .fix("A cache for names fixes that: sssd, nscd or unscd."),
        Ok(()) => Finding::fine(
            "look-up",
            format!("{whom} that does not exist is reported absent in {} µs", took.as_micros()),
        ),
    }
}

/// A caller without a name matches no rule for names.
fn nameless(uid: u32) -> Option<Finding> {
    matches!(accounts::user_name(uid), Ok(None)).then(|| {
        Finding::warning(
            "no-name",
            format!("you, user {uid}, have no name in any database: rules for names do not match you"),
        )
        .fix(format!(
            "A rule can name the number: users = [\"{uid}\"]. To see whether a database is missing: getent passwd {uid}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use crate::tools::doctor::names::*;

    #[test]
    fn services_stand_in_their_order_without_actions() {
        let text = "# comment\npasswd:  files systemd [NOTFOUND=return] sss # more\n group : ldap\n";
        assert_eq!(services(text, "passwd"), ["files", "systemd", "sss"]);
        assert_eq!(services(text, "group"), ["ldap"]);
        assert_eq!(services(text, "netgroup"), ["files"]);
    }

    /// The result must not depend on the machine of the test.
    #[test]
    fn a_look_up_that_takes_long_is_warned_of() {
        assert_eq!(
            answered("a user", Ok(()), LONG),
            Finding::fine("look-up", "a user that does not exist is reported absent in 200000 µs")
        );
        assert_eq!(
            answered("a group", Ok(()), LONG + Duration::from_millis(1)),
            Finding::warning(
                "look-up-slow",
                "a look-up of a group that does not exist takes 201 ms, and launches may wait for it"
            )
            .fix("A cache for names fixes that: sssd, nscd or unscd.")
        );
    }
}
