//! Tests of a policy: names must exist, times must be valid. Whether they pass is not checked here.

use std::{collections::BTreeSet, ffi::OsString, path::Path};

use jiff::Timestamp;

use super::SymbolTable;
use crate::policy::{
    Expectation, ExpectedClaim, Held, Holder, Holders, Layer, Person, Repository, Rule, Scenario, Waiting,
    Written,
    fault::Fault,
    place::Place,
    spelling::nearest,
    times::{parse_time, zone_of},
    warning::Warning,
    written::{
        WrittenExpectedClaim, WrittenHolder, WrittenHolders, WrittenPerson, WrittenScenario, WrittenUser,
    },
};

/// Every test of all files; `rules` are all rules.
pub(super) fn validate(book: &SymbolTable<'_>, rules: &[Rule], repositories: &[Repository]) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for file in book.files {
        for written in WrittenScenario::each(&file.section) {
            let written = &written;
            let reading = Reading { book, rules, repositories, written, layer: &book.layers[file.layer] };
            let scenario = reading.scenario(Place::new(&file.source, written.at.start));
            scenarios.extend(scenario);
        }
    }
    scenarios
}

struct Reading<'b, 'w> {
    book: &'b SymbolTable<'w>,
    rules: &'b [Rule],
    repositories: &'b [Repository],
    written: &'b WrittenScenario<'w>,
    layer: &'b Layer,
}

impl Reading<'_, '_> {
    fn scenario(&self, place: Place) -> Option<Scenario> {
        let written = self.written;
        let held = written.held.iter().filter_map(|(name, by)| {
            let (repository, member) = self.repository(*name)?;
            Some(Held { repository, member, by: holders(by) })
        });
        let held = held.collect();
        let waiting = written.waiting.iter().filter_map(|(name, launches)| {
            let (repository, member) = self.repository(*name)?;
            Some(Waiting { repository, member, launches: *launches })
        });
        let waiting = waiting.collect();
        let claims = written
            .claims
            .as_ref()
            .map(|claims| claims.iter().filter_map(|claim| self.claim(claim)).collect());
        self.check_by();
        self.check_wait_and_hold();
        let command = written.command?.value;
        let path = written.path.map_or_else(|| Path::new("/usr/bin").join(command), |path| path.value.into());
        let arguments = written.arguments.iter().flat_map(|arguments| &arguments.value);
        Some(Scenario {
            name: written.name?.value.to_owned(),
            place,
            person: person(&written.person),
            command: command.into(),
            path,
            arguments: arguments.map(|argument| OsString::from(argument.value)).collect(),
            host: text(written.host, "localhost").into(),
            directory: text(written.directory, "/").into(),
            environment: written
                .environment
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.into()))
                .collect(),
            time: written.time.as_ref().and_then(|time| self.time(time)),
            cpus: written.cpus.map_or(1, |cpus| cpus.value),
            held,
            waiting,
            expect: written.expect?.value,
            by: written.by.map(|by| by.value.to_owned()),
            claims,
            wait: written.wait.map(|wait| wait.value),
            hold: written.hold.map(|hold| hold.value),
        })
    }

    fn time(&self, time: &Written<String>) -> Option<Timestamp> {
        let zone = self.layer.zone.clone().unwrap_or_else(|| zone_of(self.book.layers));
        let parsed = parse_time(&time.value, &zone);
        if parsed.is_none() {
            let reason = "a moment is written 2026-11-20 14:02".to_owned();
            self.book.findings.fault(time.at, Fault::BadWindow { reason });
        }
        parsed
    }

    fn check_by(&self) {
        let Some(by) = self.written.by else { return };
        if !self.rules.iter().any(|rule| rule.name == by.value || *rule.shown_name == *by.value) {
            let names: BTreeSet<&str> = self.rules.iter().map(|rule| rule.name.as_str()).collect();
            let nearest = nearest(by.value, names);
            self.book.findings.fault(by.at, Fault::UnknownRule { name: by.value.to_owned(), nearest });
        }
        if let Some(Expectation::Start) = self.written.expect.map(|expect| expect.value) {
            self.book.findings.fault(by.at, Fault::Contradiction { key: "by", other: "expect = \"start\"" });
        }
    }

    /// Reports `wait` and `hold` beside an expected result with which they have no effect.
    fn check_wait_and_hold(&self) {
        let Some(expect) = self.written.expect.map(|expect| expect.value) else { return };
        if let Some(wait) = self.written.wait.filter(|_| expect != Expectation::Wait) {
            self.book.findings.fault(wait.at, Fault::NeedsKey { key: "wait", needs: "expect = \"wait\"" });
        }
        let other = match expect {
            Expectation::Refuse => "expect = \"refuse\"",
            Expectation::Exempt => "expect = \"exempt\"",
            Expectation::Start | Expectation::Wait | Expectation::WouldRefuse => return,
        };
        if let Some(hold) = self.written.hold {
            self.book.findings.fault(hold.at, Fault::Contradiction { key: "hold", other });
        }
    }

    fn claim(&self, written: &WrittenExpectedClaim<'_>) -> Option<ExpectedClaim> {
        let (repository, member) = self.repository(written.repository)?;
        Some(ExpectedClaim { repository, member, slots: written.slots, limit: written.limit })
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

fn holders(written: &WrittenHolders<'_>) -> Holders {
    match written {
        WrittenHolders::Alike(slots) => Holders::Alike(*slots),
        WrittenHolders::These(holders) => {
            let holders = holders.iter();
            let holder = |holder: &WrittenHolder<'_>| Holder {
                person: person(&holder.person),
                slots: holder.slots.unwrap_or(1),
            };
            Holders::These(holders.map(holder).collect())
        }
    }
}

fn person(written: &WrittenPerson<'_>) -> Person {
    let (user, uid) = match written.user {
        None => ("user", 1000),
        Some(WrittenUser::Name(name)) => (name, if name == "root" { 0 } else { 1000 }),
        Some(WrittenUser::Uid(uid)) => ("user", uid),
    };
    let (netgroups, groups) =
        written.groups().iter().map(|group| group.value.to_string()).partition(|name| name.starts_with('+'));
    Person { user: user.to_owned(), uid, groups, netgroups }
}

fn text<'w>(written: Option<Written<&'w str>>, otherwise: &'w str) -> &'w str {
    written.map_or(otherwise, |written| written.value)
}
