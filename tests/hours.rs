//! "`when` is local time of the zone in `[defaults] time_zone` (else the system's), never of the environment's `TZ`."

use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::{Ending, Site, eventually};

/// The second of the day, in UTC.
fn second_of_the_day() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is set").as_secs() % 86_400
}

/// `14:02`, also for what is beyond midnight.
fn hour_and_minute(minute: u64) -> String {
    format!("{:02}:{:02}", minute / 60 % 24, minute % 60)
}

/// "Once a second every waiter takes one cheap look, because some things make no sound": the clock is one of them. A launch
/// that stands in line used to keep the terms of the hour in which it came.
#[test]
fn who_stands_in_line_when_the_hour_is_over_is_decided_anew() {
    // Not too late to arrive before the minute is over, and not so early that its end is beyond every deadline.
    let minute = eventually("a minute that is neither new nor over", || {
        let second = second_of_the_day();
        (3..45).contains(&(second % 60)).then_some(second / 60)
    });
    let (this, next, later) =
        (hour_and_minute(minute), hour_and_minute(minute + 1), hour_and_minute(minute + 5));
    let site = Site::with_policy(&format!(
        r#"
        defaults.time_zone = "UTC"

        [repository.seats]
        limit = 2

        [repository.beds]
        limit = 1

        [[rule]]
        name     = "seats"
        commands = ["day"]
        acquire  = ["seats"]

        [[rule]]
        name     = "one by day"
        commands = ["day"]
        when     = ["{this}-{next}"]
        acquire  = [{{ repository = "seats", ceiling = 1 }}]

        [[rule]]
        name     = "beds"
        commands = ["night"]
        acquire  = ["beds"]

        [[rule]]
        name     = "none by night"
        commands = ["night"]
        when     = ["{next}-{later}"]
        action   = "deny"
        "#
    ));
    site.program("day");
    site.program("night");
    let run = |name| site.test().args(["run", "--quiet", "--wait", "1h", "--", name]);
    let _running = [run("day").spawn(), run("night").spawn()];
    // One waits for the hour in which it may start, the other one may not start any more when it has come.
    let mut by_day = run("day").background();
    let mut by_night = run("night").background();
    site.stands_in_line("seats.lock", &by_day);
    site.stands_in_line("beds.lock", &by_night);
    assert_eq!(second_of_the_day() / 60, minute, "the machine is too slow for this test");
    by_day.wait_for_echo();
    assert_eq!(second_of_the_day() / 60, minute + 1);
    assert_eq!(by_night.end().ending, Ending::Status(77));
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
}
