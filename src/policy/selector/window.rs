//! Times of `when`: days, hours, or both, in local time. A window over midnight belongs to the day on which
//! it starts. Hours are those on the clock, so a window follows summer time: it is an hour shorter on the day
//! when the clock is put forward, and an hour longer when it is put back. Spans over several days are in
//! `span`.

use std::fmt;

use jiff::{
    ToSpan,
    civil::{Date, DateTime, Time, Weekday},
};

use super::alternatives::Entry;
use crate::{
    judge::terms::LookupError,
    policy::{EvalContext, Key, RelevantInputs, Shape, fault::Fault, key::key},
};

#[derive(Debug)]
pub(crate) struct Window {
    text: String,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// The same hours on each of these days: from and until, in minutes of the day, the end excluded.
    Daily(Days, Vec<(i16, i16)>),
    /// From a moment to another.
    Span(Span),
}

#[derive(Debug)]
enum Days {
    Every,
    /// By index, from Monday.
    Week([bool; 7]),
    /// Inclusive, in one or more ranges.
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

    /// Whether it contains a local time.
    pub(crate) fn contains(&self, time: DateTime) -> bool {
        match &self.form {
            Form::Daily(days, hours) => hours_at(days, hours, time).next().is_some(),
            Form::Span(span) => span.contains(time),
        }
    }

    /// When the window ends that contains this local time.
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

// Days, dates and minutes as in `when`, and the faults of other texts.

const DAYS: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// Why a text is not a window.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum WindowProblem {
    Empty,
    Day,
    Date,
    DatesBackwards,
    Hours,
    EmptyHours,
    /// An end of a span without hours.
    SpanEnd,
    /// One end is a day of the week, and the other a date.
    SpanEnds,
    EmptySpan,
    SpanBackwards,
    /// A span with this text.
    Write(String),
}

impl fmt::Display for WindowProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WindowProblem::Write(text) => return write!(f, "write \"{text}\""),
            WindowProblem::SpanEnd => "a span has hours at both ends: Fri 18:00..Sun 20:00",
            WindowProblem::SpanEnds => "both ends of a span are days of the week, or both are dates",
            WindowProblem::EmptySpan => "the span ends where it begins",
            WindowProblem::SpanBackwards => "the span ends before it begins",
            WindowProblem::Empty => "it names neither days nor hours",
            WindowProblem::Day => "days are written Mon, Mon-Fri or Sat,Sun",
            WindowProblem::Date => "dates are written 2026-12-24 or 2026-12-24..2027-01-01",
            WindowProblem::DatesBackwards => "the last date is before the first",
            WindowProblem::Hours => "hours are written 08:00-18:00, up to 24:00",
            WindowProblem::EmptyHours => "the hours are empty; a whole day is 00:00-24:00",
        })
    }
}

/// The number of a day, from Monday.
pub(super) fn parse_day(text: &str) -> Result<usize, WindowProblem> {
    DAYS.iter().position(|(name, _)| name.eq_ignore_ascii_case(text)).ok_or(WindowProblem::Day)
}

/// The number of a date's day, from Monday.
pub(super) fn number_of_day(day: Date) -> usize {
    DAYS.iter().position(|(_, weekday)| *weekday == day.weekday()).unwrap_or(0)
}

pub(super) fn parse_date(text: &str) -> Result<Date, WindowProblem> {
    match text.as_bytes() {
        [_, _, _, _, b'-', _, _, b'-', _, _] => text.parse().map_err(|_| WindowProblem::Date),
        _ => Err(WindowProblem::Date),
    }
}

pub(super) fn parse_minute(text: &str) -> Result<i16, WindowProblem> {
    let number = |text: &str, digits: std::ops::RangeInclusive<usize>| {
        let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
        if digits_only && digits.contains(&text.len()) { text.parse::<i16>().ok() } else { None }
    };
    let (hour, minute) = text.split_once(':').ok_or(WindowProblem::Hours)?;
    let hour = number(hour, 1..=2).ok_or(WindowProblem::Hours)?;
    let minute = number(minute, 2..=2).filter(|minute| *minute < 60).ok_or(WindowProblem::Hours)?;
    let minutes = hour * 60 + minute;
    if minutes <= 24 * 60 { Ok(minutes) } else { Err(WindowProblem::Hours) }
}

pub(super) fn minute_of_day(time: DateTime) -> i16 {
    i16::from(time.hour()) * 60 + i16::from(time.minute())
}

/// A minute of a day; the last, 24:00, is the first of the next day.
pub(super) fn moment(day: Date, minute: i16) -> Option<DateTime> {
    day.to_datetime(Time::midnight()).checked_add(i64::from(minute).minutes()).ok()
}

// Spans of time over several days: `Fri 18:00..Sun 20:00` in every week, `2026-11-20 18:00..2026-11-22
// 20:00` once. The end is not part of it.

const MINUTES_OF_A_DAY: i32 = 24 * 60;

const MINUTES_OF_A_WEEK: i32 = 7 * MINUTES_OF_A_DAY;

/// From and until.
#[derive(Debug)]
pub(super) enum Span {
    /// In minutes of the week, from Monday; across its end if the second is not above the first.
    Week(i32, i32),
    Dates(DateTime, DateTime),
}

/// One end, as it is written.
enum End {
    Week(i32),
    Date(DateTime),
}

impl Span {
    /// Reads a span; none if the text does not look like one.
    pub(super) fn parse(text: &str) -> Result<Option<Span>, WindowProblem> {
        if let Some((from, until)) = text.split_once("..") {
            return match (End::parse(from.trim())?, End::parse(until.trim())?) {
                (None, None) => Ok(None),
                (Some(from), Some(until)) => Span::between(&from, &until).map(Some),
                (None, Some(_)) | (Some(_), None) => Err(WindowProblem::SpanEnd),
            };
        }
        match spelled_with_a_dash(text) {
            Some((from, until)) => Err(WindowProblem::Write(format!("{from}..{until}"))),
            None => Ok(None),
        }
    }

    fn between(from: &End, until: &End) -> Result<Span, WindowProblem> {
        match (from, until) {
            (End::Week(from), End::Week(until)) if from == until => Err(WindowProblem::EmptySpan),
            (End::Week(from), End::Week(until)) => Ok(Span::Week(*from, *until)),
            (End::Date(from), End::Date(until)) if from == until => Err(WindowProblem::EmptySpan),
            (End::Date(from), End::Date(until)) if from > until => Err(WindowProblem::SpanBackwards),
            (End::Date(from), End::Date(until)) => Ok(Span::Dates(*from, *until)),
            (End::Week(_), End::Date(_)) | (End::Date(_), End::Week(_)) => Err(WindowProblem::SpanEnds),
        }
    }

    pub(super) fn contains(&self, time: DateTime) -> bool {
        match self {
            Span::Week(from, until) => {
                let minute = minute_of_week(time);
                if from < until {
                    (*from..*until).contains(&minute)
                } else {
                    minute >= *from || minute < *until
                }
            }
            Span::Dates(from, until) => (*from..*until).contains(&time),
        }
    }

    /// The end of the span that contains this time.
    pub(super) fn end(&self, time: DateTime) -> Option<DateTime> {
        match self {
            Span::Week(_, until) => {
                let left = (until - minute_of_week(time)).rem_euclid(MINUTES_OF_A_WEEK);
                let minute = moment(time.date(), minute_of_day(time))?;
                minute.checked_add(i64::from(left).minutes()).ok()
            }
            Span::Dates(_, until) => Some(*until),
        }
    }
}

impl End {
    /// Reads `Fri 18:00` or `2026-11-20 18:00`; none if it is a day without hours, or with hours from and
    /// until.
    fn parse(text: &str) -> Result<Option<End>, WindowProblem> {
        let Some((day, hours)) = text.split_once(char::is_whitespace) else { return Ok(None) };
        let hours = hours.trim();
        if hours.contains(['-', ',']) {
            return Ok(None);
        }
        let minute = parse_minute(hours)?;
        if day.starts_with(|first: char| first.is_ascii_digit()) {
            return moment(parse_date(day)?, minute).map(End::Date).ok_or(WindowProblem::Date).map(Some);
        }
        let days = i32::try_from(parse_day(day)?).unwrap_or(0);
        // The end of Sunday is the beginning of Monday.
        let minute = days * MINUTES_OF_A_DAY + i32::from(minute);
        Ok(Some(End::Week(minute.rem_euclid(MINUTES_OF_A_WEEK))))
    }
}

/// The ends of `Fri 18:00-Sun 20:00`, which would be a span with two dots.
fn spelled_with_a_dash(text: &str) -> Option<(&str, &str)> {
    let mut dashes = text.match_indices('-').map(|(at, _)| (text[..at].trim(), text[at + 1..].trim()));
    let is_end = |text: &str| matches!(End::parse(text), Ok(Some(_)));
    dashes.find(|(from, until)| is_end(from) && is_end(until))
}

fn minute_of_week(time: DateTime) -> i32 {
    let days = i32::from(time.weekday().to_monday_zero_offset());
    days * MINUTES_OF_A_DAY + i32::from(minute_of_day(time))
}

// The end of a time window, for messages to users who have to wait for it.

/// How many windows may follow each other without a gap; more count as always.
const MOST_IN_A_ROW: usize = 400;

/// The local time of the layer at which none of these windows is open any more; one of them is open now. None
/// if that never comes, or if there is no window.
pub(in crate::policy) fn until(windows: &[Window], facts: &EvalContext<'_>, layer: usize) -> Option<String> {
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

// `when`: windows of time, in the zone of the layer.

impl Entry for Window {
    const KEY: Key =
        key("when", Shape::Texts, "Times, such as \"Mon-Fri 08:00-18:00\".", "Other rules at night.")
            .filled();

    fn parse(text: &str) -> Result<Self, Fault> {
        Window::parse(text).map_err(|problem| Fault::BadWindow { reason: problem.to_string() })
    }

    fn matches(&self, facts: &EvalContext<'_>, layer: usize) -> Result<bool, LookupError> {
        Ok(facts.local_time(layer).is_some_and(|time| self.contains(time)))
    }

    fn inputs(&self) -> RelevantInputs {
        RelevantInputs::NONE
    }

    fn covers(&self, narrow: &Self) -> bool {
        self.to_string() == narrow.to_string()
    }

    fn text(&self) -> String {
        self.to_string()
    }
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
        case("Fri 22:00-06:00", "2026-11-20T21:59", false);
        case("Fri 22:00-06:00", "2026-11-20T22:00", true);
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
        // On 2026-10-25 the hour from 02:00 to 03:00 occurs twice.
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
        none("+8:00-09:00", &WindowProblem::Hours);
        none("008:00-09:00", &WindowProblem::Hours);
        none("08:0-09:00", &WindowProblem::Hours);
        none("24:00-06:00", &WindowProblem::Hours);
        none("08:00-08:00", &WindowProblem::EmptyHours);
        none("Mon 08:00-09:00 x", &WindowProblem::Hours);
        none("Mon-Fri 08:00", &WindowProblem::Hours);
        none("08:00-Sun 20:00", &WindowProblem::Hours);
    }
}

#[cfg(test)]
mod span_tests {
    use super::Window;

    #[track_caller]
    fn case(span: &str, time: &str, inside: bool) {
        let span = Window::parse(span).expect("a span");
        assert_eq!(span.contains(time.parse().expect("a time")), inside, "{time}");
    }

    #[track_caller]
    fn none(span: &str, problem: &str) {
        assert_eq!(Window::parse(span).expect_err("no span").to_string(), problem, "{span}");
    }

    // 2026-11-20 is a Friday.
    #[test]
    fn a_span_of_the_week_goes_from_its_first_minute_to_before_its_last() {
        let weekend = "Fri 18:00..Sun 20:00";
        case(weekend, "2026-11-20T17:59:59", false);
        case(weekend, "2026-11-20T18:00", true);
        case(weekend, "2026-11-21T03:00", true);
        case(weekend, "2026-11-22T19:59:59", true);
        case(weekend, "2026-11-22T20:00", false);
        case(weekend, "2026-11-27T18:00", true);
        case("sun 20:00 .. mon 06:00", "2026-11-22T20:00", true);
        case("Sun 20:00..Mon 06:00", "2026-11-23T05:59", true);
        case("Sun 20:00..Mon 06:00", "2026-11-23T06:00", false);
        case("Sat 00:00..Sun 24:00", "2026-11-22T23:59", true);
        case("Sat 00:00..Sun 24:00", "2026-11-23T00:00", false);
    }

    #[test]
    fn a_span_of_dates_comes_once() {
        let upgrade = "2026-11-20 18:00..2026-11-22 20:00";
        case(upgrade, "2026-11-20T17:59:59", false);
        case(upgrade, "2026-11-20T18:00", true);
        case(upgrade, "2026-11-22T19:59:59", true);
        case(upgrade, "2026-11-22T20:00", false);
        case(upgrade, "2026-11-27T19:00", false);
        // Days with the hours of each are something else.
        case("2026-11-20..2026-11-22 18:00-20:00", "2026-11-21T03:00", false);
    }

    #[test]
    fn what_is_no_span_says_why() {
        none("Fri 18:00-Sun 20:00", "write \"Fri 18:00..Sun 20:00\"");
        none("Fri 18:00 - Sun 20:00", "write \"Fri 18:00..Sun 20:00\"");
        none("2026-11-20 18:00-2026-11-22 20:00", "write \"2026-11-20 18:00..2026-11-22 20:00\"");
        none("Fri 18:00..Sun", "a span has hours at both ends: Fri 18:00..Sun 20:00");
        none("2026-11-20 18:00..2026-11-22", "a span has hours at both ends: Fri 18:00..Sun 20:00");
        none("2026-11-20..2026-11-22 20:00", "a span has hours at both ends: Fri 18:00..Sun 20:00");
        none("Fri 18:00..2026-11-22 20:00", "both ends of a span are days of the week, or both are dates");
        none("Fri 18:00..Fri 18:00", "the span ends where it begins");
        none("2026-11-20 18:00..2026-11-20 18:00", "the span ends where it begins");
        none("2026-11-22 20:00..2026-11-20 18:00", "the span ends before it begins");
        none("Mo 18:00..Sun 20:00", "days are written Mon, Mon-Fri or Sat,Sun");
        none("Fri..Sun", "days are written Mon, Mon-Fri or Sat,Sun");
        none("2026-02-30 18:00..2026-03-01 20:00", "dates are written 2026-12-24 or 2026-12-24..2027-01-01");
        none("Fri 18:00..Sun 25:00", "hours are written 08:00-18:00, up to 24:00");
    }
}

#[cfg(test)]
mod until_tests {
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

    /// The name of a day means the next day of that name, so it is never that of today.
    #[test]
    fn an_end_almost_a_week_from_now_has_its_date() {
        case(&["Fri 18:00..Thu 12:00"], "2026-11-20T18:30", Some("Thu 12:00"));
        case(&["Fri 18:00..Fri 12:00"], "2026-11-20T18:30", Some("2026-11-27 12:00"));
    }
}
