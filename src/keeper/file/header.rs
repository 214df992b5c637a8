//! The part of a lock file's content that describes the whole file: the hint of exectimes, and rungate's own
//! header. It never decides whether a launch starts. All of it may be garbage, and then it counts as absent.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::keeper::file::{
    HEADER_AT, HEADER_INDEX, LAST_SLOT, MAGIC, RepositoryError, TELLING,
    file::LockFile,
    layout::{slot_at, slot_byte},
};

/// The layout of the whole file, records included. In a newer layout, these fields stay where they are.
const VERSION: u64 = 1;

/// Where the last field is.
const LAST_END_AT: u64 = HEADER_AT + 32;

/// The hint and the header, as they were read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Header {
    /// Whether rungate has written a header before; else the bytes mean nothing.
    pub is_there: bool,
    /// The highest slot that may be locked, according to the file; none if the file is too short or the value
    /// is impossible.
    pub hint: Option<u64>,
    /// Where the next search for a free slot begins.
    pub cursor: u64,
    /// When the last program was started under this repository.
    pub last_start: Option<SystemTime>,
    /// When the last program ended, where a supervisor saw it.
    pub last_end: Option<SystemTime>,
}

impl Header {
    /// Reads both in one go.
    pub fn read(file: &LockFile) -> Result<Self, RepositoryError> {
        Ok(Self::parse(&file.read(TELLING, 0)?))
    }

    fn parse(content: &[u8]) -> Self {
        let hint = content
            .first_chunk::<8>()
            .map(|bytes| u64::from_ne_bytes(*bytes))
            .filter(|byte| (slot_byte(0)..=slot_byte(LAST_SLOT)).contains(byte))
            .map(slot_at);
        let mut header = Self { hint, ..Self::default() };
        let Some(own) = content.get(HEADER_INDEX..TELLING) else { return header };
        let (fields, _) = own.as_chunks::<8>();
        let field = |index: usize| fields.get(index).map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if own.starts_with(&MAGIC) && field(1).abs_diff(VERSION) <= 1 {
            header.is_there = true;
            header.cursor = field(2);
            header.last_start = moment(field(3));
            header.last_end = moment(field(4));
        }
        header
    }

    /// Whether the last start is the one of this moment, to the millisecond that the header keeps.
    pub fn is_of_start(&self, moment: SystemTime) -> bool {
        milliseconds(self.last_start) == milliseconds(Some(moment))
    }

    /// Writes rungate's own part, except the last end, which is written without the mutex: no process
    /// overwrites it with an older one.
    pub fn write(&self, file: &LockFile) -> Result<(), RepositoryError> {
        let mut bytes = [0; 32];
        let fields = [u64::from_le_bytes(MAGIC), VERSION, self.cursor, milliseconds(self.last_start)];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        file.write_at(&bytes, HEADER_AT)?;
        if self.is_there { Ok(()) } else { Self::forget_end(file) }
    }

    /// Writes when the last program ended. One write, so the mutex need not be held.
    pub fn write_end(file: &LockFile, moment: SystemTime) -> Result<(), RepositoryError> {
        Self::put_end(file, Some(moment))
    }

    /// Forgets when the last program ended.
    pub fn forget_end(file: &LockFile) -> Result<(), RepositoryError> {
        Self::put_end(file, None)
    }

    fn put_end(file: &LockFile, moment: Option<SystemTime>) -> Result<(), RepositoryError> {
        file.write_at(&milliseconds(moment).to_le_bytes(), LAST_END_AT)
    }

    /// Writes the hint: `slot` is the highest that may be locked.
    pub fn write_hint(file: &LockFile, slot: u64) -> Result<(), RepositoryError> {
        file.write_at(&slot_byte(slot).to_ne_bytes(), 0)
    }
}

/// Milliseconds since 1970; 0 says "never".
fn milliseconds(moment: Option<SystemTime>) -> u64 {
    moment
        .and_then(|moment| moment.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn moment(milliseconds: u64) -> Option<SystemTime> {
    (milliseconds > 0).then(|| UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds))).flatten()
}

#[cfg(test)]
mod tests {
    use tempfile::NamedTempFile;

    use super::*;
    use crate::{
        judge::terms::Creation,
        keeper::file::{LockPath, prune},
    };

    #[track_caller]
    fn case(content: &[u8], hint: Option<u64>) {
        assert_eq!(Header::parse(content), Header { hint, ..Header::default() });
    }

    #[test]
    fn a_hint_that_cannot_be_counts_as_absent() {
        case(b"", None);
        case(&[8, 0, 0], None);
        case(&0_u64.to_ne_bytes(), None);
        case(&7_u64.to_ne_bytes(), Some(0));
        case(&8_u64.to_ne_bytes(), Some(1));
        case(&(7 + LAST_SLOT).to_ne_bytes(), Some(LAST_SLOT));
        case(&(8 + LAST_SLOT).to_ne_bytes(), None);
        case(&(1_u64 << 63).to_ne_bytes(), None);
        case(&u64::MAX.to_ne_bytes(), None);
    }

    /// A launch that gives its slots back before its program ran takes back its own start, not that of
    /// another.
    #[test]
    fn a_start_is_known_by_its_millisecond() {
        let start = UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_900);
        let header = Header { last_start: moment(milliseconds(Some(start))), ..Header::default() };
        assert!(header.is_of_start(start));
        assert!(!header.is_of_start(start + Duration::from_millis(1)));
        assert!(!Header::default().is_of_start(start));
    }

    /// Headers of the version before and of the next one have the same fields. Any other header has no
    /// meaning.
    #[test]
    fn headers_of_neighbouring_versions_are_read() {
        let read = |version: u64| {
            let own = [u64::from_le_bytes(MAGIC), version, 7, 8_000, 9_000].map(u64::to_le_bytes);
            let header = Header::parse(&[&[0; HEADER_INDEX][..], own.as_flattened()].concat());
            (header.is_there, header.cursor, header.last_start, header.last_end)
        };
        let seconds = |seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        for version in [VERSION - 1, VERSION, VERSION + 1] {
            assert_eq!(read(version), (true, 7, seconds(8), seconds(9)), "{version}");
        }
        for version in [VERSION + 2, u64::MAX] {
            assert_eq!(read(version), (false, 0, None, None), "{version}");
        }
    }

    /// Other content may be in the place of the header before it is first written. It is not the end of a
    /// program.
    #[test]
    fn the_first_header_has_no_end() {
        let path = NamedTempFile::new().expect("a temporary file").into_temp_path();
        let file = prune::open(&LockPath::named(&path), &Creation::by_hand(&path, 0o600));
        let file = file.expect("an empty file can be a lock file");
        let end = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let write = || {
            Header::read(&file).and_then(|header| header.write(&file)).expect("the file can be written");
            Header::read(&file).expect("the file can be read")
        };
        Header::write_end(&file, end).expect("the file can be written");
        let first = write();
        assert_eq!((first.is_there, first.last_end), (true, None));
        // An end that was written later stays.
        Header::write_end(&file, end).expect("the file can be written");
        assert_eq!(write().last_end, Some(end));
        let begins = file.read(16, HEADER_AT).expect("the file can be read");
        assert_eq!(begins, [MAGIC, 1_u64.to_le_bytes()].concat(), "the name, and version 1");
    }

    #[test]
    fn garbage_is_no_header() {
        case(&[0xff; 5000], None);
    }
}
