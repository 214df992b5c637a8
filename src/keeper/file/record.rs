//! What a holder writes about itself, for people. A record neither admits a launch nor ends a process. It is
//! shown only while its slot is locked and the kernel agrees on the holder. It names the command and never
//! its arguments, because others can read it.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{RECORD_SIZE, RepositoryError, file::LockFile, layout::record_at};
use crate::{
    judge::terms::{Hold, Launch},
    sys::process,
    text::json,
};

/// The record of one slot, or of a run of them.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Record {
    /// The process that holds the slot or, under a supervisor, the command.
    pub pid: i32,
    /// The supervisor, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<i32>,
    /// When the process `pid` started: clock ticks since boot.
    pub start: u64,
    /// The real user id.
    pub uid: u32,
    /// When the slot was taken, in milliseconds since 1970.
    pub since: u64,
    /// The same in milliseconds since boot: that clock is never set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<u64>,
    /// How many neighbouring slots were taken together; this is the last of them.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub slots: u64,
    /// What keeps it.
    pub hold: Hold,
    /// The first eight digits of the boot id: process ids and start times mean nothing in another boot.
    pub boot: String,
    /// The node name.
    pub host: String,
    /// The rule that asked for the slot.
    pub rule: String,
    /// The command, as it was typed.
    pub command: String,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_one(slots: &u64) -> bool {
    *slots == 1
}

/// Room for the object itself, without its padding and the newline.
const ROOM: usize = RECORD_SIZE - 1;

impl Record {
    /// The record of a launch of this process, without the time; every repository adds its rule. It asks
    /// `/proc`, so not under a mutex.
    pub fn of(launch: &Launch<'_>) -> Self {
        let pid = process::own_pid();
        Self {
            pid,
            supervisor: match launch.hold {
                Hold::Process | Hold::Descriptor => None,
                Hold::Supervisor | Hold::Tree => Some(pid),
            },
            start: process::own_start(pid).unwrap_or_default(),
            uid: launch.uid,
            since: 0,
            taken: None,
            slots: 1,
            hold: launch.hold,
            boot: process::boot_id().map(short_boot_id).unwrap_or_default(),
            host: launch.host.to_owned(),
            rule: String::new(),
            command: launch.command.to_owned(),
        }
    }

    /// The same for slots that are taken now.
    #[must_use]
    pub fn at(&self, now: SystemTime) -> Self {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let taken = process::since_boot().and_then(|since| u64::try_from(since.as_millis()).ok());
        Self { since: u64::try_from(since.as_millis()).unwrap_or(0), taken, ..self.clone() }
    }

    /// One JSON object, padded with blanks to 255 bytes, and a newline. Texts that do not fit are cut, and
    /// end in `…`.
    pub fn encode(&self) -> [u8; RECORD_SIZE] {
        let mut bytes = [b' '; RECORD_SIZE];
        bytes[ROOM] = b'\n';
        if self.write_into(&mut bytes[..ROOM]) {
            return bytes;
        }
        let mut record = self.clone();
        // Cut at once, not character by character, because a launch with a very long name holds the mutex
        // meanwhile.
        record.texts().into_iter().filter(|text| text.len() > ROOM).for_each(|text| {
            let end = (0..=ROOM).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
        });
        while !record.write_into(&mut bytes[..ROOM]) {
            if let Some(text) = record.texts().into_iter().max_by_key(|text| text.len()) {
                shorten(text);
            }
            bytes[..ROOM].fill(b' ');
        }
        bytes
    }

    fn texts(&mut self) -> [&mut String; 4] {
        [&mut self.host, &mut self.rule, &mut self.command, &mut self.boot]
    }

    fn write_into(&self, room: &mut [u8]) -> bool {
        let Ok(text) = json::line(self) else { return false };
        match room.get_mut(..text.len()) {
            Some(room) => {
                room.copy_from_slice(text.as_bytes());
                true
            }
            None => false,
        }
    }

    /// The record of a slot; none for an empty place or garbage.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// When the slot was taken.
    pub fn since(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_millis(self.since)).unwrap_or(UNIX_EPOCH)
    }
}

/// Rewrites the record of a slot that this process wrote, with the command that it was taken for. The record
/// of a group's slot may have been written by another member.
pub fn amend(file: &LockFile, slot: u64, pid: i32, start: u64) -> Result<(), RepositoryError> {
    let mut bytes = [0; RECORD_SIZE];
    let length = file.read_at(&mut bytes, record_at(slot))?;
    match bytes.get(..length).and_then(Record::decode) {
        Some(record) if record.pid != process::own_pid() => Ok(()),
        Some(record) => file.write_at(&Record { pid, start, ..record }.encode(), record_at(slot)),
        None => Ok(()),
    }
}

/// The digits of a boot id that a record has room for.
pub fn short_boot_id(id: &str) -> String {
    id.chars().take(8).collect()
}

const CUT: char = '…';

fn shorten(text: &mut String) {
    if text.ends_with(CUT) {
        text.pop();
    }
    text.pop();
    text.push(CUT);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(rule: &str, command: &str) -> Record {
        Record {
            pid: i32::MAX,
            supervisor: Some(i32::MAX),
            start: u64::MAX,
            uid: u32::MAX,
            since: 1_790_000_000_000,
            taken: Some(1_000_000_000),
            slots: 1,
            hold: Hold::Supervisor,
            boot: "01234567".to_owned(),
            host: "ws17".to_owned(),
            rule: rule.to_owned(),
            command: command.to_owned(),
        }
    }

    #[track_caller]
    fn fits(rule: &str, command: &str) -> Record {
        let bytes = record(rule, command).encode();
        assert_eq!(bytes[RECORD_SIZE - 1], b'\n');
        Record::decode(&bytes).expect("it reads back")
    }

    #[test]
    fn a_short_record_reads_back_as_it_was() {
        assert_eq!(fits("seats", "matlab"), record("seats", "matlab"));
    }

    /// One slot is the usual number, and takes no room in a record.
    #[test]
    fn only_several_slots_are_written_down() {
        let text = |slots| {
            let bytes = Record { slots, ..record("seats", "matlab") }.encode();
            String::from_utf8(bytes.to_vec()).expect("JSON is text")
        };
        assert!(!text(1).contains("slots") && text(2).contains("\"slots\":2"));
    }

    #[test]
    fn texts_that_do_not_fit_are_cut() {
        let cut = fits(&"r".repeat(300), &"c".repeat(300));
        assert!(cut.rule.ends_with('…') && cut.command.ends_with('…'));
        assert_eq!(cut.host, "ws17");
    }

    #[test]
    fn control_characters_are_escaped_and_still_fit() {
        let bytes = record("seats", &"\u{1b}\n".repeat(100)).encode();
        assert!(bytes[..RECORD_SIZE - 1].iter().all(|byte| *byte >= b' '));
        assert!(Record::decode(&bytes).expect("it reads back").command.starts_with("\u{1b}\n"));
        let bytes = record("seats", "\u{9b}31m\u{202e}").encode();
        assert!(bytes.is_ascii());
        assert_eq!(Record::decode(&bytes).expect("it reads back").command, "\u{9b}31m\u{202e}");
    }

    /// A text loses one character each time, and shows that it was cut.
    #[test]
    fn a_text_is_shortened_by_one_character() {
        let mut text = "ünü".to_owned();
        let shorter = [(); 4].map(|()| {
            shorten(&mut text);
            text.clone()
        });
        assert_eq!(shorter, ["ün…", "ü…", "…", "…"]);
    }

    /// A name of a hundred thousand characters was cut one character at a time, and everything was written
    /// again each time: five minutes, under the mutex.
    #[test]
    fn a_long_text_is_cut_at_once() {
        let cut = fits("seats", &"\u{1b}ü".repeat(1 << 20));
        assert!(cut.command.starts_with("\u{1b}ü") && cut.command.ends_with('…'));
    }

    /// Eight digits of the number of a boot are written down.
    #[test]
    fn the_number_of_a_boot_is_shortened() {
        assert_eq!(short_boot_id("01234567-89ab-cdef-0123-456789abcdef"), "01234567");
    }

    #[test]
    fn garbage_is_no_record() {
        assert_eq!(Record::decode(&[0; RECORD_SIZE]), None);
        assert_eq!(Record::decode(&[b' '; RECORD_SIZE]), None);
        assert_eq!(Record::decode(b"{\"pid\": 1}"), None);
    }
}
