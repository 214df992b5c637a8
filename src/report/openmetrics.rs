//! The hours of a census as `OpenMetrics` with timestamps: what Prometheus takes to fill in the past
//! (`promtool tsdb create-blocks-from openmetrics`).

use std::fmt::Write;

use super::census::{Census, HOUR, Hour};

/// A name, what it is, and its value in one hour.
type Family = (&'static str, &'static str, fn(&Hour) -> u64);

/// What is told of each hour.
const FAMILIES: [Family; 4] = [
    ("rungate_slots_used", "The most slots of the repository that were held in the hour.", |hour| hour.most),
    ("rungate_slots_limit", "How many slots of the repository could be held.", |hour| hour.limit),
    ("rungate_hour_started", "How many launches started in the hour.", |hour| hour.started),
    ("rungate_hour_refused", "How many launches were refused in the hour.", |hour| hour.refused),
];

/// All of it.
pub fn openmetrics(census: &Census) -> String {
    let mut text = String::new();
    for (name, help, value) in FAMILIES {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (repository, of) in &census.repositories {
            let label = repository.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            for (hour, what) in &of.hours {
                // It is known when the hour is over.
                let at = (hour + 1) * (HOUR / 1_000_000);
                let _ = writeln!(text, "{name}{{repository=\"{label}\"}} {} {at}", value(what));
            }
        }
    }
    text + "# EOF\n"
}
