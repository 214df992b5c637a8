//! Reads values from the spanned tree of a TOML file. A getter returns `None` for an absent value and for a
//! wrong one, which it has then reported, so that the walk continues to the next fault.

use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::{
    contact::is_contact,
    fault::Fault,
    findings::Findings,
    key::{Keys, table_of, tables_of},
    keyword::Keyword,
    limit::{HIGHEST_LIMIT, Share},
    place::{At, Written},
    span_of_time::{Wait, parse_duration},
    spelling::nearest,
};

/// A table whose keys are known.
pub(super) struct Section<'a> {
    table: &'a DeTable<'a>,
    pub(super) at: At,
    pub(super) keys: &'static Keys,
    findings: &'a Findings,
}

#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    pub(super) key: &'a str,
    tree: &'a DeValue<'a>,
    pub(super) at: At,
    findings: &'a Findings,
}

impl<'a> Section<'a> {
    /// Looks at a table, and reports the keys that it cannot have.
    pub(super) fn new(table: &'a DeTable<'a>, at: At, keys: &'static Keys, findings: &'a Findings) -> Self {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !keys.iter().any(|known| known.name == name) {
                let near = || nearest(name, keys.iter().map(|known| known.name));
                let nearest = keys.below(name).or_else(near);
                let fault = Fault::UnknownKey { key: name.to_owned(), what: keys.what, nearest };
                findings.fault(At::new(at.file, key.span()), fault);
            }
        }
        Section { table, at, keys, findings }
    }

    pub(super) fn get(&self, key: &'static str) -> Option<Value<'a>> {
        debug_assert!(self.keys.iter().any(|known| known.name == key), "{key} is not in the table of keys");
        self.table.get(key).map(|value| Value {
            key,
            tree: value.get_ref(),
            at: At::new(self.at.file, value.span()),
            findings: self.findings,
        })
    }

    /// A key that must be there.
    pub(super) fn require(&self, key: &'static str) -> Option<Value<'a>> {
        debug_assert!(self.keys.may_require(key), "{key} is not marked as required");
        let value = self.get(key);
        if value.is_none() {
            self.findings.fault(self.at, Fault::MissingKey { key, what: self.keys.what });
        }
        value
    }

    pub(super) fn text(&self, key: &'static str) -> Option<Written<&'a str>> {
        self.get(key)?.text()
    }

    pub(super) fn contact(&self, key: &'static str) -> Option<Written<&'a str>> {
        let written = self.text(key)?;
        if !is_contact(written.value) {
            self.findings.fault(written.at, Fault::BadContact { text: written.value.to_owned() });
        }
        Some(written)
    }

    pub(super) fn flag(&self, key: &'static str) -> Option<Written<bool>> {
        self.get(key)?.flag()
    }

    pub(super) fn number(&self, key: &'static str, least: i64, most: i64) -> Option<Written<i64>> {
        self.get(key)?.number(least, most)
    }

    pub(super) fn count(&self, key: &'static str, least: u32, most: u32) -> Option<Written<u32>> {
        self.get(key)?.count(least, most)
    }

    pub(super) fn share(&self, key: &'static str) -> Option<Written<Share>> {
        self.get(key)?.share(0)
    }

    pub(super) fn choice<T: Keyword>(&self, key: &'static str) -> Option<Written<T>> {
        self.get(key)?.choice()
    }

    pub(super) fn duration(&self, key: &'static str) -> Option<Written<Duration>> {
        let value = self.get(key)?;
        value.parsed("a length of time such as \"10m\"", parse_duration, |key, text| Fault::BadDuration {
            key,
            text,
        })
    }

    pub(super) fn wait(&self, key: &'static str) -> Option<Written<Wait>> {
        let value = self.get(key)?;
        value.parsed("a length of time such as \"10m\", or \"forever\"", Wait::parse, |key, text| {
            Fault::BadDuration { key, text }
        })
    }

    pub(super) fn texts(&self, key: &'static str) -> Option<Written<Vec<Written<&'a str>>>> {
        let list = self.get(key)?.list("a list of strings")?;
        let texts = list.value.iter().filter_map(Value::text).collect();
        Some(Written { value: texts, at: list.at })
    }

    /// The tables of a list, as under `[[key]]`.
    pub(super) fn tables(&self, key: &'static str, keys: &'static Keys) -> Vec<Section<'a>> {
        let list = self.get(key).and_then(|value| value.list(tables_of(key)));
        list.map_or_else(Vec::new, |list| list.value.iter().filter_map(|value| value.section(keys)).collect())
    }

    pub(super) fn section(&self, key: &'static str, keys: &'static Keys) -> Option<Section<'a>> {
        self.get(key)?.section(keys)
    }

    /// The names under a key with their values, in the order in which they were written.
    pub(super) fn by_name(&self, key: &'static str) -> Vec<(Written<&'a str>, Value<'a>)> {
        let Some(value) = self.get(key) else { return Vec::new() };
        value.by_name().unwrap_or_default()
    }

    /// Reports those of these keys that are there.
    pub(super) fn forbid(&self, keys: &[&'static str], fault: impl Fn(&'static str) -> Fault) {
        for &name in keys {
            if let Some((key, _)) = self.table.get_key_value(name) {
                self.findings.fault(At::new(self.at.file, key.span()), fault(name));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Whether any other key is there, known or not.
    pub(super) fn has_more_than(&self, key: &'static str) -> bool {
        self.table.keys().any(|known| known.get_ref() != key)
    }

    pub(super) fn fault(&self, at: At, fault: Fault) {
        self.findings.fault(at, fault);
    }
}

impl<'a> Value<'a> {
    fn found(&self) -> &'static str {
        match self.tree {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
    }

    pub(super) fn fault(&self, fault: Fault) {
        self.findings.fault(self.at, fault);
    }

    pub(super) fn wrong(&self, expected: &'static str) {
        self.fault(Fault::WrongType { key: self.key.to_owned(), expected, found: self.found() });
    }

    fn written<T>(&self, value: T) -> Written<T> {
        Written { value, at: self.at }
    }

    /// The string, where it is one; nothing is reported.
    pub(super) fn as_text(&self) -> Option<&'a str> {
        self.tree.as_str()
    }

    /// The flag, where it is one; nothing is reported.
    pub(super) fn as_flag(&self) -> Option<bool> {
        self.tree.as_bool()
    }

    pub(super) fn is_table(&self) -> bool {
        self.tree.is_table()
    }

    pub(super) fn is_list(&self) -> bool {
        self.tree.is_array()
    }

    pub(super) fn has_elements(&self) -> bool {
        self.tree.as_array().is_some_and(|array| !array.is_empty())
    }

    pub(super) fn is_number(&self) -> bool {
        self.tree.is_integer()
    }

    pub(super) fn text(&self) -> Option<Written<&'a str>> {
        let text = self.as_text();
        if text.is_none() {
            self.wrong("a string");
        }
        text.map(|text| self.written(text))
    }

    pub(super) fn flag(&self) -> Option<Written<bool>> {
        let flag = self.tree.as_bool();
        if flag.is_none() {
            self.wrong("true or false");
        }
        flag.map(|flag| self.written(flag))
    }

    pub(super) fn number(&self, least: i64, most: i64) -> Option<Written<i64>> {
        let Some(integer) = self.tree.as_integer() else {
            self.wrong("a whole number");
            return None;
        };
        let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.fault(Fault::OutOfRange { key: self.key.to_owned(), least, most });
        }
        number.map(|number| self.written(number))
    }

    pub(super) fn count(&self, least: u32, most: u32) -> Option<Written<u32>> {
        let number = self.number(least.into(), most.into())?;
        u32::try_from(number.value).ok().map(|count| self.written(count))
    }

    pub(super) fn choice<T: Keyword>(&self) -> Option<Written<T>> {
        let text = self.text()?.value;
        let choice = T::of(text);
        if choice.is_none() {
            self.unknown_word(text, T::words());
        }
        choice.map(|choice| self.written(choice))
    }

    pub(super) fn unknown_word(&self, word: &str, words: Vec<&'static str>) {
        let nearest = nearest(word, words.iter().copied());
        self.fault(Fault::UnknownWord { key: self.key.to_owned(), word: word.to_owned(), words, nearest });
    }

    /// A number of slots, or a share.
    pub(super) fn share(&self, least: u32) -> Option<Written<Share>> {
        if self.is_number() {
            let count = self.count(least, HIGHEST_LIMIT)?;
            return Some(Written { value: Share::Slots(count.value), at: count.at });
        }
        self.parsed("a number of slots, or a share such as \"60%\"", Share::parse, |key, text| {
            Fault::BadShare { key, text }
        })
    }

    /// A string that means something.
    pub(super) fn parsed<T>(
        &self,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
        fault: impl FnOnce(String, String) -> Fault,
    ) -> Option<Written<T>> {
        let Some(text) = self.as_text() else {
            self.wrong(expected);
            return None;
        };
        let parsed = parse(text);
        if parsed.is_none() {
            self.fault(fault(self.key.to_owned(), text.to_owned()));
        }
        parsed.map(|value| self.written(value))
    }

    /// A list that was read from this value and must not be empty; what to do instead.
    pub(super) fn filled<T>(&self, list: Vec<T>, instead: &'static str) -> Option<Written<Vec<T>>> {
        if list.is_empty() {
            self.fault(Fault::EmptyList { key: self.key.to_owned(), instead });
            return None;
        }
        Some(self.written(list))
    }

    /// A moment, as a string or as TOML writes it, still as text.
    pub(super) fn time(&self) -> Option<Written<String>> {
        match self.tree {
            DeValue::String(text) => Some(self.written(text.to_string())),
            DeValue::Datetime(time) => Some(self.written(time.to_string())),
            _ => {
                self.wrong("a moment such as \"2026-11-20 14:02\"");
                None
            }
        }
    }

    /// The values of a list; they bear its key.
    pub(super) fn list(&self, expected: &'static str) -> Option<Written<Vec<Value<'a>>>> {
        let Some(array) = self.tree.as_array() else {
            self.wrong(expected);
            return None;
        };
        let values = array.iter().map(|value| Value {
            key: self.key,
            tree: value.get_ref(),
            at: At::new(self.at.file, value.span()),
            findings: self.findings,
        });
        Some(self.written(values.collect()))
    }

    pub(super) fn section(&self, keys: &'static Keys) -> Option<Section<'a>> {
        let Some(table) = self.tree.as_table() else {
            self.wrong("a table");
            return None;
        };
        Some(Section::new(table, self.at, keys, self.findings))
    }

    /// The names of a table with their values, in the order in which they were written.
    pub(super) fn by_name(&self) -> Option<Vec<(Written<&'a str>, Value<'a>)>> {
        let Some(table) = self.tree.as_table() else {
            self.wrong(table_of(self.key));
            return None;
        };
        let mut named: Vec<_> = table
            .iter()
            .map(|(key, value)| {
                let name = Written { value: &**key.get_ref(), at: At::new(self.at.file, key.span()) };
                let at = At::new(self.at.file, value.span());
                (name, Value { key: name.value, tree: value.get_ref(), at, findings: self.findings })
            })
            .collect();
        named.sort_by_key(|(name, _)| name.at);
        Some(named)
    }
}
