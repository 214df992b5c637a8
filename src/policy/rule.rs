//! A validated rule: what it selects, what it does, and its claims. It does not depend on the request; the
//! evaluator decides whether it applies.

use std::sync::Arc;

use super::{
    keyword::{Hold, Keyword},
    limit::Share,
    place::Place,
    selector::{Selector, Selectors},
    span_of_time::Wait,
};
use crate::judge::terms::provenance::{Origin, rule_title};
pub(super) use crate::judge::terms::slots_wanted::Slots;

/// The effect of a counting rule on the launch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Action {
    /// It acquires its claims.
    #[default]
    Limit,
    /// It acquires its claims, if necessary beyond the limits.
    Count,
    /// It refuses the launch.
    Deny,
    /// It lets the launch start without a slot, or without slots of the named repositories.
    Exempt,
}

impl Keyword for Action {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("limit", Action::Limit),
        ("count", Action::Count),
        ("deny", Action::Deny),
        ("exempt", Action::Exempt),
    ];
}

impl Action {
    /// Whether a rule with this action acquires slots.
    pub(crate) fn acquires(self) -> bool {
        matches!(self, Action::Limit | Action::Count)
    }
}

/// What happens to a launch whose command line has no number where `slots_from` expects one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum IfUnclear {
    /// It counts as if the argument were missing.
    Absent,
    Refuse,
}

impl Keyword for IfUnclear {
    const WORDS: &'static [(&'static str, Self)] =
        &[("absent", IfUnclear::Absent), ("refuse", IfUnclear::Refuse)];
}

#[derive(Debug)]
pub struct Rule {
    pub(super) name: String,
    pub(super) shown_name: String,
    pub(super) place: Place,
    /// The index of its layer.
    pub(crate) layer: usize,
    pub(crate) selectors: Selectors,
    /// Whether its selectors capture anything.
    pub(crate) captures: bool,
    /// Any of these excludes the rule, regardless of its own selectors.
    pub(crate) except: Vec<Selectors>,
    /// The family whose first matching rule counts; the number is unique among all layers.
    pub(crate) family: Option<usize>,
    pub(super) first_of: Option<String>,
    pub(super) order: i64,
    pub(super) action: Action,
    pub(super) message: Option<String>,
    /// The contact, if it names one.
    pub(super) contact: Option<String>,
    /// The contact of its layer.
    pub(super) default_contact: Option<Arc<str>>,
    pub(crate) acquire: Vec<Acquisition>,
    /// The repositories that an exempt rule exempts from, by index; `None` is from everything.
    pub(crate) from: Option<Vec<usize>>,
    pub(crate) enforce: Option<bool>,
    pub(crate) wait: Option<Wait>,
    pub(crate) hold: Option<Hold>,
    /// Whether a file of a repository it acquires depends on the groups of the rule that the caller is in.
    pub(crate) needs_groups: bool,
}

impl Rule {
    /// The name in the file, or its number if it has none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name to show: with the file's if two files use it.
    pub fn shown_name(&self) -> &str {
        &self.shown_name
    }

    /// Its name in a sentence.
    pub fn title(&self) -> String {
        rule_title(&self.shown_name)
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The rule as the reason for a claim.
    pub fn origin(&self) -> Origin<'_> {
        Origin {
            rule: &self.shown_name,
            place: Some(&self.place),
            message: self.message.as_deref(),
            contact: self.contact(),
        }
    }

    /// What it does.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The author's message for the users that it refuses.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The contact for its refusals: its own, else that of the defaults.
    pub fn contact(&self) -> Option<&str> {
        self.contact.as_deref().or(self.default_contact.as_deref())
    }

    /// How long its launches may wait, if it sets that.
    pub fn wait(&self) -> Option<Wait> {
        self.wait
    }

    /// What keeps its launches' slots, if it sets that.
    pub fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// Whether its launches are counted and never refused.
    pub(crate) fn is_always_admitted(&self) -> bool {
        self.action == Action::Count
    }

    /// The names of commands that are neither paths nor patterns: those that can have a shim.
    pub fn literal_commands(&self) -> impl Iterator<Item = &str> {
        self.selectors.commands.iter().flatten().filter_map(|command| command.literal_name())
    }

    /// The working directories that it names, also patterns.
    pub fn named_directories(&self) -> Vec<String> {
        self.selectors.shown(Selector::Directories)
    }
}

// The validated claims of a rule: repositories are indices, numbers are within their limits.

/// One entry of `acquire`.
#[derive(Debug)]
pub(crate) enum Acquisition {
    One(ClaimTerms),
    /// The first alternative that is completely available.
    AnyOf(Vec<Vec<ClaimTerms>>),
}

impl Acquisition {
    /// Its claims, the alternatives one after the other.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &ClaimTerms> {
        let (only, alternatives) = match self {
            Acquisition::One(terms) => (Some(terms), None),
            Acquisition::AnyOf(alternatives) => (None, Some(alternatives)),
        };
        only.into_iter().chain(alternatives.into_iter().flatten().flatten())
    }
}

/// The claim on one repository.
#[derive(Debug)]
pub(crate) struct ClaimTerms {
    /// Its index among the repositories of the policy.
    pub(crate) repository: usize,
    pub(crate) ceiling: Option<Share>,
    /// 0 if only the command line can request any.
    pub(crate) slots: Slots,
    pub(crate) slots_from: Option<SlotsFrom>,
    pub(crate) wait: Option<Wait>,
    /// Whether it makes no claim, and only sets a ceiling for claims of others.
    pub(crate) lowers: bool,
}

impl ClaimTerms {
    /// Whether this is certainly available whenever the other is: the same or fewer slots of the same
    /// repository, and no lower limit.
    pub(super) fn wants_no_more_than(&self, other: &ClaimTerms) -> bool {
        // A share and a number are not compared.
        let no_lower = match (other.ceiling, self.ceiling) {
            (_, None) => true,
            (Some(Share::Slots(less)), Some(Share::Slots(more)))
            | (Some(Share::Percent(less)), Some(Share::Percent(more))) => less <= more,
            _ => false,
        };
        self.repository == other.repository
            && self.slots <= other.slots
            && self.slots_from == other.slots_from
            && no_lower
    }
}

/// Where the command line has the number of slots.
#[derive(Debug, PartialEq)]
pub(crate) struct SlotsFrom {
    /// The arguments before the numbers, which add up; never empty.
    pub(crate) after: Vec<String>,
    /// No more than this, whatever the number is.
    pub(crate) most: Option<u32>,
    /// The slots for each number, in ascending order of the numbers; empty if the number is the number of
    /// slots.
    pub(crate) table: Vec<(u32, u32)>,
    pub(crate) unclear: IfUnclear,
}

impl SlotsFrom {
    /// The default for an unclear command line: with a table the launch is refused, because tables are for
    /// exact counts.
    pub(super) fn default_unclear(table: &[(u32, u32)]) -> IfUnclear {
        if table.is_empty() { IfUnclear::Absent } else { IfUnclear::Refuse }
    }

    /// The slots for a number; the greatest number of the table if the number is above it.
    pub(crate) fn slots_for(&self, number: u32) -> Result<u32, u32> {
        let Some((greatest, _)) = self.table.last().filter(|_| number > 0) else { return Ok(number) };
        let entry = self.table.iter().find(|(entry, _)| *entry >= number);
        entry.map(|(_, slots)| *slots).ok_or(*greatest)
    }
}
