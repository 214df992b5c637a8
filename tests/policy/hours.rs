//! `when` is local time of the zone in `[defaults] time_zone` (else the system's), never of the
//! environment's `TZ`.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::{Ending, Running, Site, eventually, needs_root};

/// The seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is set").as_secs()
}

/// A zone file with a fixed offset in seconds: `TZif`, version 1, one type of local time.
fn zone_ahead_of_utc(seconds: i32) -> Vec<u8> {
    let mut zone = b"TZif".to_vec();
    zone.extend([0; 16]);
    for count in [0, 0, 0, 0, 1, 4_u32] {
        zone.extend(count.to_be_bytes());
    }
    zone.extend(seconds.to_be_bytes());
    zone.extend(*b"\0\0XXX\0");
    zone
}

/// A noon of the system's time zone. It is soon, because the site has a zone of its own.
pub(crate) struct Noon(u64);

impl Noon {
    /// Runs a scene that prepares something before noon and then waits for noon. The scene returns false if
    /// noon came too early; then it runs again with more time.
    #[track_caller]
    pub(crate) fn plays(scene: fn(&Site, &Self) -> bool) {
        let in_time = [3, 6, 12, 24, 48].into_iter().any(|seconds| {
            let (site, noon) = (Site::new(), now() + seconds);
            let ahead = 43_200 - i32::try_from(noon % 86_400).expect("less than a day");
            site.system_zone(&zone_ahead_of_utc(ahead));
            scene(&site, &Self(noon))
        });
        assert!(in_time, "the machine is too slow for this test");
    }

    pub(crate) fn has_come(&self) -> bool {
        now() >= self.0
    }
}

/// `explain --at` of a command for which one rule matches at this time, and no rule at other times.
#[track_caller]
fn explained(site: &Site, at: &str, matches: bool) {
    let outcome = site.test().args(["explain", "--at", at, "--", "job"]).outcome();
    let refused = outcome.stdout.contains("\nnow   refused, status 77: ");
    let starts = outcome.stdout.contains("\nnow   starts");
    assert_eq!((refused, starts), (matches, !matches), "--at {at:?}: {outcome:?}");
}

/// A policy that denies a command at some times of a zone, with a test for each of the times that are given,
/// all of which must pass.
fn site(zone: &str, when: &str, times: &[(&str, bool)]) -> Site {
    let test = |(time, matches): &(&str, bool)| {
        let expect = if *matches { "refuse" } else { "start" };
        format!("[[test]]\nname = \"{time}\"\ncommand = \"job\"\ntime = \"{time}\"\nexpect = \"{expect}\"\n")
    };
    let tests: String = times.iter().map(test).collect();
    let site = Site::with_policy(&format!(
        "defaults.time_zone = \"{zone}\"\n\
        [[rule]]\nname = \"closed\"\ncommands = [\"job\"]\nwhen = [\"{when}\"]\naction = \"deny\"\n{tests}"
    ));
    site.program("job");
    let tests = if times.len() == 1 { "test" } else { "tests" };
    let passed = format!("{} {tests} passed\n", times.len());
    site.test().args(["policy", "check", "$DIR/policy.toml"]).stdout(&passed).status(0);
    site
}

/// The same times, asked for in both ways: of the tests in the policy, and of `explain`.
#[track_caller]
fn holds(zone: &str, when: &str, times: &[(&str, bool)]) {
    let site = site(zone, when, times);
    for (time, matches) in times {
        explained(&site, time, *matches);
    }
}

/// A window over midnight belongs to the day on which it starts.
#[test]
pub(crate) fn a_window_over_midnight_belongs_to_the_day_on_which_it_starts() {
    // 2026-11-20 is a Friday.
    holds(
        "UTC",
        "Fri 22:00-06:00",
        &[
            ("2026-11-20 05:59", false),
            ("2026-11-20 21:59:59", false),
            ("2026-11-20 22:00", true),
            ("2026-11-20 23:59:59", true),
            ("2026-11-21 00:00", true),
            ("2026-11-21 05:59:59", true),
            ("2026-11-21 06:00", false),
            ("2026-11-21 22:00", false),
        ],
    );
    // Over the end of a month, of a year and of the week, and with two windows in one entry.
    holds(
        "UTC",
        "2026-12-31 22:00-02:00",
        &[("2026-12-31 01:00", false), ("2027-01-01 01:59", true), ("2027-01-01 22:00", false)],
    );
    holds(
        "UTC",
        "Sun 12:00-13:00,23:00-01:00",
        &[
            ("2026-11-22 12:30", true),
            ("2026-11-22 00:30", false),
            ("2026-11-23 00:30", true),
            ("2026-11-23 12:30", false),
        ],
    );
}

/// Hours are those on the clock, so that a window follows summer time as people do. In Berlin the clock
/// goes from 02:00 to 03:00 on 2026-03-29, and from 03:00 back to 02:00 on 2026-10-25.
#[test]
pub(crate) fn a_window_follows_the_clock_when_summer_time_begins_and_ends() {
    if !std::path::Path::new("/usr/share/zoneinfo/Europe/Berlin").exists() {
        return crate::support::skip("this system has no time zones");
    }
    // The window over the night of the change: an hour shorter, because 02:00 to 03:00 is no time of that
    // day.
    holds(
        "Europe/Berlin",
        "Sat 22:00-03:00",
        &[
            ("2026-03-28T20:59:59Z", false),
            ("2026-03-28T21:00:00Z", true),
            ("2026-03-28T23:30:00Z", true),
            ("2026-03-29T00:59:59Z", true),
            ("2026-03-29T01:00:00Z", false),
            ("2026-03-29 01:59:59", true),
            ("2026-03-29 03:00", false),
        ],
    );
    // An hour longer, because 02:00 to 03:00 comes twice; a local time in it is the first of the two.
    holds(
        "Europe/Berlin",
        "Sat 22:00-03:00",
        &[
            ("2026-10-24T20:00:00Z", true),
            ("2026-10-25T00:30:00Z", true),
            ("2026-10-25T01:59:59Z", true),
            ("2026-10-25T02:00:00Z", false),
            ("2026-10-25 02:30", true),
            ("2026-10-25 03:00", false),
        ],
    );
    // The same hours on the clock are other hours of the world in winter and in summer.
    holds(
        "Europe/Berlin",
        "Mon-Fri 08:00-18:00",
        &[
            ("2026-03-27T06:59:59Z", false),
            ("2026-03-27T07:00:00Z", true),
            ("2026-03-30T05:59:59Z", false),
            ("2026-03-30T06:00:00Z", true),
            ("2026-03-30T16:00:00Z", false),
            ("2026-10-26T16:59:59Z", true),
            ("2026-10-26T17:00:00Z", false),
        ],
    );
}

/// A time that is asked for is a time of the policy, as in its own tests. It was read, and shown, as one of
/// the system.
#[test]
pub(crate) fn a_time_without_a_zone_is_one_of_the_policys_zone() {
    if !std::path::Path::new("/usr/share/zoneinfo/America/New_York").exists() {
        return crate::support::skip("this system has no time zones");
    }
    let site = site("America/New_York", "22:00-06:00", &[("2026-11-20 23:00", true)]);
    explained(&site, "2026-11-20 23:00", true);
    explained(&site, "2026-11-20 12:00", false);
    explained(&site, "2026-11-21T04:00:00Z", true);
    explained(&site, "2026-11-20T23:00:00+01:00", false);
    let outcome = site.test().args(["explain", "--at", "2026-11-21T04:00:00Z", "--", "job"]).outcome();
    assert!(outcome.stdout.contains(", Fri 20 Nov 23:00 America/New_York\n"), "{}", outcome.stdout);
}

/// `14:02` of today, and what is no time at all.
#[test]
pub(crate) fn a_time_without_a_date_is_one_of_today() {
    let site = site("UTC", "08:00-18:00", &[("2026-11-20 08:00", true)]);
    explained(&site, "08:00", true);
    explained(&site, "18:00", false);
    explained(&site, "17:59:59", true);
    explained(&site, "2026-11-20", false);
    for wrong in ["25:00", "noon", "2026-11-31 08:00", ""] {
        site.test()
            .args(["explain", "--at", wrong, "--", "job"])
            .stderr(&format!(
                "rungate: --at takes a time such as 14:02 or \"2026-11-20 14:02\", not \"{wrong}\"\n"
            ))
            .status(64);
    }
}

/// Values of `TZ` with which another time would be read, of which at least one would move it far enough.
const HOSTILE: [&str; 9] = [
    "UTC+12",
    "UTC-12",
    "Pacific/Kiritimati",
    ":Pacific/Pago_Pago",
    ":$DIR/zone",
    "$DIR/zone",
    "XXX-24:59",
    "",
    "no such zone \u{7} %s",
];

/// Never of the environment's `TZ`: neither the decision nor what is shown of it.
#[test]
pub(crate) fn the_environments_time_zone_changes_nothing() {
    let hour = now() / 3600 % 24;
    // Twelve hours each, of which now is in the middle of the first.
    let (from, until) = ((hour + 18) % 24, (hour + 6) % 24);
    let site = Site::with_policy(&format!(
        r#"
        defaults.time_zone = "UTC"

        [[rule]]
        name     = "closed"
        commands = ["closed"]
        when     = ["{from:02}:00-{until:02}:00"]
        action   = "deny"

        [[rule]]
        name     = "open"
        commands = ["open"]
        when     = ["{until:02}:00-{from:02}:00"]
        action   = "deny"

        [[test]]
        name    = "the first minute"
        command = "closed"
        time    = "2026-11-20 {from:02}:00"
        expect  = "refuse"

        [[test]]
        name    = "the last minute"
        command = "open"
        time    = "2026-11-20 {from:02}:59"
        expect  = "start"
        "#
    ));
    site.program("closed");
    site.program("open");
    // Somebody's own zone file, twelve hours off.
    std::fs::write(site.path("zone"), zone_ahead_of_utc(12 * 3600)).expect("a zone");
    let explained = |tz: Option<&str>| {
        let test = site.test().args(["explain", "--at", "2026-11-20 23:30", "--", "closed"]);
        let test = tz.into_iter().fold(test, |test, tz| test.env("TZ", tz).env("TZDIR", "$DIR"));
        test.outcome().stdout
    };
    let usual = explained(None);
    for tz in HOSTILE {
        for (command, status) in [("closed", 77), ("open", 0)] {
            let run = site.test().env("TZ", tz).env("TZDIR", "$DIR").args(["run", "--quiet", "--", command]);
            let outcome = run.outcome();
            assert_eq!(outcome.ending, Ending::Status(status), "TZ={tz:?} {command}: {outcome:?}");
        }
        assert_eq!(explained(Some(tz)), usual, "TZ={tz:?}");
        let tested = site.test().env("TZ", tz).env("TZDIR", "$DIR").args(["policy", "check"]);
        tested.stdout("2 tests passed\n").status(0);
    }
}

/// Else the system's: the zone of `/etc/localtime`, which only the administrator can change.
#[test]
pub(crate) fn without_a_zone_in_the_policy_the_systems_counts() {
    needs_root!();
    if !std::path::Path::new("/usr/share/zoneinfo/Pacific/Kiritimati").exists() {
        return crate::support::skip("this system has no time zones");
    }
    let site = Site::new();
    site.system_policy(
        "[[rule]]\nname = \"closed\"\ncommands = [\"job\"]\nwhen = [\"08:00-18:00\"]\naction = \"deny\"\n",
    );
    site.program("job");
    // 14 hours before UTC, all the year.
    let zone = "/usr/share/zoneinfo/Pacific/Kiritimati";
    site.system_zone(&std::fs::read(zone).expect("a zone"));
    for tz in [None, Some("UTC"), Some("UTC+12")] {
        for (at, refused) in [
            ("2026-11-19T18:00:00Z", true),
            ("2026-11-20T03:59:59Z", true),
            ("2026-11-20T04:00:00Z", false),
            ("2026-11-20 08:00", true),
            ("2026-11-20 18:00", false),
        ] {
            let test = site.test().args(["explain", "--at", at, "--", "job"]);
            let outcome = tz.into_iter().fold(test, |test, tz| test.env("TZ", tz)).outcome();
            assert_eq!(outcome.stdout.contains("refused, status 77"), refused, "{tz:?} {at}: {outcome:?}");
        }
    }
}

/// Once a second every waiter takes one cheap look, because some things make no sound: the clock is one of
/// them. A launch that waits in the queue used to keep the terms of the hour in which it came.
#[test]
pub(crate) fn who_stands_in_line_when_the_hour_is_over_is_decided_anew() {
    needs_root!();
    Noon::plays(who_stands_in_line_at_noon);
}

/// Whether there was time to see it.
fn who_stands_in_line_at_noon(site: &Site, noon: &Noon) -> bool {
    site.policy(
        r#"
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
        when     = ["11:00-12:00"]
        acquire  = [{ repository = "seats", ceiling = 1 }]

        [[rule]]
        name     = "beds"
        commands = ["night"]
        acquire  = ["beds"]

        [[rule]]
        name     = "none by night"
        commands = ["night"]
        when     = ["12:00-13:00"]
        action   = "deny"
        "#,
    );
    site.program("day");
    site.program("night");
    let run = |name| site.test().args(["run", "--quiet", "--wait", "1h", "--", name]);
    let mut running = [run("day").background(), run("night").background()];
    // From noon on there are no beds.
    if !running.iter_mut().all(Running::answers) {
        assert!(noon.has_come(), "they start before noon");
        return false;
    }
    // One waits for the hour in which it may start, the other one may not start any more when it has come.
    let mut by_day = run("day").background();
    let mut by_night = run("night").background();
    // From noon on they are not to be found in the queue any more.
    for (line, running) in [("seats.lock", &by_day), ("beds.lock", &by_night)] {
        let stands = eventually("it stands in line in time", || {
            let stands = site.line(line).iter().any(|waiter| waiter.pid == running.pid());
            (stands || noon.has_come()).then_some(stands)
        });
        if !stands || noon.has_come() {
            return false;
        }
    }
    // Whoever comes when it has begun is allowed more than those who have not seen it yet, and passes nobody.
    eventually("noon comes", || noon.has_come().then_some(()));
    site.test().args(["run", "--quiet", "--nonblock", "--", "day"]).status(75);
    by_day.wait_for_echo();
    assert!(noon.has_come(), "it started in the hour of the other limit");
    assert_eq!(by_night.end().ending, Ending::Status(77));
    assert_eq!(site.held_numbers("seats.lock"), [1, 2]);
    true
}
