//! A key of the language: its name, the shape of its value, its meaning, and who needs it. The tables of all
//! keys are in [`keys`](super::keys).

use super::{Item, tape::mark};

#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) mark: u8,
    pub(super) shape: Shape,
    pub(super) about: &'static str,
    /// Who needs it, and when: the reason why the language has it.
    pub(super) needed_by: &'static str,
    /// Whether the table must have it.
    pub(super) is_required: bool,
    /// Whether its list, if it is one, must have an entry.
    pub(super) is_filled: bool,
}

impl Key {
    pub(super) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    pub(super) const fn filled(mut self) -> Self {
        self.is_filled = true;
        self
    }
}

/// Which keys of a table require or exclude each other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Together {
    /// The first has an effect only together with the second.
    Needs(&'static str, &'static str),
    /// Not both.
    Either(&'static str, &'static str),
    /// At least one of them.
    Some(&'static str, &'static str),
    /// Exactly one of them.
    One(&'static str, &'static str),
    /// This one is required; the table shares it with others in which it is optional.
    Must(&'static str),
}

/// The keys of one kind of table.
#[derive(Debug)]
pub(super) struct Keys {
    /// What the table is, for messages: "a rule".
    pub(super) what: &'static str,
    /// The keys, in groups, because some kinds of table share some.
    pub(super) groups: &'static [&'static [Key]],
    /// What an editor can check about keys that exclude or require each other.
    pub(super) together: &'static [Together],
}

impl Keys {
    /// The keys that the table must have, whatever else it has.
    pub(super) fn required(&self) -> impl Iterator<Item = &'static str> {
        let must = self.together.iter().filter_map(|together| match together {
            Together::Must(key) => Some(*key),
            _ => None,
        });
        self.iter().filter(|key| key.is_required).map(|key| key.name).chain(must)
    }

    /// Whether the table may have to have a key.
    pub(super) fn may_require(&self, key: &str) -> bool {
        let one = |together: &Together| matches!(together, Together::One(one, _) if *one == key);
        self.required().any(|required| required == key) || self.together.iter().any(one)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'static Key> {
        self.groups.iter().copied().flatten()
    }

    /// Whether the table can have a key.
    pub(super) fn has(&self, item: Item<'_>) -> bool {
        let mark = item.mark();
        // Called for every key at every launch, so loops are used: they are cheaper than iterator chains.
        for group in self.groups {
            for key in *group {
                if key.mark == mark && key.name == item.key() {
                    return true;
                }
            }
        }
        false
    }

    /// The right place of a key that is one table too high: `defaults.enforce`.
    pub(super) fn below(&self, name: &str) -> Option<String> {
        self.iter().find_map(|table| match table.shape {
            Shape::Table(keys) => {
                let is_there = keys.iter().any(|known| known.name == name);
                is_there.then(|| format!("{}.{name}", table.name))
            }
            _ => None,
        })
    }
}

/// The shape of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Text,
    Flag,
    Number {
        least: i64,
        most: i64,
    },
    /// A file mode: `"0666"`.
    Mode,
    /// A length of time: `"1h30m"`.
    Duration,
    /// A length of time, or `"forever"`.
    Wait,
    /// A number of slots, or `"2/cpu"`.
    Limit,
    /// A number of slots from this on, or `"all"`.
    Slots {
        least: i64,
    },
    OneOf(fn() -> Vec<&'static str>),
    /// One of a few words or a capture, or a list of them.
    Per(fn() -> Vec<&'static str>),
    /// A target of the log: one of a few words, or an absolute path.
    LogTarget,
    Texts,
    /// A string or a whole number.
    TextOrNumber,
    /// A list of strings and whole numbers.
    TextsOrNumbers,
    /// A list of strings, and of lists of strings.
    TextsOrLists,
    /// The same, or a table of such lists.
    Arguments(&'static Keys),
    TextByName,
    /// A list of strings, or names with such lists.
    TextsOrTextsByName,
    /// Names with lists of strings and numbers.
    TextsOrNumbersByName,
    /// Limits by name, or a list of limits.
    Limits(&'static Keys),
    /// A number of slots, or a share of the limit: `"60%"`.
    Share {
        least: i64,
    },
    /// A string, or a list of strings.
    TextOrTexts,
    /// Numbers with a number of slots for each.
    SlotsByNumber,
    /// Names with a number up to this, or a list of users.
    UsersByName {
        most: i64,
        keys: &'static Keys,
    },
    /// Names of variables with lists of strings, or with `false` or `true`.
    Environment,
    /// A list of claims: names of repositories, or tables.
    Claims(&'static Keys),
    /// A list of claims, and of lists of claims.
    Alternatives(&'static Keys),
    /// A list of expected claims: names of repositories, or tables.
    Expected(&'static Keys),
    Time,
    Table(&'static Keys),
    /// A list of tables.
    Tables(&'static Keys),
    TableByName(&'static Keys),
}

/// A key that may be missing.
pub(super) const fn key(
    name: &'static str,
    shape: Shape,
    about: &'static str,
    needed_by: &'static str,
) -> Key {
    Key { name, mark: mark(name), shape, about, needed_by, is_required: false, is_filled: false }
}

/// How the tables of a list are written.
pub(super) fn tables_of(key: &str) -> &'static str {
    match key {
        "rule" => "a list of tables, each under [[rule]]",
        "test" => "a list of tables, each under [[test]]",
        _ => "a list of tables",
    }
}

/// How a table is written whose keys are names.
pub(super) fn table_of(key: &str) -> &'static str {
    match key {
        "repository" => "a table for each, under [repository.NAME]",
        _ => "a table",
    }
}
