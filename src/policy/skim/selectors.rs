//! Selectors that are plain: each entry is an entry without fault, or an alias, of which that has to be found
//! out.

use super::{
    cursor::{Cursor, Piece},
    references::References,
};
use crate::policy::selector::Selector;

/// The commands of a rule, which tell whether it matters to a launch.
pub(super) fn commands(cursor: &mut Cursor<'_>, mentions: &mut References) -> Option<()> {
    let filled = cursor.list(|cursor| {
        let piece = entry(cursor, Selector::Commands, mentions)?;
        mentions.commands.push(piece);
        Some(())
    })?;
    (filled > 0).then_some(())
}

/// Any other selector of a rule.
pub(super) fn any(cursor: &mut Cursor<'_>, key: &str, mentions: &mut References) -> Option<()> {
    if key == "when" {
        let filled = cursor.list(|cursor| {
            let piece = cursor.string()?;
            let text = piece.of(cursor.text);
            // The times of an alias would have to be known before anything is left out.
            (!text.starts_with('@') && Selector::When.takes(text)).then_some(())?;
            mentions.times.push(piece);
            Some(())
        })?;
        return (filled > 0).then_some(());
    }
    of_exception(cursor, key, mentions)
}

/// A selector in a table of `except`.
pub(super) fn of_exception(cursor: &mut Cursor<'_>, key: &str, mentions: &mut References) -> Option<()> {
    let selector = match key {
        "commands" => Selector::Commands,
        "users" => Selector::Users,
        "groups" => Selector::Groups,
        "hosts" => Selector::Hosts,
        "directories" => Selector::Directories,
        "arguments" => return arguments(cursor, mentions),
        "environment" => return environment(cursor, mentions),
        _ => return None,
    };
    let filled = cursor.list(|cursor| {
        let is_number = cursor.peek().is_some_and(|byte| byte.is_ascii_digit());
        if is_number && matches!(selector, Selector::Users | Selector::Groups) {
            // The highest number is nobody's.
            return (0..i64::from(u32::MAX)).contains(&cursor.number()?).then_some(());
        }
        entry(cursor, selector, mentions).map(drop)
    })?;
    (filled > 0).then_some(())
}

fn arguments(cursor: &mut Cursor<'_>, mentions: &mut References) -> Option<()> {
    let filled = cursor.list(|cursor| {
        if cursor.peek() != Some(b'[') {
            return pattern(cursor, Selector::Arguments, mentions);
        }
        let consecutive = cursor.list(|cursor| {
            let piece = cursor.string()?;
            (!piece.is_special() && !piece.of(cursor.text).starts_with('@')).then_some(())
        })?;
        (consecutive > 0).then_some(())
    })?;
    (filled > 0).then_some(())
}

fn environment(cursor: &mut Cursor<'_>, mentions: &mut References) -> Option<()> {
    let variables = cursor.table(|cursor, name| {
        let name = name.of(cursor.text);
        (!name.is_empty() && !name.contains('=')).then_some(())?;
        if cursor.peek() != Some(b'[') {
            return cursor.flag().map(drop);
        }
        let filled = cursor.list(|cursor| pattern(cursor, Selector::Environment, mentions))?;
        (filled > 0).then_some(())
    })?;
    (variables > 0).then_some(())
}

/// A pattern that may begin with anything, and be empty; or an alias.
fn pattern(cursor: &mut Cursor<'_>, selector: Selector, mentions: &mut References) -> Option<()> {
    let piece = cursor.string()?;
    let text = piece.of(cursor.text);
    if text.starts_with('@') {
        mentions.aliases.push((selector, piece));
        return Some(());
    }
    (!piece.is_special()).then_some(())
}

/// An entry of a list of alternatives.
fn entry(cursor: &mut Cursor<'_>, selector: Selector, mentions: &mut References) -> Option<Piece> {
    let piece = cursor.string()?;
    let text = piece.of(cursor.text);
    let is_plain = match text.as_bytes().first()? {
        b'@' => {
            mentions.aliases.push((selector, piece));
            true
        }
        b'a'..=b'z' | b'A'..=b'Z' | b'_' if selector != Selector::Directories => {
            !(selector == Selector::Commands && piece.has_slash())
        }
        b'/' if matches!(selector, Selector::Commands | Selector::Directories) => true,
        _ => selector.takes(text),
    };
    (is_plain && !piece.is_special()).then_some(piece)
}
