//! Tests of a policy: names must exist, times must be valid. Whether they pass is not checked here.

use std::{collections::BTreeSet, ffi::OsString, path::Path};

use jiff::Timestamp;

use super::{LayerFile, SymbolTable};
use crate::{
    judge::terms::{Hold, Wait},
    policy::{
        EXPECTED_CLAIM, Expectation, ExpectedClaim, HIGHEST_LIMIT, HOLDER, Held, Holder, Keys, LONGEST_QUEUE,
        Person, Repository, Rule, Scenario, Section, TEST, Users, Value, WAITER, Waiting, Written,
        aliases::entries_in,
        fault::Fault,
        place::Place,
        times::{parse_time, zone_of},
        warning::Warning,
        written::slots,
    },
};

/// Every test of all files; `rules` are all rules.
pub(super) fn validate(book: &SymbolTable<'_>, rules: &[Rule], repositories: &[Repository]) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for file in book.files {
        let reading = Reading { book, rules, repositories, file };
        let tests = file.section.each("test", &TEST);
        scenarios.extend(tests.filter_map(|section| reading.scenario(&section)));
    }
    scenarios
}

struct Reading<'b, 'w> {
    book: &'b SymbolTable<'w>,
    rules: &'b [Rule],
    repositories: &'b [Repository],
    file: &'b LayerFile<'w>,
}

impl<'w> Reading<'_, 'w> {
    /// Reads a test. Each of its faults is reported, also if something else is missing.
    fn scenario(&self, section: &Section<'w>) -> Option<Scenario> {
        let name = section.require("name").and_then(|value| value.text());
        let command = section.require("command").and_then(|value| value.text());
        let expect = section.require("expect").and_then(|value| value.choice());
        let (by, wait, hold) = (section.text("by"), section.wait("wait"), section.choice("hold"));
        self.check_by(by, expect);
        self.check_wait_and_hold(wait, hold, expect);
        let held = section.by_name("use").into_iter().filter_map(|(name, value)| {
            let holder = |section: &Section<'w>| {
                let slots = section.count("slots", 1, HIGHEST_LIMIT).map_or(1, |slots| slots.value);
                Holder { person: person(section), slots }
            };
            let by = users(value, HIGHEST_LIMIT, "a number of slots, or a list of holders", &HOLDER, holder)?;
            let (repository, member) = self.repository(name)?;
            Some(Held { repository, member, by })
        });
        let held = held.collect();
        let waiting = section.by_name("waiting").into_iter().filter_map(|(name, value)| {
            let by =
                users(value, LONGEST_QUEUE, "a number of launches, or a list of users", &WAITER, person)?;
            let (repository, member) = self.repository(name)?;
            Some(Waiting { repository, member, by })
        });
        let waiting = waiting.collect();
        let claims = section.get("claims").and_then(|value| value.elements("a list of repositories"));
        let claims = claims.map(|claims| claims.filter_map(|claim| self.claim(claim)).collect());
        let variables = section.by_name("environment").into_iter();
        let environment = variables
            .filter_map(|(name, value)| Some((name.value.to_owned(), value.text()?.value.into())))
            .collect();
        let time = section.get("time").and_then(|value| self.time(&value.time()?));
        let path = section.text("path");
        let arguments = section.texts("arguments").map(|arguments| arguments.value).unwrap_or_default();
        let text = |key, otherwise: &'static str| section.text(key).map_or(otherwise, |text| text.value);
        let (host, directory) = (text("host", "localhost"), text("directory", "/"));
        let cpus = section.count("cpus", 1, 1_000_000).map_or(1, |cpus| cpus.value);
        let person = person(section);
        let command = command?.value;
        Some(Scenario {
            name: name?.value.to_owned(),
            place: Place::new(&self.file.source, section.at.start),
            person,
            command: command.into(),
            path: path.map_or_else(|| Path::new("/usr/bin").join(command), |path| path.value.into()),
            arguments: arguments.into_iter().map(|argument| OsString::from(argument.value)).collect(),
            host: host.into(),
            directory: directory.into(),
            environment,
            time,
            cpus,
            held,
            waiting,
            expect: expect?.value,
            by: by.map(|by| by.value.to_owned()),
            claims,
            wait: wait.map(|wait| wait.value),
            hold: hold.map(|hold| hold.value),
        })
    }

    fn time(&self, time: &Written<String>) -> Option<Timestamp> {
        let zone =
            self.book.layers[self.file.layer].zone.clone().unwrap_or_else(|| zone_of(self.book.layers));
        let parsed = parse_time(&time.value, &zone);
        if parsed.is_none() {
            let reason = "a moment is written 2026-11-20 14:02".to_owned();
            self.book.findings.fault(time.at, Fault::BadWindow { reason });
        }
        parsed
    }

    fn check_by(&self, by: Option<Written<&str>>, expect: Option<Written<Expectation>>) {
        let Some(by) = by else { return };
        if !self.rules.iter().any(|rule| rule.name == by.value || *rule.shown_name == *by.value) {
            let names: BTreeSet<&str> = self.rules.iter().map(|rule| rule.name.as_str()).collect();
            let nearest = self.book.findings.nearest(by.at, by.value, names);
            self.book.findings.fault(by.at, Fault::UnknownRule { name: by.value.to_owned(), nearest });
        }
        if let Some(Expectation::Start) = expect.map(|expect| expect.value) {
            self.book.findings.fault(by.at, Fault::Contradiction { key: "by", other: "expect = \"start\"" });
        }
    }

    /// Reports `wait` and `hold` beside an expected result with which they have no effect.
    fn check_wait_and_hold(
        &self,
        wait: Option<Written<Wait>>,
        hold: Option<Written<Hold>>,
        expect: Option<Written<Expectation>>,
    ) {
        let Some(expect) = expect.map(|expect| expect.value) else { return };
        if let Some(wait) = wait.filter(|_| expect != Expectation::Wait) {
            self.book.findings.fault(wait.at, Fault::NeedsKey { key: "wait", needs: "expect = \"wait\"" });
        }
        let other = match expect {
            Expectation::Refuse => "expect = \"refuse\"",
            Expectation::Exempt => "expect = \"exempt\"",
            Expectation::Start | Expectation::Wait | Expectation::WouldRefuse => return,
        };
        if let Some(hold) = hold {
            self.book.findings.fault(hold.at, Fault::Contradiction { key: "hold", other });
        }
    }

    /// A name, or a table with one.
    fn claim(&self, value: Value<'w>) -> Option<ExpectedClaim> {
        let (name, slots, limit) = if let Some(name) = value.as_text() {
            (Written { value: name, at: value.at }, None, None)
        } else {
            let section = value.section(&EXPECTED_CLAIM)?;
            let name = section.require("repository")?.text()?;
            let slots = section.get("slots").and_then(|value| slots(value, 1));
            (name, slots.map(|slots| slots.value), section.count("limit", 0, HIGHEST_LIMIT))
        };
        let (repository, member) = self.repository(name)?;
        Some(ExpectedClaim { repository, member, slots, limit: limit.map(|limit| limit.value) })
    }

    /// The repository of `matlab` or `matlab-per-user [ann]`, and the member.
    fn repository(&self, name: Written<&str>) -> Option<(usize, Option<String>)> {
        let bracketed = name.value.strip_suffix(']').and_then(|name| name.split_once('['));
        let (repository, member) = match bracketed {
            Some((repository, member)) => (repository.trim_end(), Some(member)),
            None => (name.value, None),
        };
        let index = self.book.mentioned(Written { value: repository, at: name.at })?;
        let is_one = self.repositories.get(index).is_some_and(|known| known.placeholders().next().is_none());
        if member.is_some() && is_one {
            self.book.warn(name.at, || Warning::NoMembers { repository: repository.to_owned() });
        }
        Some((index, member.map(str::to_owned)))
    }
}

/// The users who hold slots, or wait: a number of these slots or launches, or a list of tables.
fn users<'w, T>(
    value: Value<'w>,
    most: u32,
    expected: &'static str,
    keys: &'static Keys,
    one: impl Fn(&Section<'w>) -> T,
) -> Option<Users<T>> {
    if value.is_number() {
        return value.count(0, most).map(|number| Users::Alike(number.value));
    }
    let listed = value.elements(expected)?;
    Some(Users::These(listed.filter_map(|value| Some(one(&value.section(keys)?))).collect()))
}

fn person(section: &Section<'_>) -> Person {
    let (user, uid) = match section.get("user") {
        Some(value) if value.is_number() => {
            ("user", value.count(0, u32::MAX - 1).map_or(1000, |uid| uid.value))
        }
        value => {
            let name = value.and_then(|value| value.text()).map_or("user", |name| name.value);
            (name, if name == "root" { 0 } else { 1000 })
        }
    };
    let groups = section.get("groups").filter(|groups| !groups.is_empty_list()).and_then(entries_in);
    let groups = groups.into_iter().flatten().map(|group| group.value.into_owned());
    let (netgroups, groups) = groups.partition(|name| name.starts_with('+'));
    Person { user: user.to_owned(), uid, groups, netgroups }
}
