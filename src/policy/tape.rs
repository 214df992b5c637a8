//! A TOML text as a list of nodes that point into it: what the reader reads. A launch reads every byte of its
//! policy, so nothing is copied, and values need no allocations. The walk reads the TOML of which it is
//! certain. Everything else is left to `toml`, whose tree becomes the same nodes. So one grammar decides all
//! doubtful cases and all faults.

mod walk;

use std::ops::Range;

use toml::de::{DeInteger, DeTable, DeValue};

/// The nodes of a text. The first is the table of the whole file.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    list: Vec<Node>,
    /// Texts that differ from the file, such as strings with escapes, sorted by node: of a key, or of a
    /// value.
    decoded: Vec<(u32, Part, String)>,
    /// The marks of the keys in lists of tables, such as rules.
    marks: u64,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Part {
    Key,
    Value,
}

/// A value, and its key where it is in a table. Indices of nodes: 0 means none, because node 0 is the file
/// itself.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    key: Key,
    start: u32,
    end: u32,
    /// The next one in the same table or list.
    next: u32,
    /// What is in it.
    first: u32,
    last: u32,
}

/// Where the text of a key is: without its quotes, or, if it has an escape, with them.
#[derive(Clone, Copy, Debug, Default)]
struct Key {
    start: u32,
    end: u32,
    form: Form,
    mark: u8,
}

/// A number below 64 that distinguishes most names, so that few texts must be compared.
pub(super) const fn mark(name: &str) -> u8 {
    let name = name.as_bytes();
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return 0 };
    let length = name.len().to_le_bytes()[0];
    length.wrapping_mul(7).wrapping_add(first.wrapping_mul(3)).wrapping_add(last.wrapping_mul(23)) & 63
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Form {
    /// An element of a list has no key.
    #[default]
    None,
    Bare,
    Quoted,
    /// In quotes, with an escape.
    Decoded,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// In quotes of one character, without escapes.
    Text,
    DecodedText,
    /// In digits.
    Number,
    DecodedNumber,
    Float,
    True,
    False,
    Moment,
    List,
    /// A list of tables, each under a header in two brackets.
    Tables,
    /// A table in braces.
    Inline,
    /// A table under a header.
    Section,
    /// A table that the header of another one names.
    Implied,
    /// A table that a dotted key names.
    Dotted,
}

impl Kind {
    fn is_table(self) -> bool {
        matches!(self, Kind::Inline | Kind::Section | Kind::Implied | Kind::Dotted)
    }
}

impl Nodes {
    /// The nodes of a text, where the walk is certain of it.
    pub(super) fn walk(text: &str) -> Option<Self> {
        walk::walk(text)
    }

    /// The nodes of a tree.
    pub(super) fn of_tree(tree: &DeTable<'_>, text: &str) -> Self {
        let mut nodes = Nodes { marks: u64::MAX, ..Nodes::default() };
        nodes.add(0, Key::default(), Kind::Section, 0..0);
        nodes.add_table(0, tree, text);
        nodes
    }

    fn add_table(&mut self, parent: u32, table: &DeTable<'_>, text: &str) {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let (span, name) = (key.span(), key.get_ref().as_ref());
            let inner = span.start + 1..span.end.saturating_sub(1);
            let (form, place) = if text.get(span.clone()) == Some(name) {
                (Form::Bare, span)
            } else if text.get(inner.clone()) == Some(name) {
                (Form::Quoted, inner)
            } else {
                (Form::Decoded, span)
            };
            let key = Key { start: offset(place.start), end: offset(place.end), form, mark: mark(name) };
            let node = self.add(parent, key, Kind::List, value.span());
            if form == Form::Decoded {
                self.decoded.push((node, Part::Key, name.to_owned()));
            }
            self.fill(node, value.get_ref(), text);
        }
    }

    /// Sets the value of a node.
    fn fill(&mut self, node: u32, value: &DeValue<'_>, text: &str) {
        let place = self.span(node);
        let (kind, decoded) = match value {
            DeValue::String(string) => match text.get(place.start + 1..place.end.saturating_sub(1)) {
                Some(inner) if inner == string.as_ref() => (Kind::Text, None),
                _ => (Kind::DecodedText, Some(string.as_ref().to_owned())),
            },
            DeValue::Integer(number) => match text.get(place) {
                Some(digits) if digits == number.as_str() && number.radix() == 10 => (Kind::Number, None),
                _ => (Kind::DecodedNumber, Some(decimal(number))),
            },
            DeValue::Float(_) => (Kind::Float, None),
            DeValue::Boolean(true) => (Kind::True, None),
            DeValue::Boolean(false) => (Kind::False, None),
            DeValue::Datetime(moment) => (Kind::Moment, Some(moment.to_string())),
            DeValue::Array(_) => (Kind::List, None),
            DeValue::Table(_) => (Kind::Inline, None),
        };
        self.list[node as usize].kind = kind;
        self.decoded.extend(decoded.map(|decoded| (node, Part::Value, decoded)));
        match value {
            DeValue::Array(list) => {
                for element in list {
                    let child = self.add(node, Key::default(), Kind::List, element.span());
                    self.fill(child, element.get_ref(), text);
                }
            }
            DeValue::Table(table) => self.add_table(node, table, text),
            _ => {}
        }
    }

    /// Adds a node after the others of its parent.
    fn add(&mut self, parent: u32, key: Key, kind: Kind, span: Range<usize>) -> u32 {
        let (start, end) = (offset(span.start), offset(span.end));
        let index = offset(self.list.len());
        self.list.push(Node { kind, key, start, end, next: 0, first: 0, last: 0 });
        if index > 0 {
            let last = std::mem::replace(&mut self.list[parent as usize].last, index);
            match last {
                0 => self.list[parent as usize].first = index,
                _ => self.list[last as usize].next = index,
            }
        }
        index
    }

    fn span(&self, node: u32) -> Range<usize> {
        let node = &self.list[node as usize];
        node.start as usize..node.end as usize
    }

    fn decoded(&self, node: u32, part: Part) -> &str {
        let found = self.decoded.binary_search_by_key(&(node, part), |(node, part, _)| (*node, *part));
        found.map_or("", |index| self.decoded[index].2.as_str())
    }

    /// The entry under a key, with its mark, among the first ones of a table; `Err` says whether there are
    /// more.
    fn find(&self, text: &str, table: u32, name: (&str, u8), many: usize) -> Result<u32, bool> {
        let mut node = self.list[table as usize].first;
        for _ in 0..many {
            if node == 0 {
                return Err(false);
            }
            let entry = &self.list[node as usize];
            if entry.key.mark == name.1 && self.has_key(text, node, name.0) {
                return Ok(node);
            }
            node = entry.next;
        }
        Err(node != 0)
    }

    /// Whether a node has this key.
    fn has_key(&self, text: &str, node: u32, name: &str) -> bool {
        let key = &self.list[node as usize].key;
        match key.form {
            Form::Decoded => self.decoded(node, Part::Key) == name,
            _ => {
                (key.end - key.start) as usize == name.len()
                    && text.as_bytes().get(key.start as usize..key.end as usize) == Some(name.as_bytes())
            }
        }
    }
}

/// A number as digits; nothing if it is too long to be one.
fn decimal(number: &DeInteger<'_>) -> String {
    let read = i64::from_str_radix(number.as_str(), number.radix());
    read.map_or_else(|_| String::new(), |number| number.to_string())
}

/// No file of a policy is that long.
fn offset(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// A text with its nodes.
#[derive(Debug)]
pub(super) struct Tape<'t> {
    pub(super) text: &'t str,
    pub(super) nodes: &'t Nodes,
}

/// A value of the text.
#[derive(Clone, Copy)]
pub(super) struct Item<'t> {
    tape: &'t Tape<'t>,
    node: u32,
}

impl<'t> Tape<'t> {
    /// The table of the whole file.
    pub(super) fn root(&'t self) -> Item<'t> {
        Item { tape: self, node: 0 }
    }
}

impl<'t> Item<'t> {
    fn node(self) -> &'t Node {
        &self.tape.nodes.list[self.node as usize]
    }

    pub(super) fn kind(self) -> Kind {
        self.node().kind
    }

    pub(super) fn span(self) -> Range<usize> {
        self.tape.nodes.span(self.node)
    }

    pub(super) fn is_table(self) -> bool {
        self.kind().is_table()
    }

    pub(super) fn is_list(self) -> bool {
        matches!(self.kind(), Kind::List | Kind::Tables)
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self.kind(), Kind::Number | Kind::DecodedNumber)
    }

    /// What is in a table or a list.
    pub(super) fn items(self) -> impl Iterator<Item = Item<'t>> {
        let Item { tape, node } = self;
        let item = move |node: u32| (node != 0).then_some(Item { tape, node });
        let first = tape.nodes.list[node as usize].first;
        std::iter::successors(item(first), move |one| item(one.node().next))
    }

    /// What is under a key of a table.
    pub(super) fn get(self, name: &str) -> Option<Item<'t>> {
        let Item { tape, node } = self;
        let node = tape.nodes.find(tape.text, node, (name, mark(name)), usize::MAX).ok()?;
        Some(Item { tape, node })
    }

    /// Whether a table in a list of this file, or a table in that one, may have a key.
    pub(super) fn may_list(self, name: &str) -> bool {
        self.tape.nodes.marks & (1 << mark(name)) != 0
    }

    /// The mark of its key.
    pub(super) fn mark(self) -> u8 {
        self.node().key.mark
    }

    /// The key of an entry of a table.
    pub(super) fn key(self) -> &'t str {
        let key = &self.node().key;
        match key.form {
            Form::None => "",
            Form::Bare | Form::Quoted => {
                self.tape.text.get(key.start as usize..key.end as usize).unwrap_or_default()
            }
            Form::Decoded => self.tape.nodes.decoded(self.node, Part::Key),
        }
    }

    /// Where its key is, with its quotes.
    pub(super) fn key_span(self) -> Range<usize> {
        let key = &self.node().key;
        let quote = usize::from(key.form == Form::Quoted);
        key.start as usize - quote..key.end as usize + quote
    }

    /// The string, if it is one.
    pub(super) fn text(self) -> Option<&'t str> {
        let span = self.span();
        match self.kind() {
            Kind::Text => self.tape.text.get(span.start + 1..span.end - 1),
            Kind::DecodedText => Some(self.tape.nodes.decoded(self.node, Part::Value)),
            _ => None,
        }
    }

    /// The digits of a number, or a moment as text.
    pub(super) fn digits(self) -> &'t str {
        match self.kind() {
            Kind::Number => self.tape.text.get(self.span()).unwrap_or_default(),
            _ => self.tape.nodes.decoded(self.node, Part::Value),
        }
    }
}

#[cfg(test)]
mod tests;
