//! What `explain` says to people: the request, every rule, every claim, and what would happen now.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    path::Path,
};

use crate::{
    commands::{
        explain::{Explained, Standing},
        refusals::{
            foretold::{title, verdict_on},
            waits,
        },
        shared::situation::Situation,
    },
    decision::{Outcome, Verdict},
    escape::visible,
    exit_status::ExitStatus,
    output::clock::system_time,
    output::table::Table,
    policy::{Selector, Wait},
    sys::accounts,
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
        let Situation { credentials, host, .. } = self.situation;
        let user = accounts::user_name(credentials.uid)
            .ok()
            .flatten()
            .map_or_else(|| credentials.uid.to_string(), |name| format!("{name} ({})", credentials.uid));
        let groups: Vec<String> = credentials
            .groups
            .iter()
            .map(|gid| accounts::group_name(*gid).ok().flatten().unwrap_or_else(|| gid.to_string()))
            .collect();
        let zone = self.policy.time_zone_name().map_or_else(String::new, |name| format!(" {name}"));
        let program = if self.missing.is_some() {
            "not found here, judged by its name".to_owned()
        } else {
            visible(&self.program.canonical)
        };
        let shim =
            self.program.shim.as_ref().map_or_else(String::new, |shim| format!(" (shim {})", visible(shim)));
        let mut text = format!("request  {} -> {program}{shim}\n", visible(command));
        let _ = writeln!(
            text,
            "         {}, groups {}, host {}, {}{}",
            visible(user),
            visible(groups.join(" ")),
            visible(host),
            self.clock.day_and_time(system_time(self.now)),
            visible(zone)
        );
        let files: Vec<String> = self.policy.files().map(|file| visible(file.path())).collect();
        let _ = match files.as_slice() {
            [] => writeln!(text, "policy   none"),
            [only] => writeln!(text, "policy   {only}"),
            [first, more @ ..] => writeln!(text, "policy   {first} and {} more", more.len()),
        };
        text + &self.session()
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
                    entry.describe(self.policy).to_string(),
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
                waits::wanted(&prospect.claim.amount),
                found.map_or_else(|_| unknown(), |found| found.occupancy.shown().to_string()),
                prospect.claim.amount.effective_limit().to_string(),
                found.map_or_else(|_| unknown(), |found| prospect.claim.queue.show(found.waiting.len())),
                prospect.claim.wait.resolve().to_string(),
                verdict_on(prospect, &self.clock),
            ]);
        }
        table.render()
    }

    fn now(&self) -> String {
        let (verdict, status) = self.verdict();
        let mut text = match (status, self.missing) {
            (None, Some(missing)) => {
                format!("now   not found here, status {}; where it is found: {verdict}\n", missing as u8)
            }
            (None, None) => format!("now   {verdict}\n"),
            (Some(ExitStatus::Success), _) => format!("now   not started, status 0: {verdict}\n"),
            (Some(status), _) => format!("now   refused, status {}: {verdict}\n", status as u8),
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
        text + "Nothing was taken.\n"
    }

    /// How long it would wait for what is in its way; for everything, where nothing is.
    fn wait(&self) -> String {
        if let Ok(Some(refusal)) = &self.outlook.refusal {
            return format!("{}{}", waits::foretold(refusal), waits::with_option(refusal));
        }
        let mut waits: Vec<Wait> =
            self.prospects().map(|(_, prospect)| prospect.claim.wait.resolve()).collect();
        waits.dedup();
        match waits.as_slice() {
            [same] => waits::at_most(*same),
            _ => "for each claim as long as WAIT says".to_owned(),
        }
    }
}

impl Standing {
    /// What ties a claim to the one before it.
    fn joint(self) -> &'static str {
        match (self.alternative, self.place) {
            (0, 0) => "",
            (_, 0) => "or ",
            _ => "+ ",
        }
    }
}

/// The last name of a path, and the one before it for a drop-in, are enough to tell policy files apart.
fn short_place(place: &str) -> String {
    let mut names = place.rsplitn(3, '/');
    match (names.next(), names.next()) {
        (Some(file), Some(directory)) if Path::new(directory).extension() == Some(OsStr::new("d")) => {
            format!("{directory}/{file}")
        }
        (file, _) => file.unwrap_or(place).to_owned(),
    }
}
