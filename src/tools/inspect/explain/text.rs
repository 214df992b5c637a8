//! `explain` for people: the request, every rule, every claim, and what would happen now.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    path::Path,
    time::SystemTime,
};

use super::{Explained, Standing};
use crate::{
    judge::{Outcome, Verdict},
    launch::{
        Situation,
        refusals::{
            foretold::{title, verdict_on},
            limits,
        },
    },
    policy::{Policy, Selector, Wait},
    sys::accounts,
    text::{Clock, ExitStatus, Style, contact_line, system_time, table::Table, visible},
};

impl Explained<'_, '_> {
    pub(super) fn to_text(&self, command: &OsString) -> String {
        let mut text = self.request(command);
        text.push('\n');
        text += &self.rules();
        if self.prospects().next().is_some() {
            text.push('\n');
            text += &self.claims();
        }
        text.push('\n');
        text += &self.now();
        text
    }

    fn request(&self, command: &OsString) -> String {
        let program = if self.missing.is_some() {
            "not found here, judged by its name".to_owned()
        } else {
            visible(&self.program.canonical)
        };
        let shim =
            self.program.shim.as_ref().map_or_else(String::new, |shim| format!(" (shim {})", visible(shim)));
        let request = format!("request  {} -> {program}{shim}\n         ", visible(command));
        let person = person(self.situation, self.policy, &self.clock, system_time(self.now));
        request + &person + &self.session()
    }

    fn rules(&self) -> String {
        let is_shown =
            |outcome: &Outcome| self.arguments.verbose || !matches!(outcome, Outcome::No(Selector::Commands));
        let mut table = Table::new(&["RULE", "WHERE", "RESULT"]);
        let mut hidden = 0;
        for entry in &self.decision.trace {
            if is_shown(&entry.outcome) {
                table.row([
                    visible(entry.rule.shown_name()),
                    short_place(&entry.rule.place().to_string()),
                    entry.describe(self.policy),
                ]);
            } else {
                hidden += 1;
            }
        }
        match (hidden, self.decision.trace.len()) {
            (_, 0) => "No rule in the policy\n".to_owned(),
            (0, _) => table.render(),
            (hidden, rules) if hidden == rules => {
                format!("No rule for it; {hidden} for other commands (-v)\n")
            }
            (hidden, _) => format!("{}... {hidden} more, for other commands (-v)\n", table.render()),
        }
    }

    fn claims(&self) -> String {
        let mut table = Table::new(&["CLAIM", ">WANT", ">USED", ">LIMIT", ">WAITING", ">WAIT", "VERDICT"]);
        for (standing, prospect) in self.prospects() {
            let unknown = || "?".to_owned();
            let found = prospect.found.as_ref();
            table.row([
                format!("{}{}", standing.joint(), title(prospect.claim)),
                limits::wanted(prospect.claim),
                found.map_or_else(|_| unknown(), |found| found.occupancy.shown().to_string()),
                prospect.claim.amount.effective_limit().to_string(),
                found.map_or_else(|_| unknown(), |found| prospect.claim.queue.show(found.waiting.len())),
                prospect.claim.wait.resolve().to_string(),
                in_colour(&verdict_on(prospect, &self.clock)),
            ]);
        }
        table.render()
    }

    fn now(&self) -> String {
        let (verdict, status) = self.verdict();
        let mut text = match (status, self.missing) {
            (None, Some(missing)) => {
                let missing = Style::Warning.paint(&format!("not found here, status {}", missing as u8));
                format!("now   {missing}; where it is found: {verdict}\n")
            }
            (None, None) => format!("now   {}\n", first_word(Style::Good, &verdict)),
            (Some(ExitStatus::Success), _) => {
                format!("now   {}: {verdict}\n", Style::Warning.paint("not started, status 0"))
            }
            (Some(status), _) => {
                let refused = Style::Fault.paint(&format!("refused, status {}", status as u8));
                format!("now   {refused}: {verdict}\n")
            }
        };
        if let Verdict::Start(terms) = &self.decision.verdict
            && !terms.demands.is_empty()
        {
            let _ = writeln!(text, "wait  {}\nhold  {}", self.wait(), terms.hold.resolve());
            for unclear in &terms.unclear {
                let _ = writeln!(text, "note  {unclear}");
            }
        }
        for (_, prospect) in self.prospects() {
            for slot in prospect.unreadable_slots() {
                let title = title(prospect.claim);
                let _ =
                    writeln!(text, "note  {title}, slot {}: {}; {}", slot.slot, slot.text(), slot.advice());
            }
        }
        for contact in self.contacts() {
            let _ = writeln!(text, "{}", contact_line(contact));
        }
        text + "Nothing was taken.\n"
    }

    /// How long it would wait for what blocks it; for everything, if nothing does.
    fn wait(&self) -> String {
        if let Ok(Some(refusal)) = &self.outlook.refusal {
            return format!("{}{}", limits::foretold(refusal), limits::with_option(refusal));
        }
        let mut waits: Vec<Wait> =
            self.prospects().map(|(_, prospect)| prospect.claim.wait.resolve()).collect();
        waits.dedup();
        match waits.as_slice() {
            [same] => limits::at_most(*same),
            _ => "for each claim as long as WAIT says".to_owned(),
        }
    }
}

/// `ann (4711), groups users cad, host ws17, Fri 20 Nov 14:02`, and below it the files of the policy.
pub(super) fn person(situation: &Situation, policy: &Policy, clock: &Clock, now: SystemTime) -> String {
    let Situation { credentials, host, .. } = situation;
    let user = accounts::user_name(credentials.uid)
        .ok()
        .flatten()
        .map_or_else(|| credentials.uid.to_string(), |name| format!("{name} ({})", credentials.uid));
    let groups: Vec<String> = credentials
        .groups
        .iter()
        .map(|gid| accounts::group_name(*gid).ok().flatten().unwrap_or_else(|| gid.to_string()))
        .collect();
    let zone = policy.time_zone_name().map_or_else(String::new, |name| format!(" {name}"));
    let mut text = format!(
        "{}, groups {}, host {}, {}{}\n",
        visible(user),
        visible(groups.join(" ")),
        visible(host),
        clock.day_and_time(now),
        visible(zone)
    );
    let files: Vec<String> = policy.files().map(|file| visible(file.path())).collect();
    let _ = match files.as_slice() {
        [] => writeln!(text, "policy   none"),
        [only] => writeln!(text, "policy   {only}"),
        [first, more @ ..] => writeln!(text, "policy   {first} and {} more", more.len()),
    };
    text
}

impl Standing {
    /// The connection of a claim to the one before it.
    fn joint(self) -> &'static str {
        match (self.alternative, self.place) {
            (0, 0) => "",
            (_, 0) => "or ",
            _ => "+ ",
        }
    }
}

/// `ok` and `FULL` must be visible at a glance.
fn in_colour(verdict: &str) -> String {
    let is_loud = |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
    let first = verdict.split([' ', ':']).next().unwrap_or_default();
    match first {
        "ok" => first_word(Style::Good, verdict),
        first if is_loud(first) => first_word(Style::Fault, verdict),
        _ => verdict.to_owned(),
    }
}

fn first_word(style: Style, text: &str) -> String {
    let (first, rest) = text.split_at(text.find([' ', ':', ',']).unwrap_or(text.len()));
    format!("{}{rest}", style.paint(first))
}

/// The last name of a path, and the one before it for a drop-in, are enough to distinguish policy files.
fn short_place(place: &str) -> String {
    let mut names = place.rsplitn(3, '/');
    match (names.next(), names.next()) {
        (Some(file), Some(directory)) if Path::new(directory).extension() == Some(OsStr::new("d")) => {
            format!("{directory}/{file}")
        }
        (file, _) => file.unwrap_or(place).to_owned(),
    }
}
