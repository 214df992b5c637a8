//! One seat for several windows: which launches are a group and share their slots (`shared_by`), and how long
//! slots stay taken after the end (`linger`).

use std::time::Duration;

use crate::{
    judge::terms::{Group, Keeper, Keyword, Nested, SharedBy, show_duration},
    policy::{
        Key, Name, PartitionKey, Per, Placeholder, Section, Shape, Table, Value,
        fault::Fault,
        key::key,
        toml_text::{list, string},
    },
};

pub(in crate::policy) const KEYS: &[Key] = &[SHARED_BY, LINGER];

const LINGER: Key = key(
    "linger",
    Shape::Duration,
    "How long a slot stays taken after its program has ended.",
    "Licence servers that free a seat a minute late (LINGER).",
);

const SHARED_BY: Key = key(
    "shared_by",
    Shape::Per(words),
    "Launches with the same values share one slot: \"user\", \"host\", \"command\", \"directory\", or captured values.",
    "Licences that count a user on a host once, however many windows are open (DUP_GROUP).",
)
.filled();

/// A launch can be charged to several groups of users, so a group cannot define whose seat it is.
const NOT_SHARED: Per = Per::Group;

fn words() -> Vec<&'static str> {
    Per::words().into_iter().filter(|word| *word != NOT_SHARED.word()).collect()
}

/// Who shares the slots of one repository.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sharing {
    /// The values that launches of one group have in common.
    by: Option<Name>,
    /// How long an ended program keeps its slots.
    linger: Option<Duration>,
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
    /// Reads the keys of a repository.
    pub(in crate::policy) fn read(section: &Section<'_>, keeper: Keeper, nested: Nested) -> Self {
        let by = section.get("shared_by");
        let by = by.and_then(|value| PartitionKey::list(value, &is_known, "leave it out for a slot each"));
        let linger = section.duration("linger");
        if let Some(linger) = linger.filter(|_| keeper == Keeper::File) {
            let needs = "keeper = \"agent\" or \"site\"";
            section.fault(linger.at, Fault::NeedsKey { key: "linger", needs });
        }
        let linger = linger.map(|linger| linger.value);
        let Some(by) = by else { return Sharing { by: None, linger } };
        let contradicts = |other| section.fault(by.at, Fault::Contradiction { key: "shared_by", other });
        if nested == Nested::Take {
            contradicts("nested = \"take\"");
        }
        if keeper == Keeper::Site && !by.value.contains(&PartitionKey::Each(Per::Host)) {
            section.fault(by.at, Fault::SharedOverHosts);
        }
        Sharing { by: Some(Name::of_values(&by.value)), linger }
    }

    /// Whether several launches can have one slot.
    pub(in crate::policy) fn is_there(&self) -> bool {
        self.by.is_some()
    }

    /// The group of a launch; `value` returns its values.
    pub(crate) fn group<E>(
        &self,
        mut value: impl FnMut(&Placeholder) -> Result<Vec<u8>, E>,
    ) -> Result<Option<Group>, E> {
        if let Some(by) = &self.by {
            return by.expand(&mut value).map(|text| Some(Group::of(&text)));
        }
        if self.linger.is_none() {
            return Ok(None);
        }
        let heirs = Name::of_values(&[Per::User, Per::Host].map(PartitionKey::Each));
        heirs.expand(&mut value).map(|text| Some(Group::of_heirs(&text)))
    }

    /// How long an ended program keeps its slots.
    pub(crate) fn linger(&self) -> Option<Duration> {
        self.linger
    }

    /// Whether launches of different users are never of one group.
    pub(crate) fn is_by_user(&self) -> bool {
        let heirs = self.by.is_none() && self.linger.is_some();
        heirs || self.placeholders().any(|by| *by == Placeholder::Uid)
    }

    /// The same as a sample of use tells groups apart: by users and hosts.
    pub(crate) fn of_seats(&self) -> Option<SharedBy> {
        self.by.as_ref().map(|_| SharedBy {
            user: self.placeholders().any(|by| *by == Placeholder::Uid),
            host: self.placeholders().any(|by| *by == Placeholder::Host),
        })
    }

    /// What the groups depend on.
    pub(in crate::policy) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.by.iter().flat_map(Name::placeholders)
    }

    pub(in crate::policy) fn print(&self, text: &mut Table) {
        let Self { by, linger } = self;
        let by = by.as_ref().map(|by| list(by.keys().map(|by| string(&by.text()))));
        text.set_some("shared_by", by);
        text.set_some("linger", linger.map(|linger| string(&show_duration(linger))));
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{Policy, Repository};

    /// Looks at a repository of the agent with these keys.
    fn of<T>(keys: &str, look: impl FnOnce(&Repository) -> T) -> T {
        let text =
            format!("[repository.a]\nlimit = 1\nkeeper = \"agent\"\n{keys}\n[[rule]]\nacquire = [\"a\"]\n");
        let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
        look(&policy.repositories()[0])
    }

    const LINGER: &str = "linger = \"90s\"";

    /// A slot is of one user alone if launches have the user in common. A lingering slot is so too, unless
    /// `shared_by` says who shares it.
    #[test]
    fn a_slot_is_of_one_user_if_the_user_is_what_launches_have_in_common() {
        let is_by_user = |keys: &str| of(keys, |repository| repository.sharing.is_by_user());
        for by in ["\"user\"", "[\"user\", \"host\"]", "[\"host\", \"user\"]"] {
            assert!(is_by_user(&format!("shared_by = {by}")), "{by}");
            assert!(is_by_user(&format!("shared_by = {by}\n{LINGER}")), "{by}");
        }
        for by in ["\"host\"", "[\"host\", \"command\"]"] {
            assert!(!is_by_user(&format!("shared_by = {by}")), "{by}");
            assert!(!is_by_user(&format!("shared_by = {by}\n{LINGER}")), "{by}");
        }
        assert!(is_by_user(LINGER) && !is_by_user(""));
    }

    /// A file is of one user alone, or by group, if one of the values in its path is.
    #[test]
    fn a_file_is_of_a_user_or_a_group_by_any_value_of_its_path() {
        let by = |per: &str| {
            let groups = "[[rule]]\ngroups = [\"cad\"]\nacquire = [\"a\"]\n";
            let text = format!("[repository.a]\nlimit = 1\nper = [{per}]\n{groups}");
            let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
            let repository = &policy.repositories()[0];
            (repository.is_by_user(), repository.is_by_group())
        };
        assert_eq!(by("\"user\", \"host\""), (true, false));
        assert_eq!(by("\"host\", \"group\""), (false, true));
        assert_eq!(by("\"group\", \"user\""), (true, true));
        assert_eq!(by("\"host\", \"command\""), (false, false));
    }

    /// A sample of use tells groups apart by what of user and host they have in common.
    #[test]
    fn seats_are_of_users_and_hosts() {
        let seats = |keys: &str| {
            of(keys, |repository| repository.sharing.of_seats().map(|seats| (seats.user, seats.host)))
        };
        assert_eq!(seats("shared_by = \"user\""), Some((true, false)));
        assert_eq!(seats("shared_by = [\"user\", \"host\"]"), Some((true, true)));
        assert_eq!(seats("shared_by = [\"host\", \"command\"]"), Some((false, true)));
        assert_eq!((seats(""), seats(LINGER)), (None, None));
    }
}
