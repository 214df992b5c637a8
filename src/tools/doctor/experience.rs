//! What the log tells about the times of the policy: repositories whose runs are nearly all ended, or whose
//! launches nearly all come too soon. `rungate report` says the same from the whole log. This reads its end
//! alone, because a log may have years, and users may write anything into it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom, Take},
    path::Path,
};

use super::Finding;
use crate::{
    launch::log::{event::Kind, sink::Target},
    sys::regular_file::open_log,
    text::Show,
    tools::logs::{
        parsers::Reader,
        reading::end_of_journal,
        rendering::programs::{always_ended, always_too_soon},
        statistics::without_member,
    },
};

/// How many bytes of its end are read: several thousand events.
const MOST: u64 = 1 << 20;

/// The same for the journal, whose entries have fields of its own.
const MOST_OF_JOURNAL: u64 = 8 * MOST;

/// Of one repository.
#[derive(Default)]
struct Seen {
    started: u64,
    ended: u64,
    too_soon: u64,
}

/// The repositories of a log whose times never fit. A log that cannot be read has none.
pub(super) fn look(log: &Target) -> Vec<Finding> {
    let seen = match log {
        Target::File(path) => end(path).and_then(count),
        Target::Journal => end_of_journal(MOST_OF_JOURNAL).and_then(|bytes| count(bytes.as_slice())),
        Target::Off | Target::Syslog => Ok(BTreeMap::new()),
    };
    let seen = seen.unwrap_or_default();
    let of = |(name, seen): (&String, &Seen)| {
        let ended = always_ended(seen.ended, seen.started).filter(|_| seen.started > 0);
        let too_soon = always_too_soon(seen.too_soon, seen.started);
        let found = [("always-ended", ended), ("always-too-soon", too_soon)];
        let name = name.shown().to_string();
        found.map(|(code, found)| {
            let found = found?;
            let text = format!("{name}: {}, in the last events of the log", found.evidence);
            Some(Finding::warning(code, text).fix(format!("In the policy, for {name}: {}.", found.setting)))
        })
    };
    seen.iter().flat_map(of).flatten().collect()
}

/// The end of a file.
fn end(log: &Path) -> io::Result<Take<File>> {
    let mut file = open_log(log)?;
    // The part of a line that may come first is no event.
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(MOST)))?;
    Ok(file.take(MOST))
}

fn count(log: impl Read) -> io::Result<BTreeMap<String, Seen>> {
    let mut all: BTreeMap<String, Seen> = BTreeMap::new();
    for event in Reader::new(BufReader::new(log)) {
        let event = event?;
        for name in event.names_of_repositories() {
            let seen = all.entry(without_member(name).to_owned()).or_default();
            match event.event {
                Kind::Started => seen.started += 1,
                Kind::Expired if event.has_left() => seen.ended += 1,
                Kind::TooSoon => seen.too_soon += 1,
                _ => {}
            }
        }
    }
    Ok(all)
}
