//! Reads values from the tape of a TOML file. A getter returns `None` for an absent value and for a wrong
//! one. It reports a wrong one, so that reading continues to the next fault.

use std::time::Duration;

use super::{
    At, Findings, HIGHEST_LIMIT, Item, Keys, Kind, Share, Written,
    fault::Fault,
    key::{table_of, tables_of},
    spelling::nearest,
    tape::mark,
};
use crate::judge::terms::{Keyword, Wait, parse_duration};

/// A table whose keys are known.
pub(super) struct Section<'a> {
    table: Item<'a>,
    /// The marks of its keys: most requested keys do not exist.
    marks: u64,
    pub(super) at: At,
    pub(super) keys: &'static Keys,
    findings: &'a Findings,
}

#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    pub(super) key: &'a str,
    item: Item<'a>,
    pub(super) at: At,
    findings: &'a Findings,
}

impl<'a> Section<'a> {
    /// Reads a table, and reports unknown keys.
    pub(super) fn new(table: Item<'a>, at: At, keys: &'static Keys, findings: &'a Findings) -> Self {
        let mut marks = 0;
        for item in table.items() {
            marks |= 1u64 << item.mark();
            if !keys.has(item) && !findings.are_full(at.file) {
                let name = item.key();
                let near = || nearest(name, keys.iter().map(|known| known.name));
                let nearest = keys.below(name).or_else(near);
                let fault = Fault::UnknownKey { key: name.to_owned(), what: keys.what, nearest };
                findings.fault(At::new(at.file, item.key_span()), fault);
            }
        }
        Section { table, marks, at, keys, findings }
    }

    /// The same table, but faults of its values are collected elsewhere.
    pub(super) fn reporting_to(self, findings: &'a Findings) -> Self {
        Section { findings, ..self }
    }

    // Most keys are absent, and the mark of a literal is known when this is compiled.
    #[inline]
    pub(super) fn get(&self, key: &'static str) -> Option<Value<'a>> {
        debug_assert!(self.keys.iter().any(|known| known.name == key), "{key} is not in the table of keys");
        if self.marks & (1 << mark(key)) == 0 { None } else { self.present(key) }
    }

    fn present(&self, key: &'static str) -> Option<Value<'a>> {
        let item = self.table.get(key)?;
        Some(Value { key, item, at: At::new(self.at.file, item.span()), findings: self.findings })
    }

    /// A required key.
    pub(super) fn require(&self, key: &'static str) -> Option<Value<'a>> {
        debug_assert!(self.keys.may_require(key), "{key} is not marked as required");
        let value = self.get(key);
        if value.is_none() {
            self.findings.fault(self.at, Fault::MissingKey { key, what: self.keys.what });
        }
        value
    }

    #[inline]
    pub(super) fn text(&self, key: &'static str) -> Option<Written<&'a str>> {
        self.get(key)?.text()
    }

    #[inline]
    pub(super) fn contact(&self, key: &'static str) -> Option<Written<&'a str>> {
        let written = self.text(key)?;
        if !is_contact(written.value) {
            self.findings.fault(written.at, Fault::BadContact { text: written.value.to_owned() });
        }
        Some(written)
    }

    #[inline]
    pub(super) fn flag(&self, key: &'static str) -> Option<Written<bool>> {
        self.get(key)?.flag()
    }

    #[inline]
    pub(super) fn number(&self, key: &'static str, least: i64, most: i64) -> Option<Written<i64>> {
        self.get(key)?.number(least, most)
    }

    pub(super) fn count(&self, key: &'static str, least: u32, most: u32) -> Option<Written<u32>> {
        self.get(key)?.count(least, most)
    }

    #[inline]
    pub(super) fn share(&self, key: &'static str) -> Option<Written<Share>> {
        self.get(key)?.share(0)
    }

    #[inline]
    pub(super) fn choice<T: Keyword>(&self, key: &'static str) -> Option<Written<T>> {
        self.get(key)?.choice()
    }

    pub(super) fn duration(&self, key: &'static str) -> Option<Written<Duration>> {
        let value = self.get(key)?;
        value.parsed("a duration such as \"10m\"", parse_duration, |key, text| Fault::BadDuration {
            key,
            text,
        })
    }

    #[inline]
    pub(super) fn wait(&self, key: &'static str) -> Option<Written<Wait>> {
        let value = self.get(key)?;
        value.parsed("a duration such as \"10m\", or \"forever\"", Wait::parse, |key, text| {
            Fault::BadDuration { key, text }
        })
    }

    #[inline]
    pub(super) fn texts(&self, key: &'static str) -> Option<Written<Vec<Written<&'a str>>>> {
        let list = self.get(key)?;
        let texts = list.elements("a list of strings")?.filter_map(|text| text.text()).collect();
        Some(Written { value: texts, at: list.at })
    }

    /// The tables of a list, as under `[[key]]`, one after the other.
    pub(super) fn each(
        &self,
        key: &'static str,
        keys: &'static Keys,
    ) -> impl Iterator<Item = Section<'a>> + use<'a> {
        let values = self.get(key).and_then(|value| value.elements(tables_of(key)));
        values.into_iter().flatten().filter_map(move |value| value.section(keys))
    }

    /// What is in a list or a table, which may be of any kind; nothing is reported.
    pub(super) fn items_of(&self, key: &'static str) -> impl Iterator<Item = Item<'a>> + use<'a> {
        self.table.get(key).into_iter().flat_map(Item::items)
    }

    /// Whether a table in a list, or a table in that one, may have a key.
    pub(super) fn may_list(&self, key: &'static str) -> bool {
        self.table.may_list(key)
    }

    pub(super) fn section(&self, key: &'static str, keys: &'static Keys) -> Option<Section<'a>> {
        self.get(key)?.section(keys)
    }

    /// The names under a key with their values, in the order in which they were written.
    pub(super) fn by_name(&self, key: &'static str) -> Vec<(Written<&'a str>, Value<'a>)> {
        let Some(value) = self.get(key) else { return Vec::new() };
        value.by_name().unwrap_or_default()
    }

    /// Reports those of these keys that are present.
    pub(super) fn forbid(&self, keys: &[&'static str], fault: impl Fn(&'static str) -> Fault) {
        for &name in keys {
            if let Some(item) = self.table.get(name) {
                self.findings.fault(At::new(self.at.file, item.key_span()), fault(name));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.items().next().is_none()
    }

    /// Whether any other key is present, known or not.
    pub(super) fn has_more_than(&self, key: &'static str) -> bool {
        self.table.items().any(|item| item.key() != key)
    }

    pub(super) fn fault(&self, at: At, fault: Fault) {
        self.findings.fault(at, fault);
    }
}

impl<'a> Value<'a> {
    fn found(&self) -> &'static str {
        match self.item.kind() {
            Kind::Text | Kind::DecodedText => "a string",
            Kind::Number | Kind::DecodedNumber => "a whole number",
            Kind::Float => "a number with a fraction",
            Kind::True | Kind::False => "true or false",
            Kind::Moment => "a date or time",
            Kind::List | Kind::Tables => "a list",
            Kind::Inline | Kind::Section | Kind::Implied | Kind::Dotted => "a table",
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

    /// The string, if it is one; nothing is reported.
    pub(super) fn as_text(&self) -> Option<&'a str> {
        self.item.text()
    }

    /// The flag, if it is one; nothing is reported.
    pub(super) fn as_flag(&self) -> Option<bool> {
        match self.item.kind() {
            Kind::True => Some(true),
            Kind::False => Some(false),
            _ => None,
        }
    }

    pub(super) fn is_table(&self) -> bool {
        self.item.is_table()
    }

    pub(super) fn is_list(&self) -> bool {
        self.item.is_list()
    }

    pub(super) fn is_empty_list(&self) -> bool {
        self.is_list() && self.item.items().next().is_none()
    }

    pub(super) fn is_number(&self) -> bool {
        self.item.is_number()
    }

    pub(super) fn text(&self) -> Option<Written<&'a str>> {
        let text = self.as_text();
        if text.is_none() {
            self.wrong("a string");
        }
        text.map(|text| self.written(text))
    }

    pub(super) fn flag(&self) -> Option<Written<bool>> {
        let flag = self.as_flag();
        if flag.is_none() {
            self.wrong("true or false");
        }
        flag.map(|flag| self.written(flag))
    }

    pub(super) fn number(&self, least: i64, most: i64) -> Option<Written<i64>> {
        if !self.is_number() {
            self.wrong("a whole number");
            return None;
        }
        let number: Option<i64> = self.item.digits().parse().ok();
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
        if self.findings.are_full(self.at.file) {
            return;
        }
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

    /// A string with a meaning.
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

    /// A list from this value that must not be empty; with the alternative.
    pub(super) fn filled<T>(&self, list: Vec<T>, instead: &'static str) -> Option<Written<Vec<T>>> {
        if list.is_empty() {
            self.fault(Fault::EmptyList { key: self.key.to_owned(), instead });
            return None;
        }
        Some(self.written(list))
    }

    /// A moment, as a string or as TOML writes it, still as text.
    pub(super) fn time(&self) -> Option<Written<String>> {
        let moment = || (self.item.kind() == Kind::Moment).then(|| self.item.digits());
        let text = self.as_text().or_else(moment);
        if text.is_none() {
            self.wrong("a moment such as \"2026-11-20 14:02\"");
        }
        text.map(|text| self.written(text.to_owned()))
    }

    /// The strings of a list that must not be empty; with the alternative.
    pub(super) fn filled_texts(&self, instead: &'static str) -> Option<Vec<Written<&'a str>>> {
        let texts: Vec<_> = self.elements("a list of strings")?.filter_map(|text| text.text()).collect();
        // A list without a readable string already has a fault.
        let is_read = !texts.is_empty() || self.is_empty_list();
        self.filled(is_read.then_some(texts)?, instead).map(|texts| texts.value)
    }

    /// The values of a list, one after the other.
    pub(super) fn elements(
        &self,
        expected: &'static str,
    ) -> Option<impl Iterator<Item = Value<'a>> + use<'a>> {
        if !self.is_list() {
            self.wrong(expected);
            return None;
        }
        let list = *self;
        Some(list.item.items().map(move |item| Value {
            item,
            at: At::new(list.at.file, item.span()),
            ..list
        }))
    }

    pub(super) fn section(&self, keys: &'static Keys) -> Option<Section<'a>> {
        if !self.is_table() {
            self.wrong("a table");
            return None;
        }
        Some(Section::new(self.item, self.at, keys, self.findings))
    }

    /// The names of a table with their values, in the order in which they were written.
    pub(super) fn by_name(&self) -> Option<Vec<(Written<&'a str>, Value<'a>)>> {
        if !self.is_table() {
            self.wrong(table_of(self.key));
            return None;
        }
        let entry = |item: Item<'a>| {
            let name = Written { value: item.key(), at: At::new(self.at.file, item.key_span()) };
            let at = At::new(self.at.file, item.span());
            (name, Value { key: name.value, item, at, findings: self.findings })
        };
        let mut named: Vec<_> = self.item.items().map(entry).collect();
        named.sort_by_key(|(name, _)| name.at);
        Some(named)
    }
}

/// The maximum number of characters of a contact.
const LONGEST_CONTACT: usize = 200;

/// Whether a text can be a contact: one line that fits on a screen.
fn is_contact(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(['\n', '\r']) && text.chars().count() <= LONGEST_CONTACT
}

#[cfg(test)]
mod tests {
    use crate::policy::{Policy, Repository};

    /// Tables count in the order of their headers, also if one of them was named by the header of another.
    #[test]
    fn tables_have_the_order_of_their_headers() {
        let text = r#"
            [repository.one.outside]
            command = ["/bin/true"]
            [repository.two]
            limit = 1
            [repository.one]
            limit = 1
        "#;
        let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
        let names: Vec<&str> = policy.repositories().iter().map(Repository::name).collect();
        assert_eq!(names, ["two", "one"]);
    }
}
