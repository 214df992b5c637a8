//! Aliases, and lists of entries in which they are replaced by their entries.

use std::{
    borrow::{Borrow, Cow},
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    hash::{BuildHasherDefault, Hasher},
};

use super::{At, Findings, Value, Written, fault::Fault, pattern::is_compiled, warning::Warning};
use crate::judge::terms::Names;

/// How many aliases can be within each other.
const DEEPEST: usize = 16;

/// How many entries the lists of a file can have, each alias replaced by its entries. A few lines can stand
/// for any number of them, and the agent, which all users need, reads each delegated file.
const MOST: u32 = 10_000_000;
const MOST_DELEGATED: u32 = 100_000;

/// What a pattern to be compiled counts, in addition to one for each byte.
const COMPILED: u32 = 64;

/// The aliases of all files, with the entries that mean nothing, and the captures of entries.
pub(super) struct Aliases<'w> {
    pub(super) findings: &'w Findings,
    /// The databases for names, if the policy is checked and not only used.
    pub(super) checking: Option<&'w dyn Names>,
    /// The captures of the last selectors, until they are taken.
    pub(super) captures: RefCell<Vec<Written<String>>>,
    names: Definitions<'w>,
    lists: Vec<&'w WrittenList<'w>>,
    /// The first alias of each reported loop, with the layer that uses it.
    loops: RefCell<BTreeSet<(usize, usize)>>,
    /// How many more entries each file can have; none if it has had too many.
    left: Vec<Cell<Option<u32>>>,
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
            left: vec![Cell::new(Some(MOST)); layers.len()],
        };
        for (name, list) in written {
            aliases.names.add(*name);
            aliases.lists.push(list);
        }
        aliases
    }

    /// Restricts the definitions of delegated files to these files, and what each of them can have.
    pub(super) fn keep_private(&mut self, is_delegated: impl Fn(usize) -> bool) {
        for (_, left) in self.left.iter().enumerate().filter(|(file, _)| is_delegated(*file)) {
            left.set(Some(MOST_DELEGATED));
        }
        self.names.keep_private(is_delegated);
    }

    /// Notes that the aliases of a list are used, for code that has checked them elsewhere.
    pub(super) fn mark_used(&self, list: &[WrittenEntry<'_>]) {
        let mut lists = vec![list];
        while let Some(list) = lists.pop() {
            for entry in list {
                let name = entry.value.strip_prefix('@');
                if let Some(Meaning::One(alias)) = name.map(|name| self.names.meaning(name, entry.at.file))
                    && !alias.is_used()
                {
                    lists.push(&self.lists[alias.mark_used()].entries);
                }
            }
        }
    }

    /// Whether the file of this place can have this many more entries. It is a fault the first time that it
    /// cannot.
    pub(super) fn spend(&self, at: At, count: u32) -> bool {
        let left = &self.left[at.file];
        let before = left.get();
        left.set(before.and_then(|before| before.checked_sub(count)));
        if before.is_some() && left.get().is_none() {
            self.findings.fault(at, Fault::TooManyEntries);
        }
        left.get().is_some()
    }

    /// The same for an entry that counts this much, and by its length, before it is read.
    pub(super) fn spend_on(&self, entry: &WrittenEntry<'_>, at: At, count: u32) -> bool {
        self.spend(at, count.saturating_add(length_of(entry) / 32))
    }

    /// The same for what an entry counts in addition if it is compiled, or would be without its fault.
    pub(super) fn spend_on_pattern(&self, entry: &WrittenEntry<'_>, is_plain: bool) -> bool {
        let is_compiled = !is_plain && is_compiled(&entry.value);
        !is_compiled || self.spend(entry.at, COMPILED.saturating_add(length_of(entry)))
    }

    /// Does this with each entry of a list. One that is the name of an alias stands for all entries of that.
    /// Those of an alias of another layer have the place where it is used: they can be right in their own
    /// file, whose users must not be refused for what another file makes of them.
    pub(super) fn each<'e>(
        &self,
        written: impl IntoIterator<Item: Borrow<WrittenEntry<'e>>>,
        mut take: impl FnMut(&WrittenEntry<'_>),
    ) {
        for entry in written {
            let entry = entry.borrow();
            self.each_within(entry, entry.at, &mut Vec::new(), &mut take);
        }
    }

    fn each_within(
        &self,
        entry: &WrittenEntry<'_>,
        from: At,
        within: &mut Vec<usize>,
        take: &mut dyn FnMut(&WrittenEntry<'_>),
    ) {
        // Nothing more of a file is read that has had too many.
        if !self.spend_on(entry, from, u32::from(!within.is_empty())) {
            return;
        }
        let layer = self.names.layers[from.file];
        let is_near = within.is_empty() || self.names.layers[entry.at.file] == layer;
        let at = if is_near { entry.at } else { from };
        let Some(name) = entry.value.strip_prefix('@') else {
            if is_near {
                return take(entry);
            }
            return take(&Written { value: Cow::Borrowed(entry.value.as_ref()), at });
        };
        let owned = || name.to_owned();
        let fault = match self.names.meaning(name, entry.at.file) {
            Meaning::One(alias) if within.contains(&alias.index) => {
                let around = within.iter().skip_while(|index| **index != alias.index);
                // Loops that are entered elsewhere are the same loop.
                let first = around.copied().min().unwrap_or(alias.index);
                if !self.loops.borrow_mut().insert((layer, first)) {
                    return;
                }
                Fault::AliasLoop { name: owned() }
            }
            Meaning::One(_) if within.len() == DEEPEST => {
                Fault::AliasTooDeep { name: owned(), most: DEEPEST }
            }
            Meaning::One(alias) => {
                within.push(alias.mark_used());
                for entry in &self.lists[alias.index].entries {
                    self.each_within(entry, from, within, take);
                }
                within.pop();
                return;
            }
            Meaning::Several(first) => Fault::AmbiguousAlias { name: owned(), first: first.at },
            Meaning::Nothing => {
                let nearest = self.findings.nearest(at, name, self.names.seen_in(entry.at.file));
                Fault::UnknownAlias { name: owned(), nearest }
            }
        };
        self.findings.fault(at, fault);
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

fn length_of(entry: &WrittenEntry<'_>) -> u32 {
    u32::try_from(entry.value.len()).unwrap_or(u32::MAX)
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
    Nothing,
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
        Meaning::Nothing
    }

    /// The names that a file can use.
    pub(super) fn seen_in(&self, file: usize) -> impl Iterator<Item = &str> {
        let is_seen = move |known: &Definition| !known.is_private || known.at.file == file;
        self.names.iter().filter(move |(_, known)| known.iter().any(is_seen)).map(|(name, _)| *name)
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
    use std::path::Path;

    use crate::{
        policy::{LayerKind, LayerText, Policy},
        text::SourceText,
    };

    /// The number of a file, line and column in it, and the code.
    type Found = (usize, Option<(usize, usize)>, &'static str);

    /// The faults of these files, of which the first delegates the others.
    fn faults(main: &str, drop_ins: &[&str]) -> Vec<Found> {
        let names = ["main.toml", "20-cad.toml", "30-eda.toml"];
        let keys = "owner = \"ann\"\nusers = [\"*\"]\ncommands = [\"*\"]\n";
        let delegations = names[1..].iter().map(|name| format!("[delegate.\"{name}\"]\n{keys}"));
        let layer =
            |kind, name: &str, text: String| LayerText { kind, files: vec![SourceText::new(name, text)] };
        let mut layers = vec![layer(LayerKind::System, names[0], delegations.collect::<String>() + main)];
        let delegated = names[1..].iter().zip(drop_ins);
        layers.extend(delegated.map(|(name, text)| layer(LayerKind::Delegated, name, (*text).to_owned())));
        let Err(faults) = Policy::of_layers(layers, false) else { return Vec::new() };
        let number = |path: &Path| names.iter().position(|name| path == Path::new(name));
        faults.iter().map(|one| (number(&one.path).expect("a file"), one.line_column(), one.code)).collect()
    }

    fn deny(selector: &str) -> String {
        format!("[[rule]]\n{selector}\naction = \"deny\"\n")
    }

    /// Lists of ten entries, each in the next one: `@d` counts 11,110, and `@f` a hundred times as much.
    fn tens() -> String {
        let list =
            |(name, entry): (&str, &str)| format!("{name} = [{}]\n", format!("\"{entry}\", ").repeat(10));
        let lists = [("a", "x"), ("b", "@a"), ("c", "@b"), ("d", "@c"), ("e", "@d"), ("f", "@e")];
        format!("[alias]\n{}", lists.map(list).concat())
    }

    /// A few lines can stand for any number of entries, and a delegated file can have 100,000 of them.
    #[test]
    fn a_delegated_file_has_so_many_entries_at_most() {
        let many = |count: usize| tens() + &deny(&format!("users = [{}]", "\"@d\", ".repeat(count)));
        assert_eq!(faults("", &[&many(9)]), []);
        assert_eq!(faults("", &[&many(10)]), [(1, Some((9, 64)), "too-many-entries")]);
        // What the site itself writes may be more.
        assert_eq!(faults(&many(10), &[""]), []);
        assert_eq!(
            faults(&tens(), &["", &deny("users = [\"@f\"]")]),
            [(2, Some((2, 10)), "too-many-entries")]
        );
        for list in [
            deny("arguments = [\"@f\"]"),
            deny("environment = { X = [\"@f\"] }"),
            deny("except = [{ users = [\"@f\"] }]"),
            "[repository.a]\nlimit = 1\nper = \"user\"\nlimits = { \"@f\" = 2 }\n".to_owned(),
            "[repository.a]\nlimit = 1\nper = \"command\"\nlimits = [{ commands = [\"@f\"], limit = 2 }]\n"
                .to_owned(),
            "[repository.a]\nlimit = 2\nreserve = [{ users = [\"@f\"], slots = 1 }]\n".to_owned(),
            "[repository.a]\nnames = [\"n\"]\nout_of_order = { \"@f\" = [\"n\"] }\n".to_owned(),
            // Each of 10,000 hosts has eleven slots.
            format!(
                "[repository.a]\nnames = [{0}]\nout_of_order = {{ \"@d\" = [{0}] }}\n",
                (0..11).map(|n| format!("\"{n}\", ")).collect::<String>()
            ),
        ] {
            let codes: Vec<&str> = faults("", &[&(tens() + &list)]).iter().map(|fault| fault.2).collect();
            assert_eq!(codes, ["too-many-entries"], "{list}");
        }
    }

    /// Entries that are wrong, and names of aliases that do not exist, count before anything is kept of them.
    #[test]
    fn what_is_wrong_counts_too() {
        let file = |entries: &str, key: &str, uses: usize| {
            format!("[alias]\na = [{entries}]\n") + &deny(&format!("{key} = [{}]", "\"@a\", ".repeat(uses)))
        };
        let long = "n".repeat(200_000);
        // The first use is too much.
        for (key, entry) in [("arguments", format!("{{{long}}}x")), ("users", format!("[{long}"))] {
            let found = faults("", &[&file(&format!("\"{entry}\""), key, 3000)]);
            assert_eq!(found, [(1, Some((2, 6)), "too-many-entries")], "{key}");
        }
        // Each use counts 6251.
        for (entry, code) in [(format!("@{long}"), "unknown-alias"), (format!("!{long}"), "negation")] {
            let found = faults("", &[&file(&format!("\"{entry}\""), "users", 3000)]);
            assert_eq!(found, [(1, Some((2, 6)), code), (1, Some((4, 100)), "too-many-entries")]);
        }
        // Each of the fifty counts 71: too much are 28 times all of them, and nine.
        let fifty: String = (10..60).map(|n| format!("\"{{a{n}}}x\", ")).collect();
        let found = faults("", &[&file(&fifty, "arguments", 40)]);
        assert!(found.contains(&(1, Some((2, 86)), "too-many-entries")), "{found:?}");
        // Consecutive arguments are no list of aliases.
        let list = format!("arguments = [[{}]]", format!("\"{}\", ", "n".repeat(3200)).repeat(80));
        assert_eq!(faults("", &[&deny(&list)]), []);
        let list = format!("arguments = [[\"{{a}}x\", \"{{{}}}x\"]]", "n".repeat(100_000));
        let codes: Vec<&str> = faults("", &[&deny(&list)]).iter().map(|fault| fault.2).collect();
        assert_eq!(codes, ["partial-capture", "unused-capture", "too-many-entries"]);
    }

    /// Of a file that has had too many entries nothing more is read.
    #[test]
    fn nothing_is_read_after_too_many_entries() {
        let entries = format!("[alias]\na = [{}]\n", "\"x\", ".repeat(20_000));
        let uses = deny(&format!("users = [{}\"!x\"]", "\"@a\", ".repeat(20_000)));
        assert_eq!(faults("", &[&(entries + &uses)]), [(1, Some((4, 40)), "too-many-entries")]);
    }

    /// Captures are not compared with each other, and the path that one is in is read once.
    #[test]
    fn thousands_of_captures_are_read_in_a_time_that_follows_their_number() {
        let wrong: String = (0..20_000).map(|n| format!("\"{{a{n}}}x\",")).collect();
        let wrong = deny(&format!("arguments = [{wrong}]"));
        for (main, drop_in) in [(wrong.as_str(), ""), ("", wrong.as_str())] {
            let codes: Vec<&str> = faults(main, &[drop_in]).iter().map(|fault| fault.2).collect();
            assert_eq!(codes, ["partial-capture"; 100]);
        }
        let path = deny(&format!("directories = [\"{}\"]", "/{a}".repeat(60_000)));
        assert_eq!(faults(&path, &[""]), [(0, Some((10, 16)), "bad-pattern")]);
        assert_eq!(faults("", &[&path]), [(1, Some((2, 16)), "too-many-entries")]);
    }

    /// What must be compiled counts 64, and each byte of it one. Other entries count by their length.
    #[test]
    fn a_pattern_counts_as_many_entries() {
        let rule = |entry: &str, count: usize| {
            deny(&format!("hosts = [{}]", format!("\"{entry}\", ").repeat(count)))
        };
        assert_eq!(faults("", &[&rule("a?", 1515)]), []);
        assert_eq!(faults("", &[&rule("a?", 1516)]), [(1, Some((2, 10 + 1515 * 6)), "too-many-entries")]);
        assert_eq!(faults(&rule("a?", 1516), &[""]), []);
        for plain in ["ab", "a*"] {
            assert_eq!(faults("", &[&rule(plain, 20_000)]), [], "{plain}");
        }
        // 100 bytes count three.
        let long =
            |count: usize| format!("[alias]\na = [{}]\n", format!("\"{}\", ", "x".repeat(100)).repeat(count));
        let uses = |count: usize| long(100) + &deny(&format!("users = [{}]", "\"@a\", ".repeat(count)));
        assert_eq!(faults("", &[&uses(250)]), []);
        assert_eq!(faults("", &[&uses(251)]).first().map(|fault| fault.2), Some("too-many-entries"));
    }

    /// A claim counts for each value that its repository depends on.
    #[test]
    fn claims_on_a_repository_with_many_values_count_as_many_entries() {
        let by = (0..100).map(|n| format!("\"{{c{n}}}\", ")).collect::<String>();
        let repository = format!("[repository.a]\nlimit = 1\nshared_by = [{by}]\n");
        let claims = |count: usize| {
            let captures = format!("arguments = {{ all = [{}] }}", by.replace('{', "--{"));
            let any_of = "\"a\", ".repeat(count);
            format!("{repository}[[rule]]\n{captures}\nacquire = [{{ any_of = [{any_of}] }}]\n")
        };
        // The hundred captures count 7,090.
        assert_eq!(faults("", &[&claims(929)]), []);
        let codes: Vec<&str> = faults("", &[&claims(930)]).iter().map(|fault| fault.2).collect();
        assert_eq!(codes, ["too-many-entries"]);
        let one_more = repository.replace("[\"{c0}", "[\"{c}\", \"{c0}");
        assert_eq!(faults("", &[&one_more]), [(1, Some((3, 902)), "too-many-entries")]);
    }

    /// A chain of aliases ends after sixteen: no list is so deep that it is not read to its end.
    #[test]
    fn aliases_are_within_each_other_only_so_deep() {
        let chain = |length: usize| {
            let link = |n: usize| format!("a{n} = [\"@a{}\"]\n", n + 1);
            format!("[alias]\n{}a{length} = [\"x\"]\n", (0..length).map(link).collect::<String>())
        };
        let used = |length: usize| chain(length) + &deny("users = [\"@a0\"]");
        assert_eq!(faults("", &[&used(15)]), []);
        for length in [16, 5_000] {
            assert_eq!(faults("", &[&used(length)]), [(1, Some((17, 8)), "alias-too-deep")], "{length}");
        }
        // One that a delegation uses.
        let delegation = "[delegate.\"20-cad.toml\"]\nowner = 1\nusers = [\"@a0\"]\ncommands = [\"*\"]\n";
        let faults = Policy::of_text("/p.toml", chain(20_000) + delegation).expect_err("a chain");
        assert_eq!(faults.iter().map(|fault| fault.code).collect::<Vec<_>>(), ["alias-too-deep"]);
    }

    /// An alias of the site is right where the site uses it. What a delegated file makes of it is a fault of
    /// that file, and of each that does so.
    #[test]
    fn what_is_wrong_only_where_an_alias_is_used_is_a_fault_there() {
        let main = "[alias]\nstaff = [\"ann\"]\nloop = [\"@loop\"]\nlost = [\"@none\"]\n";
        let main = main.to_owned() + &deny("users = [\"@staff\"]");
        let wrong = deny("directories = [\"@staff\"]");
        let expected = |file: usize| (file, Some((2, 16)), "relative-directory-pattern");
        assert_eq!(faults(&main, &[&wrong]), [expected(1)]);
        assert_eq!(faults(&main, &[&wrong, &wrong]), [expected(1), expected(2)]);
        for (alias, code) in [("loop", "alias-loop"), ("lost", "unknown-alias")] {
            let uses = deny(&format!("users = [\"@{alias}\"]"));
            let expected = |file: usize| (file, Some((2, 10)), code);
            assert_eq!(faults(&main, &[&uses, &uses]), [expected(1), expected(2)], "{alias}");
        }
        assert_eq!(faults(&main, &[&deny("users = [\"@staff\"]")]), []);
    }

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
