//! What a log adds up to, for each repository and each rule, and what it suggests. The paper on adaptive locks asks whether
//! its two times could be tuned from experience: this says what the experience is, and changes nothing.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use crate::{
    log::event::{Event, Kind},
    output::{age::age, table::Table, visible::visible},
    policy::show_duration,
};

/// The figures of one repository or one rule.
#[derive(Default)]
struct Figures {
    starts: Vec<u64>,
    refusals: usize,
    too_soon: usize,
    expiries: usize,
    waits: Vec<f64>,
    runs: Vec<f64>,
}

/// What a log adds up to.
pub(super) struct Summary {
    by_repository: BTreeMap<String, Figures>,
    by_rule: BTreeMap<String, Figures>,
}

/// With fewer runs than this nothing is suggested: chance would be taken for a rule.
const ENOUGH: usize = 5;

impl Summary {
    /// Adds the events up. What a process waited, and how long it ran, counts where it was started.
    pub(super) fn of(events: &[Event]) -> Self {
        let mut summary = Self { by_repository: BTreeMap::new(), by_rule: BTreeMap::new() };
        let mut waited: BTreeMap<i32, f64> = BTreeMap::new();
        let mut running: BTreeMap<i32, &Event> = BTreeMap::new();
        for event in events {
            match event.event {
                Kind::Waited => {
                    waited.insert(event.pid, event.seconds.unwrap_or_default());
                }
                Kind::Started => {
                    let wait = waited.remove(&event.pid);
                    running.insert(event.pid, event);
                    summary.each(event, |figures| {
                        figures.starts.push(event.time);
                        figures.waits.extend(wait);
                    });
                }
                Kind::Ended => {
                    if let (Some(start), Some(seconds)) = (running.remove(&event.pid), event.seconds) {
                        summary.each(start, |figures| figures.runs.push(seconds));
                    }
                }
                Kind::Refused | Kind::WouldRefuse => {
                    summary.each(event, |figures| figures.refusals += 1);
                }
                Kind::TooSoon => summary.each(event, |figures| figures.too_soon += 1),
                Kind::Expired => summary.each(event, |figures| figures.expiries += 1),
            }
        }
        summary
    }

    fn each(&mut self, event: &Event, mut add: impl FnMut(&mut Figures)) {
        for repository in &event.repositories {
            let name = repository.split('=').next().unwrap_or(repository);
            add(self.by_repository.entry(name.to_owned()).or_default());
        }
        for rule in &event.rules {
            add(self.by_rule.entry(rule.clone()).or_default());
        }
    }

    /// For people.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for (title, group) in [("REPOSITORY", &self.by_repository), ("RULE", &self.by_rule)] {
            if group.is_empty() {
                continue;
            }
            let mut table = Table::new(&[
                title,
                ">STARTS",
                ">REFUSED",
                ">TOO SOON",
                ">EXPIRED",
                "WAIT MEDIAN/95%/MAX",
                "RUN MEDIAN/95%/MAX",
            ]);
            for (name, figures) in group {
                table.row([
                    visible(name),
                    figures.starts.len().to_string(),
                    figures.refusals.to_string(),
                    figures.too_soon.to_string(),
                    figures.expiries.to_string(),
                    spread(&figures.waits),
                    spread(&figures.runs),
                ]);
            }
            text += &table.render();
            text.push('\n');
        }
        for (name, figures) in &self.by_repository {
            for suggestion in figures.suggestions() {
                let _ = writeln!(text, "{}: {suggestion}", visible(name));
            }
        }
        text
    }

    /// For scripts.
    pub(super) fn to_json(&self) -> Value {
        let group = |group: &BTreeMap<String, Figures>| {
            let entries = group.iter().map(|(name, figures)| (name.clone(), figures.to_json()));
            Value::Object(entries.collect())
        };
        json!({ "repositories": group(&self.by_repository), "rules": group(&self.by_rule) })
    }
}

impl Figures {
    fn to_json(&self) -> Value {
        let quantiles = |values: &[f64]| {
            json!({
                "count": values.len(),
                "median": quantile(values, 0.5),
                "p95": quantile(values, 0.95),
                "longest": quantile(values, 1.0),
            })
        };
        json!({
            "starts": self.starts.len(),
            "refusals": self.refusals,
            "too_soon": self.too_soon,
            "expiries": self.expiries,
            "waits": quantiles(&self.waits),
            "runs": quantiles(&self.runs),
            "suggestions": self.suggestions(),
        })
    }

    /// Reasons with their numbers, for times that the experience speaks for.
    fn suggestions(&self) -> Vec<String> {
        let mut suggestions = Vec::new();
        if self.runs.len() >= ENOUGH
            && let (Some(usual), Some(longest)) = (quantile(&self.runs, 0.95), quantile(&self.runs, 1.0))
        {
            let twice = (usual * 2.0).max(longest * 1.1);
            suggestions.push(format!(
                "expire_after = \"{}\": 95 % of {} runs took up to {}, the longest {}",
                show_duration(round_up(twice)),
                self.runs.len(),
                age(Duration::from_secs_f64(usual)),
                age(Duration::from_secs_f64(longest)),
            ));
        }
        let gaps: Vec<f64> = self
            .starts
            .windows(2)
            .map(|pair| Duration::from_millis(pair[1].saturating_sub(pair[0])).as_secs_f64())
            .collect();
        if gaps.len() >= ENOUGH
            && let (Some(usual), Some(shortest)) = (quantile(&gaps, 0.5), quantile(&gaps, 0.0))
            && shortest < usual / 4.0
        {
            suggestions.push(format!(
                "if_elapsed = \"{}\": starts are {} apart as a rule, but some only {}",
                show_duration(round_up(usual / 2.0)),
                age(Duration::from_secs_f64(usual)),
                age(Duration::from_secs_f64(shortest)),
            ));
        }
        suggestions
    }
}

/// To whole seconds, and beyond ten minutes to whole minutes.
fn round_up(seconds: f64) -> Duration {
    let unit = if seconds > 600.0 { 60.0 } else { 1.0 };
    Duration::try_from_secs_f64((seconds / unit).ceil() * unit).unwrap_or_default()
}

/// The smallest value that so large a part of all values does not exceed (nearest rank).
fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a rank is between 1 and the number of values"
    )]
    let rank = ((sorted.len() as f64 * part).ceil() as usize).max(1);
    sorted.get(rank - 1).copied()
}

fn spread(values: &[f64]) -> String {
    let part = |part| {
        quantile(values, part)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map_or_else(|| "-".to_owned(), age)
    };
    if values.is_empty() { "-".to_owned() } else { format!("{} / {} / {}", part(0.5), part(0.95), part(1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(part: f64, expected: Option<f64>) {
        assert_eq!(quantile(&[3.0, 1.0, 2.0, 4.0], part), expected);
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        case(0.0, Some(1.0));
        case(0.5, Some(2.0));
        case(0.95, Some(4.0));
        case(1.0, Some(4.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    fn event(kind: Kind, pid: i32, time: u64, seconds: Option<f64>) -> Event {
        let mut event = Event::now(kind, "sync", 0);
        (event.pid, event.time, event.seconds) = (pid, time, seconds);
        if kind == Kind::Started {
            event.repositories = vec!["nightly=1".to_owned()];
        }
        event
    }

    #[test]
    fn a_suggestion_comes_with_its_reason() {
        let mut events = Vec::new();
        for run in 0..6_u32 {
            let pid = i32::try_from(run).expect("it is small");
            let time = u64::from(run) * 3_600_000;
            events.push(event(Kind::Started, pid, time, None));
            events.push(event(Kind::Ended, pid, time + 60_000, Some(60.0)));
        }
        let summary = Summary::of(&events);
        let figures = &summary.by_repository["nightly"];
        assert_eq!(
            figures.suggestions(),
            ["expire_after = \"2m\": 95 % of 6 runs took up to 1m00s, the longest 1m00s"]
        );
    }
}
