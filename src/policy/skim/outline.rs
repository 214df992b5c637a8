//! The outline of a policy file: its sections, and whether a launch can do without each of them.

use super::{
    cursor::{Cursor, Piece},
    references::{Mention, References},
    rule::PlainRule,
};
use crate::policy::limit::HIGHEST_LIMIT;

const RULE: &str = "[[rule]]";
const TEST: &str = "[[test]]";

/// The tables that are never left out.
const OTHERS: [&str; 6] = ["defaults", "alias", "repository", "command", "delegate", "log"];

/// The sections of a file, and what those that can be left out refer to.
#[derive(Debug, Default)]
pub(in crate::policy) struct Outline {
    pub(super) sections: Vec<Section>,
    pub(super) mentions: References,
    programs: Vec<(Piece, Piece)>,
}

/// From a header up to the next section, with the tables below it.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) start: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// A rule; where it is plain, what it says.
    Rule(Option<PlainRule>),
    PlainTest,
    /// The text before the first header, a test that is not plain, or any other table.
    Other,
}

impl Outline {
    /// The outline of a text; `None` if its sections cannot be determined.
    pub(in crate::policy) fn of(text: &str) -> Option<Self> {
        let mut cursor = Cursor::new(text)?;
        let mut outline = Outline::default();
        outline.sections.push(Section { start: 0, kind: Kind::Other });
        head(&mut cursor)?;
        while cursor.peek().is_some() {
            outline.section(&mut cursor)?;
        }
        Some(outline)
    }

    /// The programs behind commands, in the order in which they are named.
    pub(in crate::policy) fn programs<'t>(&self, text: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
        self.programs.iter().map(|(name, program)| (name.of(text), program.of(text)))
    }

    /// Reads the section at the cursor.
    fn section(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let start = cursor.at;
        let (kind, below) = if cursor.is_before(RULE) {
            (Kind::Rule(self.plainly(cursor, RULE, PlainRule::read)), "rule.")
        } else if cursor.is_before(TEST) {
            let plain = self.plainly(cursor, TEST, read);
            (plain.map_or(Kind::Other, |()| Kind::PlainTest), "test.")
        } else {
            self.other(cursor)?;
            self.sections.push(Section { start, kind: Kind::Other });
            return Some(());
        };
        if cursor.at == start {
            cursor.section()?;
        }
        // Neither is plain with a table below it.
        let is_alone = !pass_tables_below(cursor, below)?;
        let kind = match kind {
            Kind::Rule(plain) => Kind::Rule(plain.filter(|_| is_alone)),
            Kind::PlainTest if is_alone => Kind::PlainTest,
            Kind::PlainTest | Kind::Other => Kind::Other,
        };
        self.sections.push(Section { start, kind });
        Some(())
    }

    /// What a reader makes of the section with this header; the cursor passes it where it is plain.
    fn plainly<T>(
        &mut self,
        cursor: &mut Cursor<'_>,
        header: &str,
        read: impl FnOnce(&mut Cursor<'_>, &mut References) -> Option<T>,
    ) -> Option<T> {
        let (start, mark) = (cursor.at, self.mentions.mark());
        cursor.at += header.len();
        let plain = read(cursor, &mut self.mentions);
        if plain.is_none() {
            cursor.at = start;
            self.mentions.rewind(mark);
        }
        plain
    }

    /// Passes a table that is never left out.
    fn other(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let start = cursor.at;
        cursor.expect(b'[')?;
        let name = cursor.key().filter(|name| OTHERS.contains(name))?;
        if name == "command" {
            return self.command(cursor);
        }
        matches!(cursor.peek(), Some(b'.' | b']')).then_some(())?;
        cursor.at = start;
        cursor.section()
    }

    /// Reads `[command.NAME]`: before anything is parsed it must be known which program a command means.
    fn command(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        cursor.expect(b'.')?;
        let name = cursor.name()?;
        cursor.expect(b']')?;
        cursor.line_end()?;
        cursor.empty_lines()?;
        cursor.key().filter(|key| *key == "exec")?;
        cursor.equals()?;
        let program = cursor.string()?;
        cursor.line_end()?;
        cursor.empty_lines()?;
        self.programs.push((name, program));
        matches!(cursor.peek(), None | Some(b'[')).then_some(())
    }
}

/// Passes the tables below a rule or a test; whether there are any.
fn pass_tables_below(cursor: &mut Cursor<'_>, name: &str) -> Option<bool> {
    let mut any = false;
    while [1, 2].iter().any(|brackets| cursor.is_header_of(*brackets, name)) {
        cursor.section()?;
        any = true;
    }
    Some(any)
}

/// Passes the text before the first header: keys, dotted or not, that concern no rules, tests or programs.
fn head(cursor: &mut Cursor<'_>) -> Option<()> {
    loop {
        cursor.empty_lines()?;
        if matches!(cursor.peek(), None | Some(b'[')) {
            return Some(());
        }
        cursor.key().filter(|key| ["version", "defaults", "alias", "repository", "log"].contains(key))?;
        cursor.statement()?;
    }
}

// A `[[test]]` that is plain. No launch needs it, but what it refers to has to be there.

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

/// Reads the lines below `[[test]]`, up to the next header; `None` if they are not plain.
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
