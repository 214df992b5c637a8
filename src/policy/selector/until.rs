//! When something is over that holds at some times: for whoever is told that they have to wait for it.

use jiff::{ToSpan, civil::DateTime};

use super::window::Window;
use crate::policy::facts::Facts;

/// So many windows may follow each other without a gap: whatever holds for longer is as good as always.
const MOST_IN_A_ROW: usize = 400;

/// The local time of the layer at which none of these windows, one of which it is now, holds any more. None
/// where that never comes, or where there is no window.
pub(in crate::policy) fn until(windows: &[Window], facts: &Facts<'_>, layer: usize) -> Option<String> {
    let now = facts.local_time(layer).filter(|_| !windows.is_empty())?;
    let end = end_of(windows, now)?;
    Some(show(end, now))
}

fn end_of(windows: &[Window], now: DateTime) -> Option<DateTime> {
    let mut time = now;
    for _ in 0..MOST_IN_A_ROW {
        let Some(window) = windows.iter().find(|window| window.contains(time)) else { return Some(time) };
        time = window.end(time)?;
    }
    None
}

/// `18:00` within a day, `Sun 20:00` within a week, `2026-12-24 20:00` later.
fn show(end: DateTime, now: DateTime) -> String {
    let within = |days: i64| now.checked_add(days.days()).is_ok_and(|limit| end <= limit);
    let format = if within(1) {
        "%H:%M"
    } else if within(6) {
        "%a %H:%M"
    } else {
        "%Y-%m-%d %H:%M"
    };
    end.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(windows: &[&str], now: &str, shown: Option<&str>) {
        let windows: Vec<Window> =
            windows.iter().map(|window| Window::parse(window).expect("a window")).collect();
        let now: DateTime = now.parse().expect("a time");
        assert_eq!(end_of(&windows, now).map(|end| show(end, now)).as_deref(), shown);
    }

    // 2026-11-20 is a Friday.
    #[test]
    fn the_end_is_where_no_window_follows() {
        case(&["Mon-Fri 08:00-18:00"], "2026-11-20T09:30", Some("18:00"));
        case(&["22:00-06:00"], "2026-11-20T23:00", Some("06:00"));
        case(&["22:00-06:00"], "2026-11-20T05:59:59", Some("06:00"));
        case(&["Fri,Sat"], "2026-11-20T09:30", Some("Sun 00:00"));
        case(&["Fri 08:00-24:00", "Sat 00:00-09:00"], "2026-11-20T09:30", Some("09:00"));
        case(&["2026-11-20..2026-12-31"], "2026-11-20T09:30", Some("2027-01-01 00:00"));
        case(&["Fri 18:00..Sun 20:00"], "2026-11-20T18:00", Some("Sun 20:00"));
        case(&["Sun 20:00..Mon 06:00"], "2026-11-22T23:00", Some("06:00"));
        case(&["2026-11-20 18:00..2026-11-22 20:00"], "2026-11-22T19:00", Some("20:00"));
        case(&["00:00-24:00"], "2026-11-20T09:30", None);
    }
}
