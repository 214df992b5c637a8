//! The hour of the day at any moment, found out once for each quarter of an hour: no zone changes within one.

use jiff::{Timestamp, tz::TimeZone};

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
    /// As clocks show them there.
    pub fn in_zone(zone: TimeZone) -> Self {
        Self { zone, quarter: u64::MAX, hour: 0, weekday: 0 }
    }

    /// The hour, from 0 to 23, so many microseconds after the start of 1970.
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
