//! Time zones, from the system's files only: the environment (`TZ`, `TZDIR`) belongs to the caller, and a
//! caller could choose a zone in which it is night. Read when the policy is, and only where a rule asks for
//! the time.

use std::{
    fs,
    path::{Path, PathBuf},
};

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

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

/// Where the zone with a name is, or the system's.
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

/// The system's zone. A system without one lives in UTC.
pub fn system_zone() -> TimeZone {
    let data = fs::read(LOCAL).ok();
    data.and_then(|data| TimeZone::tzif("", &data).ok()).unwrap_or(TimeZone::UTC)
}
