//! Aliases, and lists of entries in which they are replaced by their entries.

use std::{
    borrow::{Borrow, Cow},
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    hash::{BuildHasherDefault, Hasher},
};

use super::{At, Findings, Value, Written, fault::Fault, spelling::nearest, warning::Warning};
use crate::judge::terms::Names;

/// The aliases of all files, with the entries that mean nothing, and the captures of entries.
pub(super) struct Aliases<'w> {
    pub(super) findings: &'w Findings,
    /// The databases for names, if the policy is checked and not only used.
    pub(super) checking: Option<&'w dyn Names>,
    /// The captures of the last selectors, until they are taken.
    pub(super) captures: RefCell<Vec<Written<String>>>,
    names: Definitions<'w>,
    lists: Vec<&'w WrittenList<'w>>,
    /// The first alias of each reported loop.
    loops: RefCell<BTreeSet<usize>>,
}

impl<'w> Aliases<'w> {
    pub(super) fn new(
        written: impl Iterator<Item = &'w (Written<&'w str>, WrittenList<'w>)>,
        layers: &'w [usize],
        findings: &'w Findings,
        checking: Option<&'w dyn Names>,
    ) -> Self {
        let mut aliases = Aliases {
            findings,
            checking,
            captures: RefCell::default(),
            names: Definitions::new(layers),
            lists: Vec::new(),
            loops: RefCell::default(),
        };
        for (name, list) in written {
            aliases.names.add(*name);
            aliases.lists.push(list);
        }
        aliases
    }

    /// Restricts these definitions to their own files.
    pub(super) fn keep_private(&mut self, is_private: impl Fn(usize) -> bool) {
        self.names.keep_private(is_private);
    }

    /// Notes that the aliases of a list are used, for code that has checked them elsewhere.
    pub(super) fn mark_used(&self, list: &[WrittenEntry<'_>]) {
        for entry in list {
            let name = entry.value.strip_prefix('@');
            if let Some(Meaning::One(alias)) = name.map(|name| self.names.meaning(name, entry.at.file))
                && !alias.is_used()
            {
                self.mark_used(&self.lists[alias.mark_used()].entries);
            }
        }
    }

    /// Does this with each entry of a list. One that is the name of an alias stands for all entries of that.
    pub(super) fn each<'e>(
        &self,
        written: impl IntoIterator<Item: Borrow<WrittenEntry<'e>>>,
        mut take: impl FnMut(&WrittenEntry<'_>),
    ) {
        for entry in written {
            self.each_within(entry.borrow(), &mut Vec::new(), &mut take);
        }
    }

    fn each_within(
        &self,
        entry: &WrittenEntry<'_>,
        within: &mut Vec<usize>,
        take: &mut dyn FnMut(&WrittenEntry<'_>),
    ) {
        let Some(name) = entry.value.strip_prefix('@') else { return take(entry) };
        let owned = || name.to_owned();
        let fault = match self.names.meaning(name, entry.at.file) {
            Meaning::One(alias) if within.contains(&alias.index) => {
                let around = within.iter().skip_while(|index| **index != alias.index);
                // Loops that are entered elsewhere are the same loop.
                if !self.loops.borrow_mut().insert(around.copied().min().unwrap_or(alias.index)) {
                    return;
                }
                Fault::AliasLoop { name: owned() }
            }
            Meaning::One(alias) => {
                within.push(alias.mark_used());
                for entry in &self.lists[alias.index].entries {
                    self.each_within(entry, within, take);
                }
                within.pop();
                return;
            }
            Meaning::Several(first) => Fault::AmbiguousAlias { name: owned(), first: first.at },
            Meaning::Nothing(nearest) => Fault::UnknownAlias { name: owned(), nearest },
        };
        self.findings.fault(entry.at, fault);
    }

    pub(super) fn unused(&self) -> impl Iterator<Item = (At, &'w str)> {
        self.names.unused()
    }

    /// Warns, if the policy is checked.
    pub(super) fn warn(&self, at: At, warning: impl FnOnce() -> Warning) {
        if self.checking.is_some() {
            self.findings.warning(at, warning());
        }
    }
}

// Lists of entries as written, in which aliases are still names.

/// What to write instead of a list that nothing matches.
pub(super) const MATCH_ALL: &str = "leave it out to match everything";

/// An entry of a list; a number is stored as its digits.
pub(super) type WrittenEntry<'a> = Written<Cow<'a, str>>;

/// A list of entries that is not empty.
pub(super) struct WrittenList<'a> {
    pub(super) entries: Vec<WrittenEntry<'a>>,
}

impl<'a> WrittenList<'a> {
    /// Reads a list of strings, which may include numbers.
    pub(super) fn read(value: Value<'a>) -> Option<Self> {
        let entries: Vec<WrittenEntry<'a>> = entries_in(value)?.collect();
        // A list without a readable entry already has a fault.
        (!entries.is_empty()).then_some(WrittenList { entries })
    }

    /// Its entries as they were written, for people.
    pub(super) fn shown(&self) -> String {
        self.entries.iter().map(|entry| entry.value.as_ref()).collect::<Vec<_>>().join(", ")
    }
}

/// The entries of a list that must not be empty, one after the other.
pub(super) fn entries_in(value: Value<'_>) -> Option<impl Iterator<Item = WrittenEntry<'_>> + use<'_>> {
    values_in(value, "a list of strings").map(|values| values.filter_map(entry))
}

/// The values of such a list.
pub(super) fn values_in<'a>(
    value: Value<'a>,
    expected: &'static str,
) -> Option<impl Iterator<Item = Value<'a>> + use<'a>> {
    let values = value.elements(expected)?;
    if value.is_empty_list() {
        value.fault(Fault::EmptyList { key: value.key.to_owned(), instead: MATCH_ALL });
        return None;
    }
    Some(values)
}

pub(super) fn entry(value: Value<'_>) -> Option<WrittenEntry<'_>> {
    if value.is_number() {
        let number = value.number(0, i64::from(u32::MAX) - 1)?;
        return Some(Written { value: Cow::Owned(number.value.to_string()), at: number.at });
    }
    value.text().map(|text| Written { value: Cow::Borrowed(text.value), at: text.at })
}

// The meaning of a name at a place: the definition in its own file, else in one other file of its layer, else
// in an earlier layer.

/// Where each name of one kind is defined: the repositories of all files, or their aliases.
pub(super) struct Definitions<'w> {
    /// The layer of each file.
    layers: &'w [usize],
    names: HashMap<&'w str, Vec<Definition>, QuickHash>,
    count: usize,
}

pub(super) struct Definition {
    /// Its index over all files.
    pub(super) index: usize,
    pub(super) at: At,
    used: Cell<bool>,
    /// Whether it is only visible in its own file.
    is_private: bool,
}

pub(super) enum Meaning<'d> {
    /// The most similar existing name.
    Nothing(Option<String>),
    One(&'d Definition),
    /// The first of several.
    Several(&'d Definition),
}

impl<'w> Definitions<'w> {
    pub(super) fn new(layers: &'w [usize]) -> Self {
        Definitions { layers, names: HashMap::default(), count: 0 }
    }

    pub(super) fn add(&mut self, name: Written<&'w str>) {
        let definition =
            Definition { index: self.count, at: name.at, used: Cell::new(false), is_private: false };
        self.names.entry(name.value).or_default().push(definition);
        self.count += 1;
    }

    /// Restricts these definitions to their own files.
    pub(super) fn keep_private(&mut self, is_private: impl Fn(usize) -> bool) {
        for definition in self.names.values_mut().flatten() {
            definition.is_private = is_private(definition.at.file);
        }
    }

    /// The meaning of a name in a file.
    pub(super) fn meaning(&self, name: &str, file: usize) -> Meaning<'_> {
        let definitions = self.names.get(name).map_or(&[][..], Vec::as_slice);
        if let Some(own) = definitions.iter().find(|definition| definition.at.file == file) {
            return Meaning::One(own);
        }
        for layer in (0..=self.layers[file]).rev() {
            let is_here = |known: &&Definition| !known.is_private && self.layers[known.at.file] == layer;
            let mut here = definitions.iter().filter(is_here);
            match (here.next(), here.next()) {
                (None, _) => {}
                (Some(only), None) => return Meaning::One(only),
                (Some(first), Some(_)) => return Meaning::Several(first),
            }
        }
        let is_seen = |known: &Definition| !known.is_private || known.at.file == file;
        let seen = self.names.iter().filter(|(_, known)| known.iter().any(is_seen));
        Meaning::Nothing(nearest(name, seen.map(|(name, _)| *name)))
    }

    /// Unused aliases.
    pub(super) fn unused(&self) -> impl Iterator<Item = (At, &'w str)> {
        let all = self.names.iter().flat_map(|(name, all)| all.iter().map(move |one| (one, *name)));
        all.filter(|(definition, _)| !definition.used.get()).map(|(definition, name)| (definition.at, name))
    }
}

impl Definition {
    pub(super) fn is_used(&self) -> bool {
        self.used.get()
    }

    pub(super) fn mark_used(&self) -> usize {
        self.used.set(true);
        self.index
    }
}

// A very cheap hash of names: a policy in which many names collide is slow only for its author.

pub(super) type QuickHash = BuildHasherDefault<NameHasher>;

/// Multiplies eight bytes at a time. It hashes a single text, and needs no mark of its end.
#[derive(Default)]
pub(super) struct NameHasher(u64);

impl NameHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        self.add(rest.iter().fold(bytes.len() as u64, |word, byte| word << 8 | u64::from(*byte)));
    }

    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        policy::{LayerKind, LayerText, Policy},
        text::SourceText,
    };

    /// A name that is near is suggested only where it would be known: the names of a department are its own.
    #[test]
    fn only_a_name_that_would_be_known_is_suggested() {
        let delegate = |file: &str| {
            let keys = "owner = \"ann\"\nusers = [\"*\"]\ncommands = [\"*\"]\n";
            format!("[delegate.\"{file}\"]\n{keys}")
        };
        let delegates = ["20-cad.toml", "30-sim.toml"].map(delegate).concat();
        let layer = |kind, path: &str, before: &str, own: &str, claimed: &str| {
            let repository = format!("[repository.{own}]\nlimit = 5\n");
            let text = format!("{before}{repository}[[rule]]\nacquire = [\"{claimed}\"]\n");
            LayerText { kind, files: vec![SourceText::new(path, text)] }
        };
        let said = |[main, cad, sim]: [&str; 3]| {
            let layers = vec![
                layer(LayerKind::System, "/p.toml", &delegates, "main", main),
                layer(LayerKind::Delegated, "/p.d/20-cad.toml", "", "pool", cad),
                layer(LayerKind::Delegated, "/p.d/30-sim.toml", "", "other", sim),
            ];
            Policy::of_layers(layers, false).expect_err("an unknown repository").to_string()
        };
        let suggests = |text: &str| text.contains("did you mean \"pool\"?");
        assert!(suggests(&said(["main", "pol", "other"])));
        assert!(!suggests(&said(["pol", "pool", "other"])) && !suggests(&said(["main", "pool", "pol"])));
    }
}
