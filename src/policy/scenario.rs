//! A test in a policy: a request, and the expected decision. The evaluator runs it.

use std::{ffi::OsString, path::PathBuf};

use jiff::Timestamp;

use super::{place::Place, rule::Slots};
use crate::judge::terms::{Hold, Keyword, Wait};

/// One `[[test]]`.
#[derive(Debug)]
pub struct Scenario {
    pub name: String,
    /// Where it is.
    pub place: Place,
    pub(crate) person: Person,
    pub(crate) command: OsString,
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) host: OsString,
    pub(crate) directory: PathBuf,
    pub(crate) environment: Vec<(String, OsString)>,
    /// The time; now if it is not given.
    pub(crate) time: Option<Timestamp>,
    pub(crate) cpus: u32,
    pub(crate) held: Vec<Held>,
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) expect: Expectation,
    /// The rule that refuses or exempts.
    pub(crate) by: Option<String>,
    pub(crate) claims: Option<Vec<ExpectedClaim>>,
    /// How long it may wait.
    pub(crate) wait: Option<Wait>,
    pub(crate) hold: Option<Hold>,
}

/// The user who starts the command.
#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) user: String,
    pub(crate) uid: u32,
    /// Names, or numbers of groups without a name.
    pub(crate) groups: Vec<String>,
    /// With their plus signs.
    pub(crate) netgroups: Vec<String>,
}

/// Slots of a repository that are held at the time of the launch.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) repository: usize,
    pub(crate) member: Option<String>,
    pub(crate) by: Users<Holder>,
}

/// Other users at the time of the launch.
#[derive(Debug)]
pub(crate) enum Users<T> {
    /// Users like the caller have this many slots, or wait with this many launches.
    Alike(u32),
    /// These, in the order in which they came.
    These(Vec<T>),
}

/// A user who has started the same command before.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) person: Person,
    pub(crate) slots: u32,
}

/// The launches that wait for a repository.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) repository: usize,
    pub(crate) member: Option<String>,
    pub(crate) by: Users<Person>,
}

/// The expected result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expectation {
    /// It starts, perhaps with slots.
    Start,
    /// It does not start at once: it is refused, by a rule or because there is no room, or waits.
    Refuse,
    Wait,
    /// It starts, and would be refused or wait if everything were enforced.
    WouldRefuse,
    /// It starts, and needs no slot because of an exempt rule.
    Exempt,
}

impl Keyword for Expectation {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("start", Expectation::Start),
        ("refuse", Expectation::Refuse),
        ("wait", Expectation::Wait),
        ("would-refuse", Expectation::WouldRefuse),
        ("exempt", Expectation::Exempt),
    ];
}

/// A claim that must be among those of the launch; omitted keys are not compared.
#[derive(Debug)]
pub(crate) struct ExpectedClaim {
    pub(crate) repository: usize,
    pub(crate) member: Option<String>,
    pub(crate) slots: Option<Slots>,
    pub(crate) limit: Option<u32>,
}
