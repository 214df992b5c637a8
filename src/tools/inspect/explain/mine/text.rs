//! `explain` without a command, for people.

use std::{fmt::Write as _, time::Duration};

use super::{Limit, Mine, Past, lower, verdict};
use crate::{
    launch::SystemNames,
    text::{Style, age, answer, table::Table, visible},
    tools::inspect::explain::text::person,
};

impl<F: FnOnce() -> Past> Mine<'_, '_, F> {
    pub(super) fn to_text(&self) -> String {
        let mut parts = vec![answer(&self.person()), self.limits()];
        parts.extend([self.holders(), self.queue(), answer(&self.waits()), answer(&self.failures())]);
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    fn person(&self) -> String {
        let now = self.clock.system_time();
        format!("user     {}", person(self.situation, self.policy, &self.clock, now))
    }

    fn limits(&self) -> String {
        if let Some((what, why)) = verdict(self.personal) {
            return answer(&format!("{}{}\n", Style::Name.paint(what), visible(why)));
        }
        if self.limits.is_empty() && self.personal.open.is_empty() {
            let user = visible(self.names.user(self.uid()));
            return answer(&format!("No rule of the policy limits what {user} starts.\n"));
        }
        let titles = ["REPOSITORY", ">LIMIT", ">OWN", ">ALL", ">WAIT", "NOTE"];
        let mut table = Table::new(&titles).in_one_line();
        for limit in &self.limits {
            table.row(limit.row());
        }
        for repository in &self.personal.open {
            let dash = || "-".to_owned();
            let name = Style::Name.paint(&visible(repository.shown_name()));
            let note = "depends on the command: rungate explain -- COMMAND".to_owned();
            table.row([name, dash(), dash(), dash(), dash(), note]);
        }
        table.render()
    }

    fn holders(&self) -> String {
        let titles = ["HELD", ">SLOT", ">PID", "SINCE", ">AGE", "COMMAND", "RULE"];
        let mut table = Table::new(&titles).in_one_line();
        let unknown = || "?".to_owned();
        for (file, holder) in self.held() {
            let (first, last) = holder.slots;
            table.row([
                Style::Name.paint(&visible(file.title())),
                if first == last { first.to_string() } else { format!("{first}-{last}") },
                holder.shown_pid().unwrap_or_else(unknown),
                holder.since.map_or_else(unknown, |since| self.clock.short(since)),
                holder.age(self.clock.system_time()).map_or_else(unknown, age),
                holder.command.as_ref().map_or_else(unknown, visible),
                holder.rule.as_ref().map_or_else(String::new, visible),
            ]);
        }
        if self.held().next().is_some() { table.render() } else { "No slot is held.\n".to_owned() }
    }

    fn queue(&self) -> String {
        let titles = ["QUEUE", "PLACE", ">PID", "SINCE", ">AGE", "COMMAND", "WAITS FOR"];
        let mut table = Table::new(&titles).in_one_line();
        let unknown = || "?".to_owned();
        for place in self.places() {
            let waited = place.waiter.waited();
            let since = waited.and_then(|waited| self.clock.system_time().checked_sub(waited));
            table.row([
                Style::Name.paint(&visible(place.file.title())),
                format!("{} of {}", place.number, place.of),
                place.waiter.process.shown_pid().unwrap_or_else(unknown),
                since.map_or_else(unknown, |since| self.clock.short(since)),
                waited.map_or_else(unknown, age),
                place.waiter.command().map_or_else(unknown, visible),
                place.waits_for.show(&self.names),
            ]);
        }
        if self.places().next().is_some() { table.render() } else { String::new() }
    }

    /// How long waits took: of the repositories that have any.
    fn waits(&self) -> String {
        let names = self.repositories();
        if names.is_empty() {
            return String::new();
        }
        if let Some(failure) = &self.past.failure {
            return format!("Past waits are not known: {failure}\n");
        }
        let mut text = String::new();
        for name in names {
            let Some(waits) = self.past.waits.get(name) else { continue };
            let wait = |percent| age(Duration::from_micros(waits.took.percentile(percent)));
            let took = match waits.took.count {
                0 => "none got a slot".to_owned(),
                1 => format!("1 took {}", wait(50.0)),
                count => format!("half of {count} took at most {}, 90% at most {}", wait(50.0), wait(90.0)),
            };
            let gave_up = match waits.gave_up {
                0 => String::new(),
                gave_up => format!(", {gave_up} gave up"),
            };
            let name = Style::Name.paint(&visible(name));
            let _ = writeln!(text, "Waits for {name} in the last {} days: {took}{gave_up}", Past::DAYS);
        }
        text
    }

    fn failures(&self) -> String {
        let mut text = String::new();
        for (title, failure) in self.unseen() {
            let title = Style::Name.paint(&visible(title));
            let _ = writeln!(text, "{title}: {}", Style::Fault.paint(&failure));
        }
        text
    }
}

impl Limit<'_> {
    fn row(&self) -> [String; 6] {
        let unknown = || "?".to_owned();
        let usable = self.claim.amount.usable_slots();
        let mut notes = lower(self);
        notes.extend(self.claim.reason_of_limit());
        if usable < self.claim.amount.effective_limit() {
            notes.push(crate::judge::terms::provenance::list(&self.claim.kept));
        }
        let is_full = self.survey.as_ref().is_ok_and(|survey| survey.used >= usable);
        let used =
            |used: u64| if is_full { Style::Warning.paint(&used.to_string()) } else { used.to_string() };
        let found = self.survey.as_ref().ok();
        [
            Style::Name.paint(&visible(self.claim.title(&SystemNames))),
            usable.to_string(),
            found.map_or_else(unknown, |_| self.mine.to_string()),
            found.map_or_else(unknown, |survey| used(survey.used)),
            found.map_or_else(unknown, |survey| self.claim.queue.show(survey.waiting.len())),
            visible(notes.join(", ")),
        ]
    }
}
