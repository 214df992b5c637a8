//! What a log keeps so that its launches can be judged again: all that a decision used, and nothing else.
//! Only arguments and variables that a rule names are logged; the others are null.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A launch, as judgement sees it.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Circumstances {
    /// The ids of the groups of the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The same without links, if that is another path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canonical: Option<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The arguments that a rule names; the others are counted, and not logged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<Option<String>>,
    /// The variables that a rule asks about, if they are set; each with its value, where a rule names
    /// that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, Option<String>>,
    /// How long it was to wait at most, if the command line said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
}

/// A repository at the moment of a decision.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct TableSeen {
    /// Its name.
    pub repository: String,
    /// The member of the table, if each member has one: `uid 1000`, `gid 100`, or a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// How many slots were held, with those of this launch; none if that was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// Which slots these were, a moment after the decision: `1-3,5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// How many of the others were kept for others.
    #[serde(default, skip_serializing_if = "is_none")]
    pub kept: u64,
    /// How many of its slots this launch has borrowed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub lent: u64,
    /// How many this launch could have been one of.
    pub limit: u64,
    /// For a launch that another table refused: how many slots it would have had here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<u64>,
    /// Whether an ancestor's slots were enough.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
}

impl TableSeen {
    /// How many of the slots up to the limit were held at most, as far as that says.
    pub fn most_held(&self) -> Option<u64> {
        self.used.or_else(|| self.limit.checked_sub(self.room?)).filter(|_| !self.shared)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}
