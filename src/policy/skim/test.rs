//! A `[[test]]` that is plain. No launch needs it, but what it refers to has to be there.

use super::{
    cursor::Cursor,
    references::{Mention, References},
};
use crate::policy::limit::HIGHEST_LIMIT;

/// The keys that a plain test can have.
const KEYS: [&str; 16] = [
    "name",
    "command",
    "expect",
    "user",
    "uid",
    "groups",
    "netgroups",
    "path",
    "arguments",
    "host",
    "directory",
    "environment",
    "time",
    "cpus",
    "use",
    "by",
];

/// Reads what stands under `[[test]]`, up to the next header; `None` where it is not plain.
pub(super) fn read(cursor: &mut Cursor<'_>, mentions: &mut References) -> Option<()> {
    let mut seen: Vec<&str> = Vec::new();
    let mut expects_start = false;
    cursor.line_end()?;
    loop {
        cursor.empty_lines()?;
        if matches!(cursor.peek(), None | Some(b'[')) {
            break;
        }
        let key = cursor.key().filter(|key| *key == "claims" || KEYS.contains(key))?;
        if seen.contains(&key) {
            return None;
        }
        seen.push(key);
        cursor.equals()?;
        if key == "expect" {
            let expected = cursor.string()?.of(cursor.text);
            expects_start = expected == "start";
            ["start", "refuse", "exempt"].contains(&expected).then_some(())?;
        } else {
            value(cursor, key, mentions)?;
        }
        cursor.line_end()?;
    }
    let is_whole = ["name", "command", "expect"].iter().all(|key| seen.contains(key));
    (is_whole && !(expects_start && seen.contains(&"by"))).then_some(())
}

fn value(cursor: &mut Cursor<'_>, key: &str, mentions: &mut References) -> Option<()> {
    match key {
        "uid" => within(cursor, 0, i64::from(u32::MAX) - 1)?,
        "cpus" => within(cursor, 1, 1_000_000)?,
        "groups" | "netgroups" | "arguments" => drop(cursor.list(|cursor| cursor.string().map(drop))?),
        "environment" => drop(cursor.table(|cursor, _| cursor.string().map(drop))?),
        "time" => mentions.tests.push(Mention::Time(cursor.string()?)),
        "by" => mentions.tests.push(Mention::Rule(cursor.string()?)),
        "use" => held(cursor, mentions)?,
        "claims" => drop(cursor.list(|cursor| claim(cursor, mentions))?),
        _ => drop(cursor.string()?),
    }
    Some(())
}

fn within(cursor: &mut Cursor<'_>, least: i64, most: i64) -> Option<()> {
    (least..=most).contains(&cursor.number()?).then_some(())
}

fn held(cursor: &mut Cursor<'_>, mentions: &mut References) -> Option<()> {
    cursor.table(|cursor, name| {
        mentions.tests.push(Mention::Repository(name));
        within(cursor, 0, i64::from(HIGHEST_LIMIT))
    })?;
    Some(())
}

fn claim(cursor: &mut Cursor<'_>, mentions: &mut References) -> Option<()> {
    if cursor.peek() != Some(b'{') {
        mentions.tests.push(Mention::Repository(cursor.string()?));
        return Some(());
    }
    let mut is_named = false;
    cursor.table(|cursor, key| {
        match key.of(cursor.text) {
            "repository" => {
                is_named = true;
                mentions.tests.push(Mention::Repository(cursor.string()?));
            }
            "member" => drop(cursor.string()?),
            "limit" => within(cursor, 0, i64::from(HIGHEST_LIMIT))?,
            "slots" if cursor.peek() == Some(b'"') => {
                cursor.string().filter(|slots| slots.of(cursor.text) == "all")?;
            }
            "slots" => within(cursor, 1, i64::from(HIGHEST_LIMIT))?,
            _ => return None,
        }
        Some(())
    })?;
    is_named.then_some(())
}
