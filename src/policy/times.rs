//! The time for a policy, and when it changes.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use super::{Layer, LayerKind, Policy, selector::Window};

/// The times of a rule that a launch left out because it is for other commands.
#[derive(Debug)]
pub(super) struct Idle {
    /// How many of the kept rules precede it.
    pub(super) after: usize,
    pub(super) layer: usize,
    pub(super) times: Vec<Window>,
}

impl Policy {
    /// For every time window (of rules, exceptions, limits and reservations) whether it is open. While this
    /// stays the same, decisions do too.
    pub fn times_at(&self, now: Timestamp) -> Vec<bool> {
        self.times_of(|_| true, now)
    }

    fn times_of(&self, is_asked: impl Fn(&Layer) -> bool, now: Timestamp) -> Vec<bool> {
        let mut times = Vec::new();
        let mut add = |layer: usize, windows: &[Window]| {
            let zone = Some(&self.layers[layer])
                .filter(|layer| is_asked(layer))
                .and_then(|layer| layer.zone.as_ref());
            let local = zone.map(|zone| zone.to_datetime(now));
            times.extend(local.map(|local| windows.iter().any(|window| window.contains(local))));
        };
        let mut idle = self.idle.iter().peekable();
        for (index, rule) in self.rules.iter().enumerate() {
            while let Some(idle) = idle.next_if(|idle| idle.after <= index) {
                add(idle.layer, &idle.times);
            }
            let tables = [&rule.selectors].into_iter().chain(&rule.except);
            tables.filter_map(|table| table.when.as_deref()).for_each(|windows| add(rule.layer, windows));
        }
        idle.for_each(|idle| add(idle.layer, &idle.times));
        for repository in &self.repositories {
            let times = repository.times().filter(|windows| !windows.is_empty());
            times.for_each(|windows| add(repository.layer, windows));
        }
        times
    }

    /// 12 bits that change with the policy or its open time windows. Limits of two launches are compared only
    /// if these agree.
    pub fn generation(&self, now: Timestamp) -> u16 {
        let mut hasher = DefaultHasher::new();
        let is_of_system = |layer: &Layer| layer.kind == LayerKind::System;
        // What a user adds gives no limit of the system, and so distinguishes no launches below its limits. A
        // delegated file applies to some launches only. If it counted, no other launch would pass one that
        // waits below a ceiling of its department.
        let has_systems = self.layers.iter().any(is_of_system);
        self.stamps.shared(has_systems).for_each(|file| file.hash(&mut hasher));
        self.times_of(|layer| !has_systems || is_of_system(layer), now).hash(&mut hasher);
        generation_of(hasher.finish())
    }
}

/// 12 bits of a hash. 0 is for launches without a policy.
fn generation_of(hash: u64) -> u16 {
    u16::try_from(hash % 4095 + 1).unwrap_or(1)
}

// Time zones, only from the system's files. The caller controls the environment (`TZ`, `TZDIR`), and could
// choose a zone in which it is night. Read together with the policy, and only if a rule uses the time.

const ZONES: &str = "/usr/share/zoneinfo";

const LOCAL: &str = "/etc/localtime";

/// The zone with a name such as `Europe/Berlin`; `None` when the system has none of that name.
pub fn named_zone(name: &str) -> Option<TimeZone> {
    let ordinary = |part: &str| !part.is_empty() && !part.starts_with('.');
    if name == "UTC" {
        return Some(TimeZone::UTC);
    }
    if !name.split('/').all(ordinary) {
        return None;
    }
    let data = fs::read(Path::new(ZONES).join(name)).ok()?;
    TimeZone::tzif(name, &data).ok()
}

/// The file of a time zone, or of the system's.
pub(super) fn file_of_zone(name: Option<&str>) -> PathBuf {
    name.map_or_else(|| LOCAL.into(), |name| Path::new(ZONES).join(name))
}

/// Reads a moment: local time of the zone (`2026-11-20 14:02`), or with an offset of its own
/// (`2026-11-20T13:02Z`).
pub fn parse_time(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let local = text.parse::<DateTime>().ok()?;
    zone.to_ambiguous_timestamp(local).compatible().ok()
}

/// The time zone of a policy with these layers: the first that one names, else the system's.
pub(super) fn zone_of(layers: &[Layer]) -> TimeZone {
    let named = layers.iter().find(|layer| layer.zone_name.is_some());
    named.and_then(|layer| layer.zone.clone()).unwrap_or_else(system_zone)
}

/// The system's zone. A system without one uses UTC.
pub fn system_zone() -> TimeZone {
    let data = fs::read(LOCAL).ok();
    data.and_then(|data| TimeZone::tzif("", &data).ok()).unwrap_or(TimeZone::UTC)
}

// The hour of the day at any time, computed once for each quarter of an hour: no zone changes within one.

/// In microseconds.
const QUARTER: u64 = 900_000_000;

/// The hours of one time zone.
#[derive(Clone, Debug)]
pub struct Hours {
    zone: TimeZone,
    quarter: u64,
    hour: usize,
    weekday: usize,
}

impl Hours {
    /// Local time there.
    pub fn in_zone(zone: TimeZone) -> Self {
        Self { zone, quarter: u64::MAX, hour: 0, weekday: 0 }
    }

    /// The hour, from 0 to 23, this many microseconds after the start of 1970.
    pub fn at(&mut self, micros: u64) -> usize {
        self.look(micros);
        self.hour
    }

    /// The day of the week, Monday being 0.
    pub fn weekday_at(&mut self, micros: u64) -> usize {
        self.look(micros);
        self.weekday
    }

    fn look(&mut self, micros: u64) {
        if self.quarter == micros / QUARTER {
            return;
        }
        self.quarter = micros / QUARTER;
        let moment = i64::try_from(micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
        let local = self.zone.to_datetime(moment.unwrap_or(Timestamp::UNIX_EPOCH));
        self.hour = usize::try_from(local.hour()).unwrap_or(0);
        self.weekday = usize::try_from(local.weekday().to_monday_zero_offset()).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{policy::LayerText, text::SourceText};

    /// A policy names a zone of the system's, and no other file.
    #[test]
    fn the_name_of_a_zone_leads_nowhere_else() {
        // A system may have no zones.
        if named_zone("Europe/Berlin").is_none() {
            return;
        }
        for elsewhere in [
            "/Europe/Berlin",
            "Europe//Berlin",
            "Europe/./Berlin",
            "Europe/../Europe/Berlin",
            "../zoneinfo/UTC",
        ] {
            assert!(named_zone(elsewhere).is_none(), "{elsewhere}");
        }
    }

    /// A generation ends when a time window opens or closes, and not before.
    #[test]
    fn a_generation_is_that_of_the_open_windows() {
        let rule = "[[rule]]\nwhen = [\"08:00-18:00\"]\nacquire = []\n";
        let policy = Policy::of_text("/p.toml", format!("[defaults]\ntime_zone = \"UTC\"\n{rule}"));
        let policy = policy.unwrap_or_else(|faults| panic!("{faults}"));
        let at = |time: &str| {
            let moment: Timestamp = format!("2026-11-20T{time}Z").parse().expect("a moment");
            (policy.times_at(moment), policy.generation(moment))
        };
        assert_eq!((at("08:00:00").0, at("18:00:00").0), (vec![true], vec![false]));
        assert_eq!((at("08:00:00"), at("07:59:59")), (at("17:59:59"), at("18:00:00")));
        assert_ne!(at("08:00:00").1, at("18:00:00").1);
    }

    /// Where there is a policy of the system, its time windows count alone, without those of delegated files.
    #[test]
    fn a_window_that_a_user_adds_begins_no_generation() {
        const DELEGATE: &str =
            "[delegate.\"20-cad.toml\"]\nowner = \"root\"\nusers = [\"%cad\"]\ncommands = [\"cad\"]\n";
        let layer = |kind: LayerKind, when: &str| {
            let (path, more) = match kind {
                LayerKind::System => ("/p.toml", format!("[defaults]\ntime_zone = \"UTC\"\n{DELEGATE}")),
                LayerKind::Delegated => ("/p.d/20-cad.toml", String::new()),
                LayerKind::Given | LayerKind::Own => {
                    ("/own.toml", "[defaults]\ntime_zone = \"UTC\"\n".to_owned())
                }
            };
            let rule = format!("[[rule]]\nwhen = [\"{when}\"]\nacquire = []\n");
            LayerText { kind, files: vec![SourceText::new(path, more + &rule)] }
        };
        let begins_at_8 = |layers: Vec<LayerText>| {
            let policy = Policy::of_layers(layers, false).unwrap_or_else(|faults| panic!("{faults}"));
            let at = |time: &str| {
                let moment: Timestamp = format!("2026-11-20T{time}Z").parse().expect("a moment");
                policy.generation(moment)
            };
            at("07:59:59") != at("08:00:00")
        };
        let (early, late) = ("08:00-18:00", "10:00-18:00");
        assert!(begins_at_8(vec![layer(LayerKind::System, early), layer(LayerKind::Own, late)]));
        assert!(!begins_at_8(vec![layer(LayerKind::System, late), layer(LayerKind::Own, early)]));
        assert!(!begins_at_8(vec![layer(LayerKind::System, late), layer(LayerKind::Delegated, early)]));
        assert!(begins_at_8(vec![layer(LayerKind::Own, early)]));
    }

    /// A generation has 12 bits, and is never that of launches without a policy.
    #[test]
    fn a_generation_has_12_bits_and_is_not_0() {
        let generations = [0, 1, 4094, 4095, u64::MAX].map(generation_of);
        assert_eq!(generations[..4], [1, 2, 0xfff, 1]);
        assert!((1..=0xfff).contains(&generations[4]));
    }

    /// The hour and the day of the week of a moment do not depend on the moment that was looked at before.
    #[test]
    fn hours_are_those_of_the_moment() {
        let micros = |text: &str| {
            let moment: Timestamp = text.parse().expect("a moment");
            u64::try_from(moment.as_microsecond()).expect("after 1970")
        };
        let mut hours = Hours::in_zone(TimeZone::posix("CET-1").expect("a zone"));
        // 2026-11-20 is a Friday.
        for (moment, hour, weekday) in [
            ("2026-11-20T13:59:59Z", 14, 4),
            ("2026-11-20T14:00:00Z", 15, 4),
            ("2026-11-20T22:59:59Z", 23, 4),
            ("2026-11-20T23:00:00Z", 0, 5),
            ("2026-11-20T13:59:59Z", 14, 4),
        ] {
            let moment = micros(moment);
            assert_eq!((hours.weekday_at(moment), hours.at(moment)), (weekday, hour));
            assert_eq!((hours.at(moment), hours.weekday_at(moment)), (hour, weekday));
        }
        let hours_at = |moments: [&str; 2]| {
            let mut hours = Hours::in_zone(TimeZone::posix("CET-1").expect("a zone"));
            moments.map(|moment| hours.at(micros(moment)))
        };
        assert_eq!(hours_at(["2026-11-20T13:59:59Z", "2026-11-20T14:00:00Z"]), [14, 15]);
        assert_eq!(hours_at(["2026-11-20T14:00:00Z", "2026-11-20T13:59:59Z"]), [15, 14]);
    }
}
