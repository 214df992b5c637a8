//! The totals of a log, for each repository, rule and user, and the settings that they suggest. The paper on
//! adaptive locks asks whether its two times could be tuned from experience: this reports the experience, and
//! changes nothing.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fmt::Write as _,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    escape::visible,
    log::event::{Event, Kind},
    output::{age::age, table::Table},
    policy::show_duration,
    sys::accounts::NameCache,
};

/// The figures of one repository or one rule.
#[derive(Default)]
struct Figures {
    starts: Vec<u64>,
    refusals: usize,
    would_be_refused: usize,
    too_soon: usize,
    expiries: usize,
    waits: Vec<Duration>,
    runs: Vec<Duration>,
}

/// The totals of a log.
#[derive(Default)]
pub(super) struct Summary {
    /// Of all launches: each counts once, however many repositories and rules it is about.
    all: Figures,
    by_repository: BTreeMap<String, Figures>,
    by_rule: BTreeMap<String, Figures>,
    by_user: BTreeMap<u32, Figures>,
    /// What is not over: waits and runs, and launches that would have been refused and have not started yet.
    waited: HashMap<Process, Duration>,
    running: HashMap<Process, Event>,
    would_be_refused: HashSet<Process>,
}

/// The host and the number of a process.
type Process = (String, i32);

/// With fewer runs than this nothing is suggested: they could be chance.
const ENOUGH: usize = 5;

impl Summary {
    /// Adds an event. How long a process waited and ran counts for the repositories and rules of its start.
    pub(super) fn see(&mut self, event: &Event) {
        let process = (event.host.clone(), event.pid);
        match event.event {
            Kind::Waited => self.waited.extend(event.duration().map(|duration| (process, duration))),
            Kind::Started => {
                let wait = self.waited.remove(&process);
                self.would_be_refused.remove(&process);
                self.each(event, |figures| {
                    figures.starts.push(event.time);
                    figures.waits.extend(wait);
                });
                self.running.insert(process, event.clone());
            }
            Kind::Ended => {
                if let (Some(start), Some(ran)) = (self.running.remove(&process), event.duration()) {
                    self.each(&start, |figures| figures.runs.push(ran));
                }
            }
            Kind::Refused => self.each(event, |figures| figures.refusals += 1),
            // One launch may have two such events: by a rule, and by limits.
            Kind::WouldRefuse if self.would_be_refused.insert(process) => {
                self.each(event, |figures| figures.would_be_refused += 1);
            }
            Kind::WouldRefuse => self.each_part(event, |figures| figures.would_be_refused += 1),
            Kind::TooSoon => self.each(event, |figures| figures.too_soon += 1),
            Kind::Expired if event.has_left() => self.each(event, |figures| figures.expiries += 1),
            Kind::Expired => {}
        }
    }

    fn each(&mut self, event: &Event, mut add: impl FnMut(&mut Figures)) {
        add(&mut self.all);
        add(self.by_user.entry(event.uid).or_default());
        self.each_part(event, add);
    }

    /// Adds to the figures of every repository and every rule, once for each.
    fn each_part(&mut self, event: &Event, mut add: impl FnMut(&mut Figures)) {
        for repository in event.names_of_repositories().collect::<BTreeSet<_>>() {
            add(self.by_repository.entry(repository.to_owned()).or_default());
        }
        for rule in event.rules.iter().collect::<BTreeSet<_>>() {
            add(self.by_rule.entry(rule.clone()).or_default());
        }
    }

    /// For people.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        let groups = [
            ("LAUNCHES", vec![("all".to_owned(), &self.all)]),
            ("REPOSITORY", rows(&self.by_repository)),
            ("RULE", rows(&self.by_rule)),
            ("USER", self.users()),
        ];
        for (title, group) in groups {
            if group.is_empty() {
                continue;
            }
            let mut table = Table::new(&[
                title,
                ">STARTS",
                ">REFUSED",
                ">WOULD",
                ">SOON",
                ">EXPIRED",
                "WAIT 50%/95%/MAX",
                "RUN 50%/95%/MAX",
            ]);
            for (name, figures) in group {
                table.row([
                    name,
                    figures.starts.len().to_string(),
                    figures.refusals.to_string(),
                    figures.would_be_refused.to_string(),
                    figures.too_soon.to_string(),
                    figures.expiries.to_string(),
                    spread(&figures.waits),
                    spread(&figures.runs),
                ]);
            }
            text += &table.render();
            text.push('\n');
        }
        let of = |(name, figures): (&String, &Figures)| {
            let suggestions = figures.suggestions().into_iter();
            suggestions.map(|suggestion| format!("  {}: {suggestion}\n", visible(name))).collect::<String>()
        };
        let suggestions: String = self.by_repository.iter().map(of).collect();
        if !suggestions.is_empty() {
            let _ = write!(text, "For [repository.NAME] these figures suggest:\n{suggestions}");
        }
        text
    }

    /// For scripts.
    pub(super) fn to_json(&self) -> Value {
        let group = |group: &BTreeMap<String, Figures>| {
            let entries = group.iter().map(|(name, figures)| (name.clone(), figures.to_json()));
            Value::Object(entries.collect())
        };
        let users = self.by_user.iter().map(|(uid, figures)| (uid.to_string(), figures.to_json()));
        json!({
            "all": self.all.to_json(),
            "repositories": group(&self.by_repository),
            "rules": group(&self.by_rule),
            "users": Value::Object(users.collect()),
        })
    }

    /// Those who were refused most, or would have been, come first.
    fn users(&self) -> Vec<(String, &Figures)> {
        let names = NameCache::new();
        let mut users: Vec<_> = self.by_user.iter().collect();
        users.sort_by_key(|(_, figures)| Reverse((figures.denials(), figures.starts.len())));
        users.into_iter().map(|(uid, figures)| (visible(names.user(*uid)), figures)).collect()
    }
}

impl Figures {
    /// How often somebody did not get what they wanted, or would not have.
    fn denials(&self) -> usize {
        self.refusals + self.would_be_refused + self.too_soon
    }

    fn to_json(&self) -> Value {
        let quantiles = |values: &[Duration]| {
            let part = |part| quantile(values, part).map(|duration| duration.as_secs_f64());
            json!({ "count": values.len(), "median": part(0.5), "p95": part(0.95), "longest": part(1.0) })
        };
        json!({
            "starts": self.starts.len(),
            "refusals": self.refusals,
            "would_be_refused": self.would_be_refused,
            "too_soon": self.too_soon,
            "expiries": self.expiries,
            "waits": quantiles(&self.waits),
            "runs": quantiles(&self.runs),
            "suggestions": self.suggestions(),
        })
    }

    /// Settings that the experience speaks for, each with its figures.
    fn suggestions(&self) -> Vec<String> {
        let mut suggestions = Vec::new();
        if self.runs.len() >= ENOUGH
            && let (Some(usual), Some(longest)) = (quantile(&self.runs, 0.95), quantile(&self.runs, 1.0))
        {
            let twice = (usual * 2).max(longest + longest / 10);
            suggestions.push(format!(
                "expire_after = \"{}\": 95 % of {} runs took up to {}, the longest {}",
                show_duration(round_up(twice)),
                self.runs.len(),
                age(usual),
                age(longest),
            ));
        }
        let gap = |pair: &[u64]| Duration::from_millis(pair[1].saturating_sub(pair[0]));
        let gaps: Vec<Duration> = self.starts.windows(2).map(gap).collect();
        if gaps.len() >= ENOUGH
            && let (Some(usual), Some(shortest)) = (quantile(&gaps, 0.5), quantile(&gaps, 0.0))
            && shortest < usual / 4
        {
            suggestions.push(format!(
                "if_elapsed = \"{}\": starts are {} apart as a rule, but some only {}",
                show_duration(round_up(usual / 2)),
                age(usual),
                age(shortest),
            ));
        }
        suggestions
    }
}

fn rows(group: &BTreeMap<String, Figures>) -> Vec<(String, &Figures)> {
    group.iter().map(|(name, figures)| (visible(name), figures)).collect()
}

/// To whole seconds, and beyond ten minutes to whole minutes.
fn round_up(duration: Duration) -> Duration {
    let unit = if duration > Duration::from_secs(600) { 60 } else { 1 };
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    Duration::from_secs(seconds.div_ceil(unit) * unit)
}

/// The smallest value that so large a part of all values does not exceed (nearest rank).
fn quantile(values: &[Duration], part: f64) -> Option<Duration> {
    let mut sorted = values.to_vec();
    sorted.sort();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a rank is between 1 and the number of values"
    )]
    let rank = ((sorted.len() as f64 * part).ceil() as usize).max(1);
    sorted.get(rank - 1).copied()
}

fn spread(values: &[Duration]) -> String {
    let part = |part| quantile(values, part).map_or_else(|| "-".to_owned(), age);
    if values.is_empty() { "-".to_owned() } else { format!("{} / {} / {}", part(0.5), part(0.95), part(1.0)) }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[track_caller]
    fn case(part: f64, expected: u64) {
        let values = [3, 1, 2, 4].map(Duration::from_secs);
        assert_eq!(quantile(&values, part), Some(Duration::from_secs(expected)));
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        case(0.0, 1);
        case(0.5, 2);
        case(0.95, 4);
        case(1.0, 4);
        assert_eq!(quantile(&[], 0.5), None);
    }

    fn event(kind: Kind, pid: i32, time: u64, seconds: Option<f64>) -> Event {
        let mut event = Event::now(kind, "sync", 0, OsStr::new("ws17"));
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
        let mut summary = Summary::default();
        for event in &events {
            summary.see(event);
        }
        let figures = &summary.by_repository["nightly"];
        assert_eq!(
            figures.suggestions(),
            ["expire_after = \"2m\": 95 % of 6 runs took up to 1m00s, the longest 1m00s"]
        );
    }
}
