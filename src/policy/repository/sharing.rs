//! One seat for several windows: which launches are a group, and have their slots together (`shared_by`).

use crate::{
    judge::terms::{
        group::Group,
        keyword::{Keeper, Keyword, Nested},
    },
    policy::{
        fault::Fault,
        findings::Findings,
        key::{Key, Shape, key},
        partition_key::{PartitionKey, Per},
        place::Written,
        reader::{Section, Value},
        template::{Name, Placeholder},
        toml_text::{Table, list, string},
    },
};

pub(in crate::policy) const KEYS: &[Key] = &[key(
    "shared_by",
    Shape::Per(words),
    "Launches with the same values share one slot: \"user\", \"host\", \"command\", \"directory\", or captured values.",
    "Licences that count a user on a host once, however many windows are open (DUP_GROUP).",
)
.filled()];

/// A launch can be charged to several groups of users, so none of them says whose seat it is.
const NOT_SHARED: Per = Per::Group;

fn words() -> Vec<&'static str> {
    Per::words().into_iter().filter(|word| *word != NOT_SHARED.word()).collect()
}

/// The keys as written.
pub(in crate::policy) struct WrittenSharing<'a> {
    by: Option<Written<Vec<PartitionKey<'a>>>>,
}

/// Who shares the slots of one repository.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sharing {
    /// The values that launches of one group have in common.
    by: Option<Name>,
}

impl<'a> WrittenSharing<'a> {
    pub(in crate::policy) fn read(section: &Section<'a>) -> Self {
        let by = section.get("shared_by");
        Self { by: by.and_then(|value| PartitionKey::list(value, &is_known, "leave it out for a slot each")) }
    }

    pub(in crate::policy) fn validate(&self, keeper: Keeper, nested: Nested, findings: &Findings) -> Sharing {
        let Some(by) = &self.by else { return Sharing::default() };
        let contradicts = |other| findings.fault(by.at, Fault::Contradiction { key: "shared_by", other });
        if nested == Nested::Take {
            contradicts("nested = \"take\"");
        }
        if keeper == Keeper::Site {
            contradicts("keeper = \"site\"");
        }
        Sharing { by: Some(Name::of_values(&by.value)) }
    }
}

/// Whether launches can have this in common.
fn is_known(value: Value<'_>, by: PartitionKey<'_>) -> bool {
    let is_known = by != PartitionKey::Each(NOT_SHARED);
    if !is_known {
        value.unknown_word(NOT_SHARED.word(), words());
    }
    is_known
}

impl Sharing {
    /// Whether several launches can have one slot.
    pub(in crate::policy) fn is_there(&self) -> bool {
        self.by.is_some()
    }

    /// The group of a launch, of which `value` gives the values.
    pub(crate) fn group<E>(
        &self,
        mut value: impl FnMut(&Placeholder) -> Result<Vec<u8>, E>,
    ) -> Result<Option<Group>, E> {
        let text = self.by.as_ref().map(|by| by.expand(&mut value)).transpose()?;
        Ok(text.map(|text| Group::of(&text)))
    }

    /// What the groups depend on.
    pub(in crate::policy) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.by.iter().flat_map(Name::placeholders)
    }

    pub(in crate::policy) fn print(&self, text: &mut Table) {
        let Self { by } = self;
        let by = by.as_ref().map(|by| list(by.keys().map(|by| string(&by.text()))));
        text.set_some("shared_by", by);
    }
}
