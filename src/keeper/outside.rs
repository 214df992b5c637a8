//! How many slots of a table are in use by programs that rungate did not start. A sample has the measured
//! use. The use of our own holders is subtracted if the keeper proves them, never because of a record.

use std::{collections::BTreeMap, fmt, ops::RangeInclusive, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::occupancy::{Occupancy, Span, Vacancy};
use crate::{
    judge::terms::{
        claim::{LAST_SLOT, Terms},
        outside::{Counts, Outside},
    },
    sys::{process, trusted_file::TrustedFile},
    text::escape::Show,
};

/// The first line of a sample. The writer of the file is trusted, so its total counts: if that leaves room,
/// the lines are not read.
#[derive(Deserialize, Serialize)]
pub struct Head {
    /// The boot of the host in which it began.
    pub boot: String,
    /// When the command was started, in milliseconds since then.
    pub began: u64,
    /// The maximum number of used slots.
    pub total: u64,
}

/// The use of a user on a host, or a used slot by its name.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Line {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The same as a number, if this host knows the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default = "one")]
    pub amount: u32,
    /// The program on this host, for messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

fn one() -> u32 {
    1
}

/// A sample that counts.
#[derive(Debug)]
pub struct Sample {
    /// When it began, since the host's boot.
    pub began: Duration,
    /// How many slots are used, if nothing is taken off.
    pub total: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Of a file.
    Text(Vec<u8>),
    /// Of a log.
    Lines(Vec<Line>),
}

/// Why there is no valid sample.
#[derive(Clone, Debug)]
pub struct NoSample {
    path: PathBuf,
    why: String,
}

impl fmt::Display for NoSample {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: use outside rungate is unknown: {}", self.path.shown(), self.why)
    }
}

impl NoSample {
    fn of(outside: &Outside) -> impl Fn(String) -> Self {
        |why| Self { path: outside.sample.clone(), why }
    }
}

impl Sample {
    /// Reads the last sample of a repository, if it is of this boot and fresh.
    pub fn read(outside: &Outside) -> Result<Self, NoSample> {
        let none = NoSample::of(outside);
        let file = TrustedFile::open_of(&outside.sample, outside.owner, outside.owner);
        let mut file = file
            .map_err(|error| none(error.to_string()))?
            .ok_or_else(|| none("there is no sample".to_owned()))?;
        let content = file.read().map_err(|error| none(error.to_string()))?;
        let head = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let head: Head =
            serde_json::from_slice(head).map_err(|_| none("the sample has no head".to_owned()))?;
        let now = process::since_boot_of_host().unwrap_or_default();
        let began = Duration::from_millis(head.began);
        if Some(head.boot.as_str()) != process::boot_id() {
            return Err(none("the sample is from before the boot".to_owned()));
        }
        match now.checked_sub(began) {
            None => Err(none("the sample is from the future".to_owned())),
            Some(age) if age > outside.stale_after => {
                Err(none(format!("the sample is {} seconds old", age.as_secs())))
            }
            Some(_) => Ok(Self { began, total: head.total, content: Content::Text(content) }),
        }
    }

    /// What a log tells, for a simulation that began before `began` by that time.
    pub fn imagined(began: Duration, lines: Vec<Line>) -> Self {
        let total = lines.iter().map(|line| u64::from(line.amount)).sum();
        Self { began, total, content: Content::Lines(lines) }
    }

    /// How long ago it began.
    pub fn age(&self) -> Duration {
        process::since_boot_of_host().unwrap_or_default().saturating_sub(self.began)
    }

    /// The lines that are about the table of a claim.
    pub fn lines(&self, outside: &Outside) -> Result<Vec<Line>, NoSample> {
        let none = NoSample::of(outside);
        let mut lines = match &self.content {
            Content::Text(text) => {
                let text =
                    std::str::from_utf8(text).map_err(|_| none("the sample is not UTF-8".to_owned()))?;
                let numbered = text.lines().enumerate().skip(1).map(|(index, line)| (index + 1, line));
                parse_lines(numbered).map_err(none)?
            }
            Content::Lines(lines) => lines.clone(),
        };
        lines.retain(|line| {
            (!outside.is_by_user || line.uid == Some(outside.uid))
                && (!outside.is_by_host || label(&line.host) == label(&outside.host))
        });
        Ok(lines)
    }

    /// The holders that are old enough to be included in the sample.
    fn knows(&self, outside: &Outside, holder: &Vouched) -> bool {
        outside.counts == Counts::All && holder.since <= self.began.saturating_sub(outside.settle)
    }
}

/// A holder of slots whose user and age are certain.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Vouched {
    pub uid: u32,
    /// The latest possible start of its hold, as time since the host's boot.
    pub since: Duration,
    pub slots: u64,
    /// Its host, if that may be another one.
    pub host: Option<String>,
}

/// The lines that a command has printed, with their numbers.
pub fn parse_lines<'t>(lines: impl Iterator<Item = (usize, &'t str)>) -> Result<Vec<Line>, String> {
    let line = |(number, text): (usize, &str)| {
        let line: Line = serde_json::from_str(text).map_err(|error| format!("line {number}: {error}"))?;
        let is_there = line.name.is_some() || !line.user.is_empty() || !line.host.is_empty();
        if !is_there || u64::from(line.amount) > LAST_SLOT {
            return Err(format!("line {number} says neither who uses how much nor which slot"));
        }
        Ok(line)
    };
    lines.filter(|(_, text)| !text.trim().is_empty()).map(line).collect()
}

/// The first label of a host's name, in lower case.
fn label(host: &str) -> String {
    host.split('.').next().unwrap_or_default().to_ascii_lowercase()
}

/// The user (by number or name) and the host of the use.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Whose {
    uid: Option<u32>,
    user: String,
    host: String,
}

impl Whose {
    /// Only with the values that distinguish seats.
    fn of(outside: &Outside, uid: Option<u32>, user: &str, host: &str) -> Self {
        let (by_user, by_host) = outside.shared_by.map_or((true, true), |by| (by.user, by.host));
        let user = if by_user && uid.is_none() { user.to_ascii_lowercase() } else { String::new() };
        Self { uid: uid.filter(|_| by_user), user, host: if by_host { label(host) } else { String::new() } }
    }
}

/// The names of the slots, if they have any, and the slots that no launch gets: the limit does not count
/// them, so use of them takes no room. Use of a slot above the limit does, as a holder of it does.
pub struct Names<'n> {
    pub all: &'n [String],
    pub out_of_order: &'n [u32],
}

impl Names<'_> {
    /// The slot with this name, if use of it takes room.
    fn slot(&self, name: &str) -> Option<u64> {
        let slot = self.all.iter().position(|known| known == name)? as u64 + 1;
        (!self.out_of_order.iter().any(|broken| u64::from(*broken) == slot)).then_some(slot)
    }
}

/// The slots that are used outside: how many without a name, and which by name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Used {
    pub count: u64,
    pub named: Vec<u64>,
    /// Whether the launch has a seat outside already, which it shares: it takes no room.
    pub is_seated: bool,
}

impl Used {
    /// All together.
    pub fn slots(&self) -> u64 {
        self.count.saturating_add(self.named.len() as u64)
    }

    /// The use in a sample, without our own holders and the slots of its group that the launch would use.
    pub fn of(
        sample: &Sample,
        lines: &[Line],
        outside: &Outside,
        (held, vouched): (&Occupancy, &[Vouched]),
        names: &Names<'_>,
        wanted: u64,
    ) -> Self {
        let mut counts: BTreeMap<Whose, u64> = BTreeMap::new();
        let mut named = Vec::new();
        for line in lines {
            if let Some(name) = line.name.as_ref().filter(|_| !names.all.is_empty()) {
                named.extend(names.slot(name).filter(|slot| !held.holds(*slot)));
                continue;
            }
            let of = counts.entry(Whose::of(outside, line.uid, &line.user, &line.host)).or_default();
            // Windows of one group are one seat, as large as the largest.
            *of = match outside.shared_by {
                Some(_) => u64::from(line.amount).max(*of),
                None => of.saturating_add(line.amount.into()),
            };
        }
        // A group that is in both has one seat, however old its slots are.
        for holder in vouched.iter().filter(|of| outside.shared_by.is_some() || sample.knows(outside, of)) {
            let host = holder.host.as_ref().unwrap_or(&outside.host);
            if let Some(count) = counts.get_mut(&Whose::of(outside, Some(holder.uid), "", host)) {
                *count = count.saturating_sub(holder.slots);
            }
        }
        let own = Whose::of(outside, Some(outside.uid), "", &outside.host);
        let own = counts.get_mut(&own).filter(|_| outside.shared_by.is_some());
        let is_seated = own.as_ref().is_some_and(|count| **count >= wanted);
        if let Some(count) = own {
            *count = count.saturating_sub(wanted);
        }
        named.sort_unstable();
        named.dedup();
        Self { count: counts.values().fold(0, |sum, count| sum.saturating_add(*count)), named, is_seated }
    }

    /// The room for a launch besides this use. The room is the limit without held slots and use outside. That
    /// use first fills slots that are not reserved.
    pub fn vacancy(&self, held: &Occupancy, terms: &Terms) -> Vacancy {
        let mut spans: Vec<Span> = held.spans().to_vec();
        spans.extend(self.named.iter().map(|slot| Span { slots: *slot..=*slot, pid: None }));
        spans.sort_unstable_by_key(|span| *span.slots.start());
        let held = Occupancy::of(spans);
        let beside = Terms { limit: terms.limit.saturating_sub(self.count), ..terms.clone() };
        let within = |zone: &RangeInclusive<u64>| held.held_among(zone.clone());
        let is_kept = terms.zones.as_ref().is_some_and(|zones| {
            let held: u64 = zones.iter().map(within).sum();
            held.saturating_add(terms.slots).saturating_add(self.count) > terms.usable_slots()
        });
        match held.free_for(&beside, 1) {
            Some(slots) if !is_kept => Vacancy::Slots(slots),
            _ if held.fits(&beside) => Vacancy::Kept,
            _ => Vacancy::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::terms::{
        keyword::Admit,
        outside::{SharedBy, WhenStale},
    };

    const ANN: u32 = 1001;

    fn outside() -> Outside {
        Outside {
            sample: PathBuf::new(),
            owner: 0,
            counts: Counts::All,
            stale_after: Duration::MAX,
            when_stale: WhenStale::Refuse,
            settle: Duration::from_secs(30),
            uid: 7,
            is_by_user: false,
            shared_by: None,
            host: "WS17.example".to_owned(),
            is_by_host: false,
        }
    }

    fn sample(lines: &str) -> Sample {
        let content = Content::Text(format!("{{}}\n{lines}").into_bytes());
        Sample { began: Duration::from_secs(100), total: 0, content }
    }

    fn held(spans: &[(u64, u64)]) -> Occupancy {
        Occupancy::of(spans.iter().map(|&(first, last)| Span { slots: first..=last, pid: Some(1) }).collect())
    }

    fn terms(limit: u64, slots: u64) -> Terms {
        Terms { limit, slots, admit: Admit::WithinLimit, ..Terms::default() }
    }

    fn used(outside: &Outside, lines: &str, own: &[(u32, u64, u64)], slots: u64) -> Used {
        let vouched = |&(uid, since, slots): &(u32, u64, u64)| Vouched {
            uid,
            since: Duration::from_secs(since),
            slots,
            host: None,
        };
        let vouched: Vec<Vouched> = own.iter().map(vouched).collect();
        let sample = sample(lines);
        let lines = sample.lines(outside).unwrap_or_else(|why| panic!("{why}"));
        let all = ["0", "1", "2", "3"].map(str::to_owned);
        let all = if lines.iter().any(|line| line.name.is_some()) { &all[..] } else { &[] };
        let names = Names { all, out_of_order: &[4] };
        Used::of(&sample, &lines, outside, (&held(&[(3, 3)]), &vouched), &names, slots)
    }

    const TWO: &str = "{\"user\":\"ann\",\"uid\":1001,\"host\":\"ws17\",\"amount\":3}\n\
         {\"user\":\"ann\",\"uid\":1001,\"host\":\"ws17.lab\",\"amount\":2}\n{\"user\":\"bob\",\"host\":\"lab1\"}\n";

    #[test]
    fn what_a_user_holds_here_is_taken_off_and_never_more_than_that() {
        let used = |own: &[(u32, u64, u64)]| used(&outside(), TWO, own, 1).count;
        assert_eq!(used(&[]), 6);
        assert_eq!(used(&[(ANN, 0, 2)]), 4);
        assert_eq!(used(&[(ANN, 0, 9)]), 1, "bob's remains");
        assert_eq!(used(&[(1002, 0, 1)]), 6, "bob's is on another host");
    }

    #[test]
    fn only_who_was_there_before_the_sample_began_is_known_to_it() {
        let used = |outside: &Outside, since| used(outside, TWO, &[(ANN, since, 1)], 1).count;
        assert_eq!((used(&outside(), 70), used(&outside(), 71)), (5, 6));
        assert_eq!(used(&Outside { counts: Counts::Others, ..outside() }, 0), 6);
    }

    /// Three and two windows of ann's on one host are one seat of three. A group in both counts once, however
    /// young its slots are.
    #[test]
    fn lines_and_holders_of_a_group_are_one_seat() {
        let shared_by = Some(SharedBy { user: true, host: true });
        let grouped = Outside { shared_by, ..outside() };
        assert_eq!(used(&grouped, TWO, &[], 1), Used { count: 4, ..Used::default() });
        assert_eq!(used(&grouped, TWO, &[(ANN, 999, 2)], 1).count, 2);
        // Ann herself: two of her three seats are there for her, and of four she takes one more.
        let ann = Outside { uid: ANN, ..grouped };
        assert_eq!(used(&ann, TWO, &[], 2), Used { count: 2, is_seated: true, ..Used::default() });
        assert_eq!(used(&ann, TWO, &[], 4), Used { count: 1, ..Used::default() });
        assert!(!used(&ann, TWO, &[(ANN, 0, 3)], 1).is_seated);
        let by_user =
            Outside { shared_by: Some(SharedBy { user: true, host: false }), host: "x".into(), ..ann };
        assert_eq!(used(&by_user, TWO, &[(ANN, 0, 3)], 1).count, 1);
    }

    #[test]
    fn the_room_is_what_the_limit_leaves_of_both() {
        let used = Used { count: 4, ..Used::default() };
        assert_eq!(used.vacancy(&held(&[(8, 10)]), &terms(10, 3)), Vacancy::Slots(vec![1, 2, 3]));
        assert_eq!(used.vacancy(&held(&[(8, 10)]), &terms(10, 4)), Vacancy::Full);
        // Of ten, two are kept for others: eight less four.
        let zoned = Terms { zones: Some(vec![3..=10]), ..terms(10, 1) };
        assert_eq!(used.vacancy(&held(&[(3, 5)]), &zoned), Vacancy::Slots(vec![6]));
        assert_eq!(used.vacancy(&held(&[(3, 6)]), &zoned), Vacancy::Kept);
    }

    #[test]
    fn a_slot_that_is_used_outside_is_not_given() {
        let lines =
            "{\"name\":\"1\",\"user\":\"bob\"}\n{\"name\":\"2\"}\n{\"name\":\"7\"}\n{\"name\":\"3\"}\n";
        let used = used(&outside(), lines, &[], 1);
        assert_eq!(used, Used { named: vec![2], ..Used::default() });
        assert_eq!(used.vacancy(&held(&[(3, 3)]), &terms(3, 1)), Vacancy::Slots(vec![1]));
        assert_eq!(used.vacancy(&held(&[(3, 3)]), &terms(4, 2)), Vacancy::Slots(vec![1, 4]));
        assert_eq!(used.vacancy(&held(&[(1, 1), (3, 3)]), &terms(3, 1)), Vacancy::Full);
    }

    /// A repository may have a table for each user, or for each host. Then only the lines about that one
    /// count.
    #[test]
    fn a_table_of_one_user_or_host_counts_the_lines_about_it() {
        let counted = |outside: &Outside| used(outside, TWO, &[], 1).count;
        let [of_ann, of_another] = [ANN, 1002].map(|uid| Outside { is_by_user: true, uid, ..outside() });
        let on = |host: &str| Outside { is_by_host: true, host: host.to_owned(), ..outside() };
        assert_eq!((counted(&of_ann), counted(&of_another)), (5, 0));
        assert_eq!((counted(&on("ws17.example")), counted(&on("LAB1")), counted(&on("lab2"))), (5, 1, 0));
        assert_eq!(counted(&Outside { is_by_user: true, uid: ANN, ..on("lab1") }), 0);
    }

    /// Where slots have no names, a line with a name is the use of one slot.
    #[test]
    fn a_line_with_a_name_takes_one_slot_where_no_slot_has_a_name() {
        let sample = sample("{\"name\":\"gpu0\",\"user\":\"bob\"}\n");
        let lines = sample.lines(&outside()).expect("a sample");
        let names = Names { all: &[], out_of_order: &[] };
        let used = Used::of(&sample, &lines, &outside(), (&held(&[]), &[]), &names, 1);
        assert_eq!(used, Used { count: 1, ..Used::default() });
    }

    /// A line needs a user, a host or a name. A blank line has no meaning.
    #[test]
    fn a_line_needs_one_value_that_says_what_is_in_use() {
        let text = "{\"host\":\"lab1\"}\n\n \n\
             {\"name\":\"0\"}\n{\"user\":\"ann\",\"amount\":1048575}\n";
        let lines = parse_lines((1..).zip(text.lines())).expect("these lines can be counted");
        assert_eq!(lines.iter().map(|line| line.amount).collect::<Vec<_>>(), [1, 1, 1_048_575]);
        let wrong = parse_lines((1..).zip("\n\n{\"amount\":1}".lines())).expect_err("it is about no use");
        assert!(wrong.contains("line 3"), "{wrong}");
    }

    #[test]
    fn a_line_that_says_nothing_or_too_much_spoils_the_sample() {
        for line in [
            "{\"user\":\"ann\",\"amount\":-1}",
            "{\"user\":\"ann\",\"amount\":1048576}",
            "{\"user\":\"ann\",\"amount\":99999999999999999999}",
            "{\"amount\":1}",
            "[]",
            "ann 1",
        ] {
            assert!(parse_lines([(1, line)].into_iter()).is_err(), "{line}");
        }
    }
}
