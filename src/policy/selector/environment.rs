//! `environment`: values of variables, all of which must match.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::{
    alternatives::{Kind, note},
    text_entry::{TextEntry, text_entry},
};
use crate::{
    judge::terms::LookupError,
    policy::{
        Aliases, Captured, EvalContext, Key, RelevantInputs, Shape, Value, Written,
        aliases::{MATCH_ALL, entries_in},
        fault::Fault,
        key::key,
        toml_text::{self, inline_table, list, string},
    },
};

/// Variables and the condition of each.
#[derive(Debug)]
pub(crate) struct Environment(Vec<(String, ValueCondition)>);

#[derive(Debug)]
enum ValueCondition {
    Unset,
    Set,
    OneOf(Vec<TextEntry>),
}

impl Environment {
    /// Whether a value of a variable is one that these patterns name.
    pub(in crate::policy) fn names(&self, variable: &str, value: &OsStr) -> bool {
        let names = |(known, wanted): &(String, ValueCondition)| match wanted {
            ValueCondition::OneOf(patterns) if known == variable => {
                patterns.iter().any(|one| !one.is_everything() && one.matches(value.as_bytes()))
            }
            _ => false,
        };
        self.0.iter().any(names)
    }
}

impl Kind for Environment {
    const KEY: Key = key(
        "environment",
        Shape::Environment,
        "Variables with their values; false: not set.",
        "Batch jobs, which their scheduler marks by a variable.",
    )
    .filled();
    const ASKS_WHO: bool = false;
    const IS_PERSONAL: bool = false;

    fn read(value: Value<'_>, aliases: &Aliases<'_>) -> Option<Self> {
        let variable = |(name, value): (Written<&str>, Value<'_>)| {
            let wanted = condition(value, aliases)?;
            if name.value.is_empty() || name.value.contains(['=', '\0']) {
                aliases.findings.fault(name.at, Fault::BadVariable { name: name.value.to_owned() });
            }
            Some((name.value.to_owned(), wanted))
        };
        let named = value.filled(value.by_name()?, MATCH_ALL)?.value;
        let variables: Vec<_> = named.into_iter().filter_map(variable).collect();
        // Variables none of which can be read already have a fault.
        (!variables.is_empty()).then_some(Environment(variables))
    }

    fn matches(&self, facts: &EvalContext<'_>, _layer: usize) -> Result<bool, LookupError> {
        let matches = |(variable, wanted): &(String, ValueCondition)| {
            let value = (facts.request.environment)(variable);
            match wanted {
                ValueCondition::Unset => value.is_none(),
                ValueCondition::Set => value.is_some(),
                ValueCondition::OneOf(patterns) => {
                    value.is_some_and(|value| patterns.iter().any(|one| one.matches(value.as_bytes())))
                }
            }
        };
        Ok(self.0.iter().all(matches))
    }

    fn covers(&self, narrow: &Self) -> bool {
        let covered = |(variable, wide): &(String, ValueCondition)| {
            narrow.0.iter().any(|(other, narrow)| variable == other && wide.covers(narrow))
        };
        self.0.iter().all(covered)
    }

    fn captured(&self, facts: &EvalContext<'_>) -> Vec<Captured> {
        let captured = |(variable, wanted): &(String, ValueCondition)| {
            let ValueCondition::OneOf(entries) = wanted else { return None };
            let value = (facts.request.environment)(variable)?;
            // The first that matches provides the capture.
            entries.iter().find(|entry| entry.matches(value.as_bytes()))?.captured(value.as_bytes())
        };
        self.0.iter().filter_map(captured).collect()
    }

    fn inputs(&self) -> RelevantInputs {
        RelevantInputs::ENVIRONMENT
    }

    fn shown(&self) -> Vec<String> {
        self.0.iter().map(|(variable, _)| variable.clone()).collect()
    }

    fn printed(&self) -> String {
        inline_table(self.0.iter().map(|(variable, wanted)| {
            let wanted = match wanted {
                ValueCondition::Unset => "false".into(),
                ValueCondition::Set => "true".into(),
                ValueCondition::OneOf(patterns) => {
                    list(patterns.iter().map(|pattern| string(pattern.text())))
                }
            };
            (toml_text::key(variable), wanted)
        }))
    }
}

fn condition(value: Value<'_>, aliases: &Aliases<'_>) -> Option<ValueCondition> {
    match value.as_flag() {
        Some(false) => Some(ValueCondition::Unset),
        Some(true) => Some(ValueCondition::Set),
        None if value.is_list() => {
            let mut entries: Vec<TextEntry> = Vec::new();
            aliases.each(entries_in(value)?, |entry| entries.extend(text_entry(entry, aliases)));
            let captures = entries.iter().map(|entry| entry.captures().into_iter().collect());
            note(Environment::KEY.name, captures, aliases);
            Some(ValueCondition::OneOf(entries))
        }
        None => {
            value.wrong("a list of strings, or false where it must be unset");
            None
        }
    }
}

impl ValueCondition {
    fn covers(&self, narrow: &ValueCondition) -> bool {
        match (self, narrow) {
            (ValueCondition::Unset, ValueCondition::Unset)
            | (ValueCondition::Set, ValueCondition::Set | ValueCondition::OneOf(_)) => true,
            (ValueCondition::OneOf(wide), ValueCondition::OneOf(narrow)) => {
                narrow.iter().all(|entry| wide.iter().any(|wide| wide.covers(entry)))
            }
            (ValueCondition::Unset, ValueCondition::Set | ValueCondition::OneOf(_))
            | (ValueCondition::Set, ValueCondition::Unset)
            | (ValueCondition::OneOf(_), ValueCondition::Unset | ValueCondition::Set) => false,
        }
    }
}
