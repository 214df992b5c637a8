//! From text to its nodes. What is not TOML is reported; the rest is kept, so that the next fault can be
//! found too.

use std::ops::Range;

use toml::de::{DeTable, Error};

use super::{
    At, Findings, Nodes,
    fault::Fault,
    malformed::{self, is_header, line_start, next_header},
};

/// A file with more of them is not TOML, and the reader stops.
const MOST: usize = 100;

/// The nodes of a text.
pub(super) fn parse(file: usize, text: &str, findings: &Findings) -> Nodes {
    Nodes::walk(text).unwrap_or_else(|| Nodes::of_tree(&tree(file, text, findings), text))
}

fn tree<'t>(file: usize, text: &'t str, findings: &Findings) -> DeTable<'t> {
    let (table, mut errors) = DeTable::parse_recoverable(text);
    let table = table.into_inner();
    errors.sort_by_key(|error| span(error).start);
    errors.truncate(MOST);
    if let Some((at, reason)) = malformed::all_of(text).filter(|_| !errors.is_empty()) {
        findings.fault(At::new(file, at..at + 1), Fault::Syntax { reason: reason.into() });
        return table;
    }
    let mut second_table = 0..0;
    for error in &errors {
        let span = span(error);
        if error.message() != "duplicate key" {
            let reason = malformed::reason(error.message(), text, &span);
            let place = malformed::place(error.message(), text, span);
            findings.fault(At::new(file, place), Fault::Syntax { reason });
            continue;
        }
        // The content of the second of two tables with one name is not reported separately.
        if second_table.contains(&span.start) {
            continue;
        }
        let name = text.get(span.clone()).unwrap_or_default();
        let first = if is_header(text, span.start) {
            second_table = span.end..next_header(text, span.end);
            first_header(text, &span)
        } else {
            first_key(&table, name, &span)
        };
        let fault = match first {
            Some(first) => Fault::DuplicateKey { name: name.to_owned(), first: At::new(file, first) },
            None => Fault::Syntax { reason: "this key occurs twice".into() },
        };
        findings.fault(At::new(file, span), fault);
    }
    table
}

fn span(error: &Error) -> Range<usize> {
    error.span().unwrap_or(0..0)
}

/// The name in the first line that opens the same table as the line of this span, if it has the same words.
/// The tree has only the second table.
fn first_header(text: &str, second: &Range<usize>) -> Option<Range<usize>> {
    let line = line_start(text, second.start);
    // Up to what closes the name: another name may begin with it.
    let header = text.get(line..second.end + 1)?;
    let first = text.find(header).filter(|first| *first == line_start(text, *first) && *first < line)?;
    Some(first + second.start - line..first + second.end - line)
}

/// The key that a second one repeats: the last before it with that name.
fn first_key(table: &DeTable<'_>, name: &str, second: &Range<usize>) -> Option<Range<usize>> {
    let mut found: Option<Range<usize>> = None;
    let mut tables = vec![table];
    while let Some(table) = tables.pop() {
        for (key, value) in table {
            let span = key.span();
            let later = found.as_ref().is_none_or(|found| found.start < span.start);
            if *key.get_ref() == name && span.end <= second.start && later {
                found = Some(span);
            }
            let array = value.get_ref().as_array().into_iter().flatten();
            let values = std::iter::once(value).chain(array);
            tables.extend(values.filter_map(|value| value.get_ref().as_table()));
        }
    }
    found
}
