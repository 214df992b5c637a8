//! Ends that no process of rungate saw: with the default hold the launcher became the program, so no process
//! can log its end. `rungate end --overdue`, which runs regularly, logs it with bounds: the program still ran
//! at the last sweep, and has ended by now. If the agent has seen the end, it knows the moment. Open runs are
//! saved beside the log, so that each sweep reads only new lines.

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::OsStr,
    fs::{self, DirEntry, File},
    io::{self, BufReader, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

use crate::{
    keeper::{Client, agent::message::End},
    launch::{
        log::event::{Event, Kind, LONGEST_COMMAND, micros},
        sink,
    },
    policy::{LogTarget, Policy},
    sys::{Process, accounts, process, regular_file::open_log, replaced_file},
    text::json,
    tools::logs::parsers::Reader,
};

/// The status of such an end.
const GONE: &str = "gone";

/// How much two clocks can differ for the same moment, in microseconds.
const PRECISION: u64 = 2_000_000;

/// The state that a sweep saves for the next one.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Bookmark {
    /// The file, and how much of it was read.
    file: (u64, u64),
    offset: u64,
    /// When, in microseconds since 1970.
    looked: u64,
    open: Vec<Open>,
}

/// A launch whose end is not in the log.
#[derive(Debug, Deserialize, Serialize)]
struct Open {
    pid: i32,
    uid: u32,
    command: String,
    began: u64,
    /// Whether a later launch has the same process: the next part of a script, or what the program became.
    #[serde(default)]
    is_past: bool,
    /// Its process, once a sweep has seen it: the boot, and the start in clock ticks since then. Clocks that
    /// are set do not change that.
    #[serde(default)]
    process: Option<(String, u64)>,
}

/// Searches for launches of this host that have ended, and logs their ends in each log with `replay`. If a
/// log cannot be read or written, only the bounds are lost.
pub(crate) fn look(policy: &Policy, host: &OsStr) {
    for (_, log) in policy.logs().filter(|(_, log)| log.replay) {
        if let LogTarget::File(file) = &log.to {
            let path = file.path(host);
            let _ = look_into(&path, host, |event| sink(log, host).write(event));
        }
    }
}

fn look_into(path: &Path, host: &OsStr, write: impl Fn(&Event) -> io::Result<()>) -> io::Result<()> {
    let place = bookmark_of(path);
    let mut bookmark = saved(&place).unwrap_or_default();
    if !read_on(&mut bookmark, path, &host.to_string_lossy())? {
        // The ends of its launches may be in the rest.
        return save(&place, &bookmark);
    }
    let now = SystemTime::now();
    let launches = std::mem::take(&mut bookmark.open);
    let ends = if launches.is_empty() { Vec::new() } else { seen_by_agent() };
    let mut open = Vec::new();
    for mut launch in launches {
        let seen = launch.moment(&ends);
        let between = match seen {
            Some(moment) => (moment, moment),
            // A process that becomes another program keeps its slots.
            None if launch.is_past => continue,
            None if launch.has_ended(now) => {
                (launch.began.max(bookmark.looked.min(micros(now))), micros(now))
            }
            None => {
                open.push(launch);
                continue;
            }
        };
        let mut event = Event::now(Kind::Ended, &launch.command, launch.uid, host);
        event.pid = launch.pid;
        event.status = Some(GONE.to_owned());
        event.between = Some(between);
        write(&event)?;
    }
    save(&place, &Bookmark { looked: micros(now), open, ..bookmark })
}

/// The state of the last sweep, if the caller saved it: in a directory like `/tmp`, another user can create
/// the file. Elsewhere its owner means nothing: a server may store files of root as those of another user.
fn saved(place: &Path) -> io::Result<Bookmark> {
    let file = open_log(place)?;
    let is_for_others = || fs::metadata(place.parent()?).ok().map(|directory| directory.mode() & 0o022 != 0);
    if file.metadata()?.uid() != accounts::own_uid() && is_for_others().unwrap_or(true) {
        return Err(io::Error::other("it belongs to another user"));
    }
    serde_json::from_reader(BufReader::new(file)).map_err(io::Error::other)
}

fn save(place: &Path, bookmark: &Bookmark) -> io::Result<()> {
    let text = json::line(bookmark).map_err(io::Error::other)?;
    replaced_file::replace(place, text.as_bytes(), 0o600)
        .map_err(|failure| io::Error::other(failure.to_string()))
}

/// The ends that the agent has seen, if there is one, and this is root.
fn seen_by_agent() -> Vec<End> {
    Client::connect().and_then(|mut client| client.ends()).unwrap_or_default()
}

fn bookmark_of(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".ends");
    PathBuf::from(name)
}

/// Reads the new lines; from the start, if the log is another file. Returns whether there are no more.
fn read_on(bookmark: &mut Bookmark, path: &Path, host: &str) -> io::Result<bool> {
    let file = open_log(path)?;
    let status = file.metadata()?;
    let (known, length) = ((status.dev(), status.ino()), status.len());
    if bookmark.file != known {
        // The lines between the last sweep and the rotation.
        let rotated = path.parent().and_then(|directory| fs::read_dir(directory).ok()).into_iter().flatten();
        let is_it = |entry: &DirEntry| {
            entry
                .metadata()
                .is_ok_and(|status| (status.dev(), status.ino()) == bookmark.file && status.is_file())
        };
        if let Some(before) = rotated.flatten().find(is_it)
            && let Ok(before) = open_log(&before.path())
        {
            let length = before.metadata()?.len();
            if !read_rest(bookmark, before, length, host)? {
                return Ok(false);
            }
        }
    }
    if bookmark.file != known || bookmark.offset > length {
        (bookmark.file, bookmark.offset) = (known, 0);
    }
    read_rest(bookmark, file, length, host)
}

/// How much of a log one sweep reads: users may write anything into it. The next sweep continues; the line in
/// between is lost.
const MOST_READ: u64 = 64 << 20;

/// How many launches of one process are kept.
const MOST_OF_PROCESS: usize = 100;

/// How many launches are kept: users may write the starts of any number. Of more, the oldest are dropped.
const MOST_OPEN: usize = 65_536;

/// Reads a file from where the last sweep ended. Returns whether it has reached the end.
fn read_rest(bookmark: &mut Bookmark, mut file: File, length: u64, host: &str) -> io::Result<bool> {
    file.seek(SeekFrom::Start(bookmark.offset))?;
    let left = length.saturating_sub(bookmark.offset).min(MOST_READ);
    let mut open: BTreeMap<i32, VecDeque<Open>> = BTreeMap::new();
    for launch in std::mem::take(&mut bookmark.open) {
        open.entry(launch.pid).or_default().push_back(launch);
    }
    for event in Reader::new(BufReader::new(file.take(left))) {
        let event = event?;
        if event.host != host {
            continue;
        }
        match event.event {
            Kind::Started if !event.repositories.is_empty() && event.command.len() <= LONGEST_COMMAND => {
                if open.len() > 2 * MOST_OPEN {
                    drop_oldest(&mut open);
                }
                let of_process = open.entry(event.pid).or_default();
                if let Some(before) = of_process.back_mut() {
                    before.is_past = true;
                }
                let (pid, uid, began) = (event.pid, event.uid, event.micros());
                let (command, is_past, process) = (event.command, false, None);
                of_process.push_back(Open { pid, uid, command, began, is_past, process });
                if of_process.len() > MOST_OF_PROCESS {
                    of_process.pop_front();
                }
            }
            Kind::Ended => {
                let by = event.between.map_or(event.micros(), |(_, by)| by);
                let is_it = |open: &Open| open.began <= by || event.between.is_none();
                if let Some(of_process) = open.get_mut(&event.pid) {
                    of_process.retain(|open| !is_it(open));
                }
            }
            _ => {}
        }
    }
    drop_oldest(&mut open);
    bookmark.open = open.into_values().flatten().collect();
    bookmark.offset = bookmark.offset.saturating_add(left);
    Ok(bookmark.offset >= length)
}

fn drop_oldest(open: &mut BTreeMap<i32, VecDeque<Open>>) {
    let mut began: Vec<u64> = open.values().flatten().map(|launch| launch.began).collect();
    let is_full = began.len() > MOST_OPEN;
    let last_dropped =
        is_full.then(|| *began.select_nth_unstable_by(MOST_OPEN, |one, other| other.cmp(one)).1);
    open.retain(|_, of_process| {
        of_process.retain(|launch| Some(launch.began) > last_dropped);
        !of_process.is_empty()
    });
}

impl Open {
    /// When it ended, if the agent has seen that. A script can have slots more than once; the nearest start
    /// is its own.
    fn moment(&self, ends: &[End]) -> Option<u64> {
        let distance = |end: &&End| micros(end.since).abs_diff(self.began);
        let own = ends.iter().filter(|end| end.pid == self.pid && micros(end.until) >= self.began);
        let nearest = own.filter(|end| distance(end) < PRECISION).min_by_key(distance)?;
        Some(micros(nearest.until))
    }

    /// Whether its process is gone, or another process has its number.
    fn has_ended(&mut self, now: SystemTime) -> bool {
        let Some(process) = Process::find(self.pid).filter(|process| !process.is_zombie()) else {
            return true;
        };
        let started = process::boot_id().map(|boot| (boot.to_owned(), process.started));
        if self.process.is_some() {
            return self.process != started;
        }
        let Some(age) = process.age() else { return true };
        // It may seem younger by the precision of both clocks.
        let begun = now.checked_sub(age).map_or(0, micros);
        self.process = started;
        begun > self.began.saturating_add(PRECISION)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// A line of the log: this process has started or ended at this moment.
    fn line(kind: Kind, pid: i32, moment: u64, command: &str) -> String {
        let mut event = Event::now(kind, "", 4711, OsStr::new("here"));
        (event.pid, event.decided, event.command) = (pid, Some(moment), command.to_owned());
        event.repositories = vec!["seats".to_owned()];
        json::line(&event).expect("an event") + "\n"
    }

    /// Users may write the starts of any number of processes, and lines faster than a sweep reads them. The
    /// newest starts are kept, and none is judged.
    #[test]
    fn starts_of_any_number_are_not_all_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log.jsonl");
        let mut log = File::options().append(true).create_new(true).open(&path).expect("a new file");
        let mut bookmark = Bookmark::default();
        let count = i32::try_from(MOST_OPEN).expect("a small number") + 100;
        for first in [1, 1 + count] {
            let pids = first..first + count;
            let text: String = pids
                .map(|pid| line(Kind::Started, pid, u64::try_from(pid).expect("positive"), "x"))
                .collect();
            log.write_all(text.as_bytes()).expect("room");
            assert!(read_on(&mut bookmark, &path, "here").expect("a log"));
            let pids: Vec<i32> = bookmark.open.iter().map(|open| open.pid).collect();
            assert_eq!(pids, (first + 100..first + count).collect::<Vec<i32>>());
        }
        let last = 2 * count;
        let text = line(Kind::Ended, last, u64::MAX, "x")
            + &line(Kind::Started, last + 1, u64::MAX, &"x".repeat(LONGEST_COMMAND + 1))
            + &line(Kind::Started, last + 2, u64::MAX, &"x".repeat(LONGEST_COMMAND));
        log.write_all(text.as_bytes()).expect("room");
        log.set_len(bookmark.offset + 2 * MOST_READ).expect("a sparse file");
        save(&bookmark_of(&path), &bookmark).expect("room");
        look_into(&path, OsStr::new("here"), |event| panic!("{} is judged", event.pid)).expect("a log");
        let saved = fs::read(bookmark_of(&path)).expect("the bookmark");
        let bookmark: Bookmark = serde_json::from_slice(&saved).expect("a bookmark");
        assert_eq!(bookmark.open.len(), MOST_OPEN);
        let pids: Vec<i32> = bookmark.open.iter().rev().map(|open| open.pid).take(3).collect();
        assert_eq!(pids, [last + 2, last - 1, last - 2]);
    }

    /// Processes whose ends are in the log take no place.
    #[test]
    fn ends_make_room() {
        let pid = |open: u64| i32::try_from(open).expect("a small number");
        let launch = |began: u64| Open {
            pid: pid(began),
            uid: 4711,
            command: String::new(),
            began,
            is_past: false,
            process: None,
        };
        let most = u64::try_from(MOST_OPEN).expect("a small number");
        let mut open: BTreeMap<i32, VecDeque<Open>> =
            (0..=2 * most).map(|began| (pid(began), VecDeque::new())).collect();
        for began in 1..=most {
            open.entry(pid(began)).or_default().push_back(launch(began));
        }
        drop_oldest(&mut open);
        assert!(open.keys().copied().eq(1..=pid(most)), "as many as there may be");
        open.entry(0).or_default().push_back(launch(0));
        drop_oldest(&mut open);
        assert!(open.keys().copied().eq(1..=pid(most)), "the oldest is dropped");
    }
}
