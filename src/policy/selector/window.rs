//! Times of `when`: days, hours, or both, in local time. A window over midnight belongs to the day on which
//! it starts. Hours are those on the clock, so that a window follows summer time as people do: on the day the
//! clock is put forward it is an hour shorter, on the day it is put back an hour longer. Spans over several
//! days are in `span`.

use std::fmt;

use jiff::{
    ToSpan,
    civil::{Date, DateTime},
};

use super::{
    clock::{WindowProblem, minute_of_day, moment, number_of_day, parse_date, parse_day, parse_minute},
    span::Span,
};

#[derive(Debug)]
pub(crate) struct Window {
    text: String,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// On each of these days the same hours: from and until, in minutes of the day; the end is not part of
    /// it.
    Daily(Days, Vec<(i16, i16)>),
    /// From a moment to another.
    Span(Span),
}

#[derive(Debug)]
enum Days {
    Every,
    /// By index, from Monday.
    Week([bool; 7]),
    /// From and including, in one or more stretches.
    Dates(Date, Date),
}

impl Window {
    pub(in crate::policy) fn parse(text: &str) -> Result<Window, WindowProblem> {
        let form = match Span::parse(text)? {
            Some(span) => Form::Span(span),
            None => Form::daily(text)?,
        };
        Ok(Window { text: text.to_owned(), form })
    }

    /// Whether a local time lies in it.
    pub(crate) fn contains(&self, time: DateTime) -> bool {
        match &self.form {
            Form::Daily(days, hours) => hours_at(days, hours, time).next().is_some(),
            Form::Span(span) => span.contains(time),
        }
    }

    /// Where the window ends that this local time lies in.
    pub(super) fn end(&self, time: DateTime) -> Option<DateTime> {
        match &self.form {
            Form::Daily(days, hours) => {
                hours_at(days, hours, time).filter_map(|(day, until)| moment(day, until)).max()
            }
            Form::Span(span) => span.end(time),
        }
    }
}

/// The hours that a local time lies in, each by the day and the minute of it at which it ends.
fn hours_at<'w>(
    days: &'w Days,
    hours: &'w [(i16, i16)],
    time: DateTime,
) -> impl Iterator<Item = (Date, i16)> + 'w {
    let minute = minute_of_day(time);
    let today = Some(time.date()).filter(|day| days.has(*day));
    let yesterday = time.date().checked_sub(1.day()).ok().filter(|day| days.has(*day));
    hours.iter().filter_map(move |&(from, until)| {
        if from < until {
            return today.filter(|_| (from..until).contains(&minute)).map(|day| (day, until));
        }
        let over_midnight = until + 24 * 60;
        let of_today = today.filter(|_| minute >= from);
        of_today.or_else(|| yesterday.filter(|_| minute < until)).map(|day| (day, over_midnight))
    })
}

impl Form {
    fn daily(text: &str) -> Result<Form, WindowProblem> {
        let mut words = text.split_whitespace().peekable();
        let is_hours = |word: &str| word.contains(':');
        let days = match words.next_if(|word| !is_hours(word)) {
            None => Days::Every,
            Some(dates) if dates.bytes().take_while(u8::is_ascii_digit).count() == 4 => parse_dates(dates)?,
            Some(hours) if hours.starts_with(|c: char| c.is_ascii_digit()) => {
                return Err(WindowProblem::Hours);
            }
            Some(week) => parse_week(week)?,
        };
        let hours = match words.next() {
            None if matches!(days, Days::Every) => return Err(WindowProblem::Empty),
            None => vec![(0, 24 * 60)],
            Some(hours) => hours.split(',').map(parse_hours).collect::<Result<_, _>>()?,
        };
        if words.next().is_some() {
            return Err(WindowProblem::Hours);
        }
        Ok(Form::Daily(days, hours))
    }
}

impl Days {
    fn has(&self, day: Date) -> bool {
        match self {
            Days::Every => true,
            Days::Week(week) => week[number_of_day(day)],
            Days::Dates(first, last) => (*first..=*last).contains(&day),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse_week(text: &str) -> Result<Days, WindowProblem> {
    let mut week = [false; 7];
    for stretch in text.split(',') {
        let (first, last) = stretch.split_once('-').unwrap_or((stretch, stretch));
        let (first, last) = (parse_day(first)?, parse_day(last)?);
        let mut day = first;
        week[day] = true;
        // Over the end of the week too: Sat-Mon.
        while day != last {
            day = (day + 1) % 7;
            week[day] = true;
        }
    }
    Ok(Days::Week(week))
}

fn parse_dates(text: &str) -> Result<Days, WindowProblem> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (first, last) = (parse_date(first)?, parse_date(last)?);
    if last < first { Err(WindowProblem::DatesBackwards) } else { Ok(Days::Dates(first, last)) }
}

fn parse_hours(text: &str) -> Result<(i16, i16), WindowProblem> {
    let (from, until) = text.split_once('-').ok_or(WindowProblem::Hours)?;
    let (from, until) = (parse_minute(from)?, parse_minute(until)?);
    if from == 24 * 60 {
        return Err(WindowProblem::Hours);
    }
    if from == until { Err(WindowProblem::EmptyHours) } else { Ok((from, until)) }
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, tz::TimeZone};

    use super::*;

    #[track_caller]
    fn case(window: &str, time: &str, inside: bool) {
        let window = Window::parse(window).expect("a window");
        assert_eq!(window.contains(time.parse().expect("a time")), inside);
    }

    #[track_caller]
    fn none(window: &str, problem: &WindowProblem) {
        assert_eq!(Window::parse(window).expect_err("no window"), *problem);
    }

    // 2026-11-20 is a Friday.
    #[test]
    fn days_and_hours_must_both_match_and_the_end_is_not_part_of_it() {
        case("Mon-Fri 08:00-18:00", "2026-11-20T08:00", true);
        case("Mon-Fri 08:00-18:00", "2026-11-20T17:59:59", true);
        case("Mon-Fri 08:00-18:00", "2026-11-20T18:00", false);
        case("Mon-Fri 08:00-18:00", "2026-11-21T12:00", false);
        case("mon,FRI", "2026-11-20T00:00", true);
        case("8:00-12:00,13:00-24:00", "2026-11-20T23:59", true);
        case("8:00-12:00,13:00-24:00", "2026-11-20T12:30", false);
        case("Sat-Mon", "2026-11-22T12:00", true);
        case("Sat-Mon", "2026-11-20T12:00", false);
    }

    #[test]
    fn a_window_over_midnight_belongs_to_the_day_on_which_it_starts() {
        case("Fri 22:00-06:00", "2026-11-20T23:00", true);
        case("Fri 22:00-06:00", "2026-11-21T05:59", true);
        case("Fri 22:00-06:00", "2026-11-21T06:00", false);
        case("Fri 22:00-06:00", "2026-11-20T05:00", false);
        case("22:00-06:00", "2026-11-20T05:00", true);
        case("2026-11-20 22:00-06:00", "2026-11-21T01:00", true);
    }

    #[test]
    fn dates_stand_for_a_maintenance_window() {
        case("2026-11-20", "2026-11-20T12:00", true);
        case("2026-12-24..2027-01-01", "2027-01-01T23:59", true);
        case("2026-12-24..2027-01-01", "2027-01-02T00:00", false);
    }

    #[test]
    fn hours_are_those_on_the_clock_when_summer_time_begins_and_ends() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        let inside = |window: &str, instant: &str| {
            let instant: Timestamp = instant.parse().expect("an instant");
            Window::parse(window).expect("a window").contains(zone.to_datetime(instant))
        };
        // On 2026-03-29 the clock goes from 02:00 to 03:00: the hour after 01:59 is no longer before 03:00.
        assert!(inside("01:00-03:00", "2026-03-29T00:59:00Z"));
        assert!(!inside("01:00-03:00", "2026-03-29T01:00:00Z"));
        assert!(!inside("02:00-03:00", "2026-03-29T00:59:59Z"));
        assert!(!inside("02:00-03:00", "2026-03-29T01:00:00Z"));
        // On 2026-10-25 the hour from 02:00 to 03:00 comes twice.
        assert!(inside("02:00-03:00", "2026-10-25T00:30:00Z"));
        assert!(inside("02:00-03:00", "2026-10-25T01:30:00Z"));
        assert!(!inside("02:00-03:00", "2026-10-25T02:00:00Z"));
    }

    #[test]
    fn what_is_no_window_says_why() {
        none("", &WindowProblem::Empty);
        none("Mo 08:00-18:00", &WindowProblem::Day);
        none("weekdays", &WindowProblem::Day);
        none("2026-13-01", &WindowProblem::Date);
        none("2026-1-1", &WindowProblem::Date);
        none("08-18", &WindowProblem::Hours);
        none("2026-12-24..2026-12-23", &WindowProblem::DatesBackwards);
        none("08:00", &WindowProblem::Hours);
        none("08:00-25:00", &WindowProblem::Hours);
        none("08:60-09:00", &WindowProblem::Hours);
        none("24:00-06:00", &WindowProblem::Hours);
        none("08:00-08:00", &WindowProblem::EmptyHours);
        none("Mon 08:00-09:00 x", &WindowProblem::Hours);
    }
}
