//! Durations, as short as they can be said: two units at most, and no more precise than anybody would use.

use std::time::Duration;

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
    use super::*;

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
