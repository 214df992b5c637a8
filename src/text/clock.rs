//! Moments, in the local time of the system. The zone is that of `/etc/localtime`, never of the environment,
//! so that listings of two users agree.

use std::{
    fs,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::{
    SignedDuration, Timestamp, ZonedDateTime,
    civil::{DateTime, Time},
    tz::TimeZone,
};

/// The zone of this system; UTC where none is set up.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    zone: TimeZone,
    now: Timestamp,
}

/// The same moment as the standard library has it. On Linux that type holds every moment that jiff's does.
pub(crate) fn system_time(moment: Timestamp) -> SystemTime {
    SystemTime::try_from(moment).unwrap_or(UNIX_EPOCH)
}

impl Clock {
    /// The current moment, in the system's zone.
    pub(crate) fn now() -> Self {
        let zone = fs::read("/etc/localtime").ok().and_then(|data| TimeZone::tzif("Local", &data).ok());
        Self { zone: zone.unwrap_or(TimeZone::UTC), now: Timestamp::now() }
    }

    /// The current moment, in the same zone.
    #[must_use]
    pub(crate) fn again(&self) -> Self {
        Self { zone: self.zone.clone(), now: Timestamp::now() }
    }

    /// This moment, in another zone.
    pub(crate) fn in_zone(zone: TimeZone) -> Self {
        Self { zone, now: Timestamp::now() }
    }

    /// Reads a moment as people write it: `14:02` for today, `2026-11-20 14:02`, or RFC 3339 with a zone of
    /// its own.
    pub(crate) fn read(&self, text: &str) -> Option<Timestamp> {
        if let Ok(moment) = text.parse::<Timestamp>() {
            return Some(moment);
        }
        // The date first: a text that is parsed as a time of day may have a date, which would be lost.
        let local = match text.parse::<DateTime>() {
            Ok(local) => local,
            Err(_) => {
                let today = self.now.to_zoned_datetime(self.zone.clone()).date();
                today.to_datetime(text.parse::<Time>().ok()?)
            }
        };
        Some(local.to_zoned_datetime(self.zone.clone()).ok()?.timestamp())
    }

    /// The beginning of `today`, of `yesterday`, or of a date such as `2026-11-20`.
    pub(crate) fn day(&self, text: &str) -> Option<Timestamp> {
        let today = self.now.to_zoned_datetime(self.zone.clone()).date();
        let day = match text {
            "today" => today,
            "yesterday" => today.yesterday().ok()?,
            date => date.parse().ok()?,
        };
        Some(day.to_zoned_datetime(self.zone.clone()).ok()?.timestamp())
    }

    /// Reads a moment of the last twelve months as syslog writes it: `Nov`, `2`, `14:02:05`.
    pub(crate) fn read_without_year(&self, month: &str, day: &str, time: &str) -> Option<Timestamp> {
        let tomorrow = self.now.checked_add(SignedDuration::from_hours(24)).ok()?;
        let year = self.now.to_zoned_datetime(self.zone.clone()).year();
        [year.checked_add(1)?, year, year.checked_sub(1)?].into_iter().find_map(|year| {
            let local =
                DateTime::strptime("%Y %b %d %H:%M:%S", format!("{year} {month} {day} {time}")).ok()?;
            let moment = local.to_zoned_datetime(self.zone.clone()).ok()?.timestamp();
            (moment <= tomorrow).then_some(moment)
        })
    }

    /// `14:02` for today, `14 Nov 09:50` for other days of this year, `2025-11-14` before.
    pub(crate) fn short(&self, moment: SystemTime) -> String {
        self.dated(moment, ["%H:%M", "%-d %b %H:%M", "%Y-%m-%d"])
    }

    /// In the first format for today, in the second for other days of this year, else in the third.
    fn dated(&self, moment: SystemTime, [today, this_year, other]: [&str; 3]) -> String {
        let Some(moment) = self.local(moment) else { return "?".to_owned() };
        let now = self.now.to_zoned_datetime(self.zone.clone());
        let format = match () {
            () if moment.date() == now.date() => today,
            () if moment.year() == now.year() => this_year,
            () => other,
        };
        moment.strftime(format).to_string()
    }

    /// `Fri 20 Nov 14:02`.
    pub(crate) fn day_and_time(&self, moment: SystemTime) -> String {
        self.local(moment)
            .map_or_else(|| "?".to_owned(), |moment| moment.strftime("%a %-d %b %H:%M").to_string())
    }

    /// `Fri 20 Nov 2026 14:02`.
    pub(crate) fn day_and_time_of_year(&self, moment: SystemTime) -> String {
        self.local(moment)
            .map_or_else(|| "?".to_owned(), |moment| moment.strftime("%a %-d %b %Y %H:%M").to_string())
    }

    /// To the second: `03:15:00` for today, `14 Nov 03:15:00` for other days of this year, else
    /// `2025-11-14 03:15:00`.
    pub(crate) fn time(&self, moment: SystemTime) -> String {
        self.dated(moment, ["%H:%M:%S", "%-d %b %H:%M:%S", "%Y-%m-%d %H:%M:%S"])
    }

    /// RFC 3339 in UTC, for scripts; rounded down to milliseconds, as in records.
    pub(crate) fn stamp(moment: SystemTime) -> Option<String> {
        let moment = Timestamp::from_millisecond(Timestamp::try_from(moment).ok()?.as_millisecond()).ok()?;
        Some(moment.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
    }

    /// The same of microseconds since 1970, as records have them.
    pub(crate) fn stamp_of_micros(micros: u64) -> Option<String> {
        Self::stamp(UNIX_EPOCH + Duration::from_micros(micros))
    }

    pub(crate) fn system_time(&self) -> SystemTime {
        system_time(self.now)
    }

    fn local(&self, moment: SystemTime) -> Option<ZonedDateTime> {
        Some(Timestamp::try_from(moment).ok()?.to_zoned_datetime(self.zone.clone()))
    }
}

// Short durations: two units at most, and no more precise than useful.

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// `5s`, `4m12s`, `2h11m`, `6d04h`.
pub(crate) fn age(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m{:02}s", seconds / MINUTE, seconds % MINUTE),
        HOUR..DAY => format!("{}h{:02}m", seconds / HOUR, seconds % HOUR / MINUTE),
        _ => format!("{}d{:02}h", seconds / DAY, seconds % DAY / HOUR),
    }
}

/// The same, with thousandths of what is less than a second.
pub(crate) fn brief(duration: Duration) -> String {
    if duration < Duration::from_secs(1) { format!("{} ms", duration.as_millis()) } else { age(duration) }
}

#[cfg(test)]
mod tests {
    use crate::text::clock::*;

    #[track_caller]
    fn case(seconds: u64, shown: &str) {
        assert_eq!(age(Duration::from_secs(seconds)), shown);
    }

    #[test]
    fn two_units_at_most() {
        case(0, "0s");
        case(59, "59s");
        case(60, "1m00s");
        case(252, "4m12s");
        case(2 * HOUR + 11 * MINUTE + 59, "2h11m");
        case(6 * DAY + 4 * HOUR, "6d04h");
        case(400 * DAY, "400d00h");
    }
}
