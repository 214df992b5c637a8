//! `[[rule]]` as written.

use super::claim::WrittenAcquisition;
use crate::policy::{
    hold::Hold,
    keys::{RULE, SELECTORS},
    place::{At, Written},
    reader::Section,
    rule::{Action, Admission},
    selector::WrittenSelectors,
    span_of_time::Wait,
};

pub(in crate::policy) struct WrittenRule<'a> {
    pub(in crate::policy) at: At,
    pub(in crate::policy) name: Option<Written<&'a str>>,
    pub(in crate::policy) selectors: WrittenSelectors<'a>,
    pub(in crate::policy) except: Vec<WrittenSelectors<'a>>,
    pub(in crate::policy) first_of: Option<Written<&'a str>>,
    pub(in crate::policy) order: Option<Written<i64>>,
    pub(in crate::policy) enabled: Option<Written<bool>>,
    pub(in crate::policy) action: Option<Written<Action>>,
    /// Whether `action` is there but says nothing that is known.
    pub(in crate::policy) action_unknown: bool,
    pub(in crate::policy) message: Option<Written<&'a str>>,
    pub(in crate::policy) contact: Option<Written<&'a str>>,
    pub(in crate::policy) acquire: Option<Written<Vec<WrittenAcquisition<'a>>>>,
    /// Whether `acquire` is there, well or badly written.
    pub(in crate::policy) acquires: bool,
    pub(in crate::policy) admit: Option<Written<Admission>>,
    pub(in crate::policy) from: Option<Written<Vec<Written<&'a str>>>>,
    pub(in crate::policy) enforce: Option<Written<bool>>,
    pub(in crate::policy) wait: Option<Written<Wait>>,
    pub(in crate::policy) hold: Option<Written<Hold>>,
}

impl<'a> WrittenRule<'a> {
    /// Where it is pointed at: its name, where it has one.
    pub(in crate::policy) fn place(&self) -> At {
        self.name.map_or(self.at, |name| name.at)
    }

    /// The rules of a file.
    pub(super) fn read_all(file: &Section<'a>) -> Vec<Self> {
        file.tables("rule", &RULE).iter().map(Self::read).collect()
    }

    fn read(section: &Section<'a>) -> Self {
        let action = section.choice("action");
        let acquire = section.get("acquire");
        WrittenRule {
            at: section.at,
            name: section.text("name"),
            selectors: WrittenSelectors::read(section),
            except: section.tables("except", &SELECTORS).iter().map(WrittenSelectors::read).collect(),
            first_of: section.text("first_of"),
            order: section.number("order", i64::MIN, i64::MAX),
            enabled: section.flag("enabled"),
            action,
            action_unknown: action.is_none() && section.get("action").is_some(),
            message: section.text("message"),
            contact: section.contact("contact"),
            acquire: acquire.and_then(WrittenAcquisition::read_all),
            acquires: acquire.is_some(),
            admit: section.choice("admit"),
            from: section.texts("from"),
            enforce: section.flag("enforce"),
            wait: section.wait("wait"),
            hold: section.choice("hold"),
        }
    }
}
