//! The keys below the prefix: what each means, and back. Numbers are written so that they sort as text.

use super::etcd::Range;

/// The meaning of a key.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Key {
    /// `s/TABLE/SLOT`: a slot that is held.
    Slot(String, u64),
    /// `w/TABLE/NUMBER`: a launch in the queue.
    Ticket(String, u64),
    /// `e/TABLE/SLOT`: notice that the holder of the slot is overdue, and blocks a launch.
    Notice(String, u64),
    /// `t/TABLE`: when it was last used.
    Stamps(String),
    /// `h/HOST`: a host that is present, under its lease.
    Host(String),
    /// `g/HOST`: when that was last written, without a lease. It distinguishes one absence of the host from
    /// the next.
    Written(String),
    /// `c/id`: the etcd that the tables belong to. A restored backup has that of another one.
    Cluster,
}

/// Where all keys are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn below(prefix: &str) -> Self {
        Self { prefix: format!("{}/", prefix.trim_end_matches('/')) }
    }

    /// The prefix of all keys.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// A key as etcd has it.
    pub(super) fn name(&self, key: &Key) -> String {
        let prefix = &self.prefix;
        match key {
            Key::Slot(table, slot) => format!("{prefix}s/{table}/{slot:07}"),
            Key::Ticket(table, number) => format!("{prefix}w/{table}/{number:016x}"),
            Key::Notice(table, slot) => format!("{prefix}e/{table}/{slot:07}"),
            Key::Stamps(table) => format!("{prefix}t/{table}"),
            Key::Host(host) => format!("{prefix}h/{host}"),
            Key::Written(host) => format!("{prefix}g/{host}"),
            Key::Cluster => format!("{prefix}c/id"),
        }
    }

    /// The meaning of a key; none if it is none of these, or is spelt differently, such as a second key for
    /// the same slot.
    pub(super) fn parse(&self, name: &str) -> Option<Key> {
        self.meant(name).filter(|key| self.name(key) == name)
    }

    fn meant(&self, name: &str) -> Option<Key> {
        let (kind, rest) = name.strip_prefix(&self.prefix)?.split_once('/')?;
        let numbered = |radix| {
            let (table, number) = rest.rsplit_once('/')?;
            Some((table.to_owned(), u64::from_str_radix(number, radix).ok()?))
        };
        Some(match kind {
            "s" => numbered(10).map(|(table, slot)| Key::Slot(table, slot))?,
            "w" => numbered(16).map(|(table, number)| Key::Ticket(table, number))?,
            "e" => numbered(10).map(|(table, slot)| Key::Notice(table, slot))?,
            "t" => Key::Stamps(rest.to_owned()),
            "h" => Key::Host(rest.to_owned()),
            "g" => Key::Written(rest.to_owned()),
            "c" if rest == "id" => Key::Cluster,
            _ => return None,
        })
    }

    pub(super) fn all(&self) -> Range {
        Range::below(&self.prefix)
    }

    pub(super) fn slots(&self, table: &str) -> Range {
        Range::below(format!("{}s/{table}/", self.prefix))
    }

    /// The slots of a table above this one.
    pub(super) fn slots_above(&self, table: &str, slot: u64) -> Range {
        let first = self.name(&Key::Slot(table.to_owned(), slot.saturating_add(1)));
        Range { from: first, ..self.slots(table) }
    }

    pub(super) fn hosts(&self) -> Range {
        Range::below(format!("{}h/", self.prefix))
    }

    /// All launches in a table's queue.
    pub(super) fn line(&self, table: &str) -> Range {
        Range::below(format!("{}w/{table}/", self.prefix))
    }

    /// All launches in a table's queue before this number.
    pub(super) fn line_before(&self, table: &str, number: u64) -> Range {
        Range { to: Some(self.name(&Key::Ticket(table.to_owned(), number))), ..self.line(table) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_read_as_it_was_written() {
        let keys = Keys::below("/rungate");
        for key in [
            Key::Slot("matlab.1000".to_owned(), 17),
            Key::Ticket("a b".to_owned(), u64::MAX),
            Key::Notice("matlab.1000".to_owned(), 17),
            Key::Stamps("sync".to_owned()),
            Key::Host("lab7".to_owned()),
            Key::Written("lab7".to_owned()),
            Key::Cluster,
        ] {
            assert_eq!(keys.parse(&keys.name(&key)), Some(key));
        }
        assert_eq!(keys.name(&Key::Slot("matlab".to_owned(), 17)), "/rungate/s/matlab/0000017");
        for strange in [
            "/other/s/a/0000001",
            "/rungate/s/a",
            "/rungate/s/a/x",
            "/rungate/s/a/1",
            "/rungate/s/a/+000001",
            "/rungate/w/a/1",
            "/rungate/e/a/1",
            "/rungate/q/a",
            "/rungate/",
        ] {
            assert_eq!(keys.parse(strange), None, "{strange}");
        }
    }

    #[test]
    fn ranges_have_what_they_say() {
        let keys = Keys::below("/rungate/");
        let slot = |table: &str, slot| keys.name(&Key::Slot(table.to_owned(), slot));
        let above = keys.slots_above("a", 9);
        assert!(above.contains(&slot("a", 10)) && above.contains(&slot("a", 1_048_575)));
        assert!(!above.contains(&slot("a", 9)) && !above.contains(&slot("ab", 10)));
        let before = keys.line_before("a", 10);
        let ticket = |number| keys.name(&Key::Ticket("a".to_owned(), number));
        assert!(before.contains(&ticket(0)) && before.contains(&ticket(9)) && !before.contains(&ticket(10)));
        assert!(!before.contains(&keys.name(&Key::Ticket("b".to_owned(), 1))));
    }
}
