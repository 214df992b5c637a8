//! `[repository.NAME]` as written.

use std::time::Duration;

use super::{Entry, WrittenList, filled};
use crate::policy::{
    choice::Choice,
    fault::Fault,
    hold::Hold,
    keys::RESERVE,
    limit::{HIGHEST_LIMIT, Limit},
    place::{At, Written},
    reader::{Section, Value},
    repository::{Charge, ElapsedFrom, ExpireKill, Nested, Per, TooSoon},
    span_of_time::Wait,
};

/// One `[repository.NAME]`.
pub(in crate::policy) struct WrittenRepository<'a> {
    pub(in crate::policy) name: Written<&'a str>,
    pub(in crate::policy) path: Option<Written<&'a str>>,
    pub(in crate::policy) per: Option<Written<Vec<Per>>>,
    /// Nothing where it is missing, a fault (already reported) where it is wrong.
    pub(in crate::policy) limit: Option<Result<Written<Limit>, ()>>,
    pub(in crate::policy) limits: Vec<(Written<&'a str>, Written<Limit>)>,
    pub(in crate::policy) charge: Option<Written<Charge>>,
    pub(in crate::policy) reserve: Vec<WrittenReservation<'a>>,
    pub(in crate::policy) nested: Option<Written<Nested>>,
    pub(in crate::policy) enforce: Option<Written<bool>>,
    pub(in crate::policy) wait: Option<Written<Wait>>,
    pub(in crate::policy) hold: Option<Written<Hold>>,
    pub(in crate::policy) if_elapsed: Option<Written<Duration>>,
    pub(in crate::policy) if_elapsed_from: Option<Written<ElapsedFrom>>,
    pub(in crate::policy) too_soon: Option<Written<TooSoon>>,
    pub(in crate::policy) expire_after: Option<Written<Duration>>,
    pub(in crate::policy) expire_grace: Option<Written<Duration>>,
    pub(in crate::policy) expire_kill: Option<Written<ExpireKill>>,
    /// Where `limits` stands.
    pub(in crate::policy) limits_at: Option<At>,
}

/// One table of `reserve`.
pub(in crate::policy) struct WrittenReservation<'a> {
    pub(in crate::policy) principals: Vec<Entry<'a>>,
    pub(in crate::policy) slots: Written<u32>,
    pub(in crate::policy) lend: Option<Written<u32>>,
}

impl<'a> WrittenRepository<'a> {
    pub(super) fn read(name: Written<&'a str>, section: &Section<'a>) -> Self {
        let limits_value = section.get("limits");
        // One mistake is one fault: what stands there was meant as the limit, so that this is not missing.
        let is_limit = limits_value.as_ref().is_some_and(|value| !value.is_table());
        if let Some(value) = limits_value.as_ref().filter(|_| is_limit) {
            value.wrong("a table of members, such as { ann = 8 }; one limit for all is \"limit\"");
        }
        let limits = if is_limit { Vec::new() } else { section.by_name("limits") }.into_iter();
        let reserve = section.tables("reserve", &RESERVE);
        WrittenRepository {
            name,
            path: section.text("path"),
            per: section.get("per").and_then(per),
            limit: section
                .get("limit")
                .map(|value| limit(value).ok_or(()))
                .or_else(|| is_limit.then_some(Err(()))),
            limits: limits.filter_map(|(member, value)| Some((member, limit(value)?))).collect(),
            charge: section.choice("charge"),
            reserve: reserve.iter().filter_map(WrittenReservation::read).collect(),
            nested: section.choice("nested"),
            enforce: section.flag("enforce"),
            wait: section.wait("wait"),
            hold: section.choice("hold"),
            if_elapsed: section.duration("if_elapsed"),
            if_elapsed_from: section.choice("if_elapsed_from"),
            too_soon: section.choice("too_soon"),
            expire_after: section.duration("expire_after"),
            expire_grace: section.duration("expire_grace"),
            expire_kill: section.choice("expire_kill"),
            limits_at: limits_value.filter(|_| !is_limit).map(|value| value.at),
        }
    }
}

impl<'a> WrittenReservation<'a> {
    fn read(section: &Section<'a>) -> Option<Self> {
        let principals = section.require("for").and_then(WrittenList::read);
        let slots = section.require("slots").and_then(|value| value.count(1, HIGHEST_LIMIT));
        let lend = section.count("lend", 0, HIGHEST_LIMIT);
        Some(WrittenReservation { principals: principals?.entries, slots: slots?, lend })
    }
}

fn limit(value: Value<'_>) -> Option<Written<Limit>> {
    if value.is_number() {
        let count = value.count(0, HIGHEST_LIMIT)?;
        return Some(Written { value: Limit::Fixed(count.value), at: count.at });
    }
    value.parsed("a number of slots, or \"2/cpu\"", Limit::parse, |_, text| Fault::BadLimit { text })
}

fn per(value: Value<'_>) -> Option<Written<Vec<Per>>> {
    if !value.is_list() {
        if value.as_text().is_none() {
            value
                .wrong("one of \"user\", \"group\", \"host\", \"command\", \"directory\", or a list of them");
            return None;
        }
        let one = value.choice::<Per>()?;
        return Some(Written { value: vec![one.value], at: one.at });
    }
    let list = value.list("a list of strings")?;
    let mut members = Vec::new();
    for element in &list.value {
        let member = element.choice::<Per>()?.value;
        if members.contains(&member) {
            element.fault(Fault::Repeated { word: member.word() });
        }
        members.push(member);
    }
    filled(value, members, list.at, "leave it out for one file that all share")
}
