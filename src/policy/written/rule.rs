//! `[[rule]]` as written.

use crate::{
    judge::terms::{Hold, Wait},
    policy::{
        ALTERNATIVE, Action, At, CLAIM, HIGHEST_LIMIT, IfUnclear, RULE, SLOTS_FROM, Section, Share, Value,
        Written, fault::Fault, rule::Slots,
    },
};

pub(in crate::policy) struct WrittenRule<'a> {
    /// With its selectors, and those of its exceptions.
    pub(in crate::policy) section: Section<'a>,
    pub(in crate::policy) name: Option<Written<&'a str>>,
    pub(in crate::policy) first_of: Option<Written<&'a str>>,
    pub(in crate::policy) order: Option<Written<i64>>,
    pub(in crate::policy) action: Option<Written<Action>>,
    /// Whether `action` is present but has no known value.
    pub(in crate::policy) action_unknown: bool,
    pub(in crate::policy) message: Option<Written<&'a str>>,
    pub(in crate::policy) contact: Option<Written<&'a str>>,
    pub(in crate::policy) acquire: Option<Value<'a>>,
    pub(in crate::policy) from: Option<Written<Vec<Written<&'a str>>>>,
    pub(in crate::policy) enforce: Option<Written<bool>>,
    pub(in crate::policy) wait: Option<Written<Wait>>,
    pub(in crate::policy) hold: Option<Written<Hold>>,
}

impl<'a> WrittenRule<'a> {
    /// The place that faults show: its name, if it has one.
    pub(in crate::policy) fn place(&self) -> At {
        self.name.map_or(self.section.at, |name| name.at)
    }

    /// The rules of a file, one after the other.
    pub(in crate::policy) fn each(file: &Section<'a>) -> impl Iterator<Item = Self> {
        file.each("rule", &RULE).map(Self::read)
    }

    fn read(section: Section<'a>) -> Self {
        let action = section.choice("action");
        WrittenRule {
            name: section.text("name"),
            first_of: section.text("first_of"),
            order: section.number("order", i64::MIN, i64::MAX),
            action,
            action_unknown: action.is_none() && section.get("action").is_some(),
            message: section.text("message"),
            contact: section.contact("contact"),
            acquire: section.get("acquire"),
            from: section.texts("from"),
            enforce: section.flag("enforce"),
            wait: section.wait("wait"),
            hold: section.choice("hold"),
            section,
        }
    }
}

// `acquire` as written.

pub(in crate::policy) enum WrittenAcquisition<'a> {
    One(WrittenClaim<'a>),
    AnyOf(Vec<WrittenAlternative<'a>>),
}

/// Claims that are acquired together, or not at all.
pub(in crate::policy) struct WrittenAlternative<'a> {
    pub(in crate::policy) at: At,
    pub(in crate::policy) claims: Vec<WrittenClaim<'a>>,
}

/// The claim on one repository.
pub(in crate::policy) struct WrittenClaim<'a> {
    pub(in crate::policy) at: At,
    pub(in crate::policy) repository: Written<&'a str>,
    pub(in crate::policy) ceiling: Option<Written<Share>>,
    pub(in crate::policy) slots: Option<Written<Slots>>,
    pub(in crate::policy) slots_from: Option<WrittenSlotsFrom<'a>>,
    pub(in crate::policy) wait: Option<Written<Wait>>,
}

/// Where the command line has the number of slots.
pub(in crate::policy) struct WrittenSlotsFrom<'a> {
    pub(in crate::policy) after: Vec<&'a str>,
    pub(in crate::policy) most: Option<u32>,
    /// In ascending order of the numbers.
    pub(in crate::policy) table: Vec<(u32, Written<u32>)>,
    pub(in crate::policy) unclear: Option<IfUnclear>,
}

impl<'a> WrittenAcquisition<'a> {
    /// What a rule claims, one after the other.
    pub(in crate::policy) fn each(acquire: Value<'a>) -> impl Iterator<Item = Self> {
        acquire.elements("a list of repositories").into_iter().flatten().filter_map(Self::read)
    }

    fn read(value: Value<'a>) -> Option<Self> {
        if !value.is_table() {
            return WrittenClaim::named(value).map(WrittenAcquisition::One);
        }
        let section = value.section(&CLAIM)?;
        let Some(alternatives) = section.get("any_of") else {
            return WrittenClaim::read(&section).map(WrittenAcquisition::One);
        };
        for key in ["repository", "ceiling", "slots", "slots_from", "wait"] {
            if let Some(beside) = section.get(key) {
                beside.fault(Fault::Contradiction { key, other: "\"any_of\"" });
            }
        }
        let list = alternatives.elements("a list of repositories")?;
        if alternatives.is_empty_list() {
            alternatives.fault(Fault::EmptyList { key: "any_of".into(), instead: "name at least one claim" });
        }
        Some(WrittenAcquisition::AnyOf(list.filter_map(WrittenAlternative::read).collect()))
    }
}

impl<'a> WrittenAlternative<'a> {
    fn read(value: Value<'a>) -> Option<Self> {
        let at = value.at;
        if !value.is_list() {
            return WrittenClaim::alternative(value)
                .map(|claim| WrittenAlternative { at, claims: vec![claim] });
        }
        let list = value.elements("a list of claims")?;
        if value.is_empty_list() {
            value.fault(Fault::EmptyList { key: "any_of".into(), instead: "name at least one claim" });
        }
        let claims = list.filter_map(WrittenClaim::alternative).collect();
        Some(WrittenAlternative { at, claims })
    }
}

impl<'a> WrittenClaim<'a> {
    fn named(value: Value<'a>) -> Option<Self> {
        let Some(name) = value.as_text() else {
            value.wrong("the name of a repository, or a table with one");
            return None;
        };
        Some(WrittenClaim {
            at: value.at,
            repository: Written { value: name, at: value.at },
            ceiling: None,
            slots: None,
            slots_from: None,
            wait: None,
        })
    }

    fn alternative(value: Value<'a>) -> Option<Self> {
        if !value.is_table() {
            if value.as_text().is_none() {
                value.fault(Fault::NoAlternative);
                return None;
            }
            return Self::named(value);
        }
        Self::read(&value.section(&ALTERNATIVE)?)
    }

    fn read(section: &Section<'a>) -> Option<Self> {
        let ceiling = section.share("ceiling");
        let slots = section.get("slots").and_then(|value| slots(value, 0));
        let slots_from = section.section("slots_from", &SLOTS_FROM);
        if let (Some(from), Some(Written { value: Slots::All, .. })) = (&slots_from, &slots) {
            section.fault(from.at, Fault::Contradiction { key: "slots_from", other: "slots = \"all\"" });
        }
        if let (None, Some(Written { value: Slots::Number(0), at })) = (section.get("slots_from"), slots) {
            section.fault(at, Fault::NoSlotsFrom);
        }
        let absent = slots_from.as_ref().and_then(|from| from.count("absent", 0, HIGHEST_LIMIT));
        if let (Some(absent), Some(_)) = (absent, slots) {
            section.fault(absent.at, Fault::Contradiction { key: "absent", other: "\"slots\"" });
        }
        let absent = absent.map(|Written { value, at }| Written { value: Slots::Number(value), at });
        Some(WrittenClaim {
            at: section.at,
            repository: section.require("repository")?.text()?,
            ceiling,
            slots: slots.or(absent),
            slots_from: slots_from.and_then(|section| WrittenSlotsFrom::read(&section)),
            wait: section.wait("wait"),
        })
    }
}

impl<'a> WrittenSlotsFrom<'a> {
    fn read(section: &Section<'a>) -> Option<Self> {
        let after = section.require("after")?;
        let after = if after.is_list() {
            after.filled_texts("name at least one argument")?
        } else {
            vec![after.text()?]
        };
        let mut table = Vec::new();
        for (number, slots) in section.by_name("table") {
            match number
                .value
                .parse()
                .ok()
                .filter(|count: &u32| *count > 0 && count.to_string() == number.value)
            {
                Some(count) => table.extend(slots.count(1, HIGHEST_LIMIT).map(|slots| (count, slots))),
                None => section.fault(number.at, Fault::NotANumber { text: number.value.to_owned() }),
            }
        }
        table.sort_unstable_by_key(|(number, _)| *number);
        Some(WrittenSlotsFrom {
            after: after.into_iter().map(|name| name.value).collect(),
            most: section.count("most", 1, HIGHEST_LIMIT).map(|most| most.value),
            table,
            unclear: section.choice("unclear").map(|unclear| unclear.value),
        })
    }
}

/// A number of slots from `least` on, or all.
pub(in crate::policy) fn slots(value: Value<'_>, least: u32) -> Option<Written<Slots>> {
    if value.as_text() == Some("all") {
        return Some(Written { value: Slots::All, at: value.at });
    }
    if value.is_number() {
        let count = value.count(least, HIGHEST_LIMIT)?;
        return Some(Written { value: Slots::Number(count.value), at: count.at });
    }
    value.wrong("a number of slots, or \"all\"");
    None
}
