//! Reads a text once, and makes nodes of the TOML of which it is certain. `toml` accepts the same, with the
//! same values at the same places. `None` means "not certain", never "wrong".

use std::collections::HashMap;

use toml::de::DeValue;

use super::{Form, Key, Kind, Nodes, Part, decimal, mark, offset};

/// Deeper values are left to `toml`, which has a limit too.
const DEEPEST: usize = 32;

/// Tables with more entries have an index while they are filled.
const FEW: usize = 24;

pub(super) fn walk(text: &str) -> Option<Nodes> {
    u32::try_from(text.len()).ok()?;
    let mut nodes = Nodes::default();
    // About the size that a long policy needs, so that nothing must be copied.
    nodes.list.reserve(text.len() / 12);
    nodes.add(0, Key::default(), Kind::Section, 0..0);
    let mut walk =
        Walk { text, at: 0, nodes, current: 0, marks: 0, is_listed: false, indices: HashMap::new() };
    loop {
        walk.empty_lines()?;
        match walk.peek() {
            None => return Some(walk.nodes),
            Some(b'[') => {
                walk.current = walk.header()?;
                // Entries from the headers of other tables are unknown.
                walk.marks = if walk.nodes.list[walk.current as usize].first == 0 { 0 } else { u64::MAX };
            }
            Some(_) => walk.entry(walk.current, 0)?,
        }
        walk.line_end()?;
    }
}

struct Walk<'t> {
    text: &'t str,
    at: usize,
    nodes: Nodes,
    /// The table under the last header, and the marks of what is in it.
    current: u32,
    marks: u64,
    /// Whether it is in a list of tables.
    is_listed: bool,
    /// For each large table, the entry under each key.
    indices: HashMap<u32, HashMap<String, u32>>,
}

// Tables and their entries.

impl Walk<'_> {
    /// Reads a header; the table that follows it.
    fn header(&mut self) -> Option<u32> {
        let start = self.at;
        self.at += 1;
        let is_list = self.pass(b'[');
        self.is_listed = is_list;
        let mut parent = 0;
        let key = loop {
            self.blanks();
            let key = self.key()?;
            self.blanks();
            if !self.pass(b'.') {
                break key;
            }
            parent = match self.find(parent, &key) {
                None => self.add(parent, key, Kind::Implied, start..start)?,
                Some(found) => match self.kind(found) {
                    Kind::Section | Kind::Implied => found,
                    Kind::Tables => {
                        self.is_listed = true;
                        self.nodes.list[found as usize].last
                    }
                    _ => return None,
                },
            };
        };
        self.expect(b']')?;
        if is_list {
            self.expect(b']')?;
        }
        let (span, found) = (start..self.at, self.find(parent, &key));
        if is_list {
            let list = match found {
                None => self.add(parent, key, Kind::Tables, span.clone())?,
                Some(list) => Some(list).filter(|list| self.kind(*list) == Kind::Tables)?,
            };
            return Some(self.nodes.add(list, Key::default(), Kind::Section, span));
        }
        let Some(found) = found else { return self.add(parent, key, Kind::Section, span) };
        (self.kind(found) == Kind::Implied && key.decoded.is_none()).then_some(())?;
        let node = &mut self.nodes.list[found as usize];
        (node.key.form != Form::Decoded).then_some(())?;
        (node.kind, node.key) = (Kind::Section, key.place);
        (node.start, node.end) = (offset(span.start), offset(span.end));
        Some(found)
    }

    /// Reads a key, dotted or not, with its value.
    fn entry(&mut self, table: u32, depth: usize) -> Option<()> {
        let mut parent = table;
        let key = loop {
            let key = self.key()?;
            if self.is_listed || depth > 0 {
                self.nodes.marks |= 1 << key.place.mark;
            }
            self.blanks();
            if !self.pass(b'.') {
                break key;
            }
            self.blanks();
            parent = match self.find(parent, &key) {
                None => self.add(parent, key, Kind::Dotted, 0..0)?,
                Some(found) => Some(found).filter(|found| self.kind(*found) == Kind::Dotted)?,
            };
        };
        self.expect(b'=')?;
        self.blanks();
        let bit = 1 << key.place.mark;
        let is_new = parent == self.current && self.marks & bit == 0;
        (is_new || self.find(parent, &key).is_none()).then_some(())?;
        let node = self.add(parent, key, Kind::List, 0..0)?;
        self.value(node, depth)
    }

    fn kind(&self, node: u32) -> Kind {
        self.nodes.list[node as usize].kind
    }

    fn find(&mut self, table: u32, key: &NewKey) -> Option<u32> {
        let text = self.text;
        let written = || text.get(key.place.start as usize..key.place.end as usize);
        let name = key.decoded.as_deref().or_else(written)?;
        if !self.indices.is_empty()
            && let Some(index) = self.indices.get(&table)
        {
            return index.get(name).copied();
        }
        match self.nodes.find(text, table, (name, key.place.mark), FEW) {
            Ok(found) => return Some(found),
            Err(false) => return None,
            Err(true) => {}
        }
        let mut index = HashMap::new();
        let mut child = self.nodes.list[table as usize].first;
        while child != 0 {
            index.insert(self.key_of(child), child);
            child = self.nodes.list[child as usize].next;
        }
        let found = index.get(name).copied();
        self.indices.insert(table, index);
        found
    }

    fn key_of(&self, node: u32) -> String {
        let key = &self.nodes.list[node as usize].key;
        match key.form {
            Form::Decoded => self.nodes.decoded(node, Part::Key).to_owned(),
            _ => self.text.get(key.start as usize..key.end as usize).unwrap_or_default().to_owned(),
        }
    }

    /// Adds an entry to a table that has none of that key. The place of a table that only a key names is that
    /// of the key.
    fn add(&mut self, table: u32, key: NewKey, kind: Kind, span: std::ops::Range<usize>) -> Option<u32> {
        if table == self.current {
            self.marks |= 1 << key.place.mark;
        }
        let quote = u32::from(key.place.form == Form::Quoted);
        let of_key = (key.place.start - quote) as usize..(key.place.end + quote) as usize;
        let is_named = matches!(kind, Kind::Implied | Kind::Dotted);
        let node = self.nodes.add(table, key.place, kind, if is_named { of_key } else { span });
        if let Some(decoded) = key.decoded {
            self.nodes.decoded.push((node, Part::Key, decoded));
        }
        if !self.indices.is_empty() && self.indices.contains_key(&table) {
            let name = self.key_of(node);
            self.indices.get_mut(&table)?.insert(name, node);
        }
        Some(node)
    }
}

/// A key that is not yet in a table.
struct NewKey {
    place: Key,
    decoded: Option<String>,
}

// Keys and values.

impl Walk<'_> {
    fn key(&mut self) -> Option<NewKey> {
        let start = self.at;
        if !matches!(self.peek(), Some(b'"' | b'\'')) {
            self.pass_while(|_, kind| kind & OF_KEYS != 0);
            let name = self.text.get(start..self.at).filter(|name| !name.is_empty())?;
            let place =
                Key { start: offset(start), end: offset(self.at), form: Form::Bare, mark: mark(name) };
            return Some(NewKey { place, decoded: None });
        }
        let decoded = match self.string()? {
            Quoted::Plain => None,
            Quoted::Escaped => Some(self.decode(start)?),
            Quoted::Long => return None,
        };
        let (start, end, form) = match decoded {
            Some(_) => (start, self.at, Form::Decoded),
            None => (start + 1, self.at - 1, Form::Quoted),
        };
        let name = decoded.as_deref().or_else(|| self.text.get(start..end))?;
        let place = Key { start: offset(start), end: offset(end), form, mark: mark(name) };
        Some(NewKey { place, decoded })
    }

    /// Reads a value into its node.
    fn value(&mut self, node: u32, depth: usize) -> Option<()> {
        let start = self.at;
        let kind = match self.peek()? {
            b'"' | b'\'' => match self.string()? {
                Quoted::Plain => Kind::Text,
                Quoted::Escaped | Quoted::Long => {
                    let decoded = self.decode(start)?;
                    self.nodes.decoded.push((node, Part::Value, decoded));
                    Kind::DecodedText
                }
            },
            b'[' => {
                self.list(node, depth + 1)?;
                Kind::List
            }
            b'{' => {
                self.table(node, depth + 1)?;
                Kind::Inline
            }
            _ => self.word(node)?,
        };
        let node = &mut self.nodes.list[node as usize];
        (node.kind, node.start, node.end) = (kind, offset(start), offset(self.at));
        Some(())
    }

    fn list(&mut self, node: u32, depth: usize) -> Option<()> {
        (depth < DEEPEST).then_some(())?;
        self.at += 1;
        loop {
            self.empty_lines()?;
            if self.pass(b']') {
                return Some(());
            }
            let element = self.nodes.add(node, Key::default(), Kind::List, 0..0);
            self.value(element, depth)?;
            self.empty_lines()?;
            if !self.pass(b',') {
                return self.expect(b']');
            }
        }
    }

    fn table(&mut self, node: u32, depth: usize) -> Option<()> {
        (depth < DEEPEST).then_some(())?;
        self.at += 1;
        loop {
            self.empty_lines()?;
            if self.pass(b'}') {
                return Some(());
            }
            self.entry(node, depth)?;
            self.empty_lines()?;
            if !self.pass(b',') {
                return self.expect(b'}');
            }
        }
    }

    /// A value without quotes or brackets.
    fn word(&mut self, node: u32) -> Option<Kind> {
        let start = self.at;
        self.pass_while(|byte, kind| kind & OF_KEYS != 0 || matches!(byte, b'+' | b'.' | b':'));
        let word = self.text.get(start..self.at)?;
        let digits = word.strip_prefix('-').unwrap_or(word);
        let is_plain = (1..=18).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        match word {
            "true" => return Some(Kind::True),
            "false" => return Some(Kind::False),
            _ if is_plain && (digits.len() == 1 || !digits.starts_with('0')) => return Some(Kind::Number),
            _ => {}
        }
        // A blank and a time may follow a date.
        let is_unclear = word.is_empty() || word.contains('-') && self.peek() == Some(b' ');
        (!is_unclear).then_some(())?;
        let value = DeValue::parse(word).ok().filter(|value| value.span() == (0..word.len()))?.into_inner();
        let (kind, decoded) = match &value {
            DeValue::Integer(number) => (Kind::DecodedNumber, decimal(number)),
            DeValue::Datetime(moment) => (Kind::Moment, moment.to_string()),
            DeValue::Float(_) => return Some(Kind::Float),
            _ => return None,
        };
        self.nodes.decoded.push((node, Part::Value, decoded));
        Some(kind)
    }

    /// The value of the string that began there.
    fn decode(&self, start: usize) -> Option<String> {
        let token = self.text.get(start..self.at)?;
        let value = DeValue::parse(token).ok().filter(|value| value.span() == (0..token.len()))?;
        value.get_ref().as_str().map(str::to_owned)
    }
}

/// How a string is written.
enum Quoted {
    Plain,
    Escaped,
    /// In three quotes.
    Long,
}

// Bytes.

impl Walk<'_> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn rest(&self) -> &[u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Skips a byte, if it is the next one.
    #[inline]
    fn pass(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        self.pass(byte).then_some(())
    }

    /// Skips bytes as long as they are of a kind.
    #[inline]
    fn pass_while(&mut self, mut is_of_it: impl FnMut(u8, u8) -> bool) {
        let rest = self.rest();
        let end = rest.iter().position(|byte| !is_of_it(*byte, KINDS[usize::from(*byte)]));
        self.at += end.unwrap_or(rest.len());
    }

    #[inline]
    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Skips the rest of a line that has only a comment.
    fn line_end(&mut self) -> Option<()> {
        self.blanks();
        if self.pass(b'#') {
            self.pass_while(|_, kind| kind & CONTROL == 0);
        }
        match self.peek() {
            None => Some(()),
            Some(b'\r') => {
                self.at += 1;
                self.expect(b'\n')
            }
            _ => self.expect(b'\n'),
        }
    }

    /// Skips lines that have only comments, up to the end of the text.
    #[inline]
    fn empty_lines(&mut self) -> Option<()> {
        loop {
            // Mostly there is nothing to skip.
            if self.peek().is_some_and(|byte| byte > b'#') {
                return Some(());
            }
            self.blanks();
            match self.peek() {
                Some(b'\n' | b'\r' | b'#') => self.line_end()?,
                _ => return Some(()),
            }
        }
    }

    /// Skips a string of any kind.
    fn string(&mut self) -> Option<Quoted> {
        let quote = self.peek()?;
        if self.rest().starts_with(&[quote; 3]) {
            self.long_string(quote)?;
            return Some(Quoted::Long);
        }
        self.at += 1;
        let ends = CONTROL | if quote == b'"' { BACKSLASH | QUOTE } else { APOSTROPHE };
        self.pass_while(|_, kind| kind & ends == 0);
        if self.pass(quote) {
            return Some(Quoted::Plain);
        }
        while !self.pass(quote) {
            match self.peek()? {
                b'\\' if quote == b'"' => self.at += 2,
                byte if KINDS[usize::from(byte)] & CONTROL != 0 => return None,
                _ => self.at += 1,
            }
        }
        Some(Quoted::Escaped)
    }

    fn long_string(&mut self, quote: u8) -> Option<()> {
        let three = [quote; 3];
        self.at += 3;
        while !self.rest().starts_with(&three) {
            match self.peek()? {
                b'\\' if quote == b'"' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 3;
        // Up to two quotes may be at the end of the quoted text.
        let _ = self.pass(quote) && self.pass(quote);
        Some(())
    }
}

// The kinds of bytes.

/// In bare keys.
const OF_KEYS: u8 = 1;
/// Not allowed in strings of one line and in comments.
const CONTROL: u8 = 2;
const BACKSLASH: u8 = 4;
const QUOTE: u8 = 8;
const APOSTROPHE: u8 = 16;

static KINDS: [u8; 256] = kinds();

const fn kinds() -> [u8; 256] {
    let mut kinds = [0; 256];
    let mut byte = 0u8;
    loop {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            kinds[byte as usize] |= OF_KEYS;
        }
        if byte.is_ascii_control() && byte != b'\t' {
            kinds[byte as usize] |= CONTROL;
        }
        match byte {
            b'\\' => kinds[byte as usize] |= BACKSLASH,
            b'"' => kinds[byte as usize] |= QUOTE,
            b'\'' => kinds[byte as usize] |= APOSTROPHE,
            _ => {}
        }
        if byte == u8::MAX {
            return kinds;
        }
        byte += 1;
    }
}
