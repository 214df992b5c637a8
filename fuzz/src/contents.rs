//! What a lock file says, and what a log says: all of it may be garbage. The bytes are the hint, rungate's
//! header and records, without the holes between them; two bytes in front say how much of the file is there.
//! Two slots are locked, and that alone decides who is admitted.

use std::{
    cell::OnceCell,
    fs::{self, File, OpenOptions},
    os::{fd::AsFd, unix::fs::FileExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rungate::{
    acquire::{
        acquire_context::{AcquireContext, Clock},
        acquisition::Outcome,
        grant::Grant,
        refusal::Reason,
        waiting::acquire,
    },
    judge::terms::{
        claim::{Claim, Demand, Launch},
        claim::{ElapsedFrom, Pace, Pause, TooSoon},
        keyword::Hold,
        location::FileLocation,
        slots_wanted::{Amount, Slots},
    },
    keeper::{
        file::{
            file::LockFile,
            header::Header,
            holder::holders,
            layout::{HEADER_AT, LAST_SLOT, RECORD_SIZE, record_at, slot_bytes},
            lock_path::LockPath,
            record::Record,
            scan::scan,
        },
        table::Keepers,
    },
    launch::log::event::Event,
    sys::{
        descriptor::Inherited,
        process,
        record_lock::{Mode, Ownership, try_lock},
    },
    text::escape::{is_unsafe, visible},
};

/// Rungate's header in the content.
const HEADER_SIZE: usize = 40;

/// A file of this process for the contents, gone when the thread ends.
struct Scratch {
    path: PathBuf,
    file: File,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

thread_local! {
    static SCRATCH: OnceCell<Scratch> = const { OnceCell::new() };
}

/// Reads the bytes as every kind of content, and launches over them.
pub fn judge(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        event(line);
    }
    record(data);
    SCRATCH.with(|scratch| {
        let scratch = scratch.get_or_init(|| {
            let name = format!("rungate-contents-{}-{:?}", process::own_pid(), std::thread::current().id());
            let path = std::env::temp_dir().join(name);
            let open = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
            Scratch { file: open.expect("a file for contents"), path }
        });
        write(&scratch.file, data);
        launch_over(scratch);
    });
}

fn event(line: &[u8]) {
    let Ok(event) = serde_json::from_slice::<Event>(line) else { return };
    let _ = event.moment();
    assert!(!event.line().contains(is_unsafe), "{event:?}");
    let fields = event.fields();
    assert!(fields.iter().all(|(name, _)| !name.is_empty()));
}

/// A record fits into its place whatever it says, and what was cut is only cut once.
fn record(bytes: &[u8]) {
    let Some(record) = Record::decode(bytes) else { return };
    let _ = record.since();
    let written = record.encode();
    assert!(written[..RECORD_SIZE - 1].iter().all(|byte| *byte >= b' ') && written[RECORD_SIZE - 1] == b'\n');
    let read = Record::decode(&written).unwrap_or_else(|| panic!("{record:?} does not read back"));
    assert_eq!(
        (read.pid, read.start, read.uid, read.since),
        (record.pid, record.start, record.uid, record.since)
    );
    assert_eq!((read.hold, read.supervisor, read.taken), (record.hold, record.supervisor, record.taken));
    assert_eq!(read.encode(), written);
}

fn write(file: &File, data: &[u8]) {
    let (size, rest) = data.split_at(data.len().min(2));
    let (hint, rest) = rest.split_at(rest.len().min(8));
    let (header, records) = rest.split_at(rest.len().min(HEADER_SIZE));
    let size = size.first_chunk().map_or(0, |size| u64::from(u16::from_le_bytes(*size)));
    file.set_len(0).expect("an empty file");
    for (content, offset) in [(hint, 0), (header, HEADER_AT), (records, record_at(1))] {
        file.write_all_at(content, offset).expect("a written file");
    }
    file.set_len(size).expect("a file of some size");
}

fn launch_over(Scratch { path, file }: &Scratch) {
    let locked = try_lock(file.as_fd(), &slot_bytes(1, 2), Mode::Write, Ownership::Description);
    assert_eq!(locked, Ok(true));
    look(path, 2);
    let is_full = |reason: &Reason| matches!(reason, Reason::Full(full) if full.used() == 2);
    let two = demands(path, 2, None);
    let Outcome::Refused(refusal) = launch(&two) else { panic!("a third one is let in") };
    assert!(refusal.claims().all(|refused| is_full(&refused.reason)), "it is not full");
    let length = Duration::from_secs(900);
    let pause = Pause { length, from: ElapsedFrom::Start, too_soon: TooSoon::Refuse };
    if let Outcome::Refused(refusal) = launch(&demands(path, 3, Some(pause))) {
        assert!(refusal.is_too_soon(), "it is refused, and not because it comes too soon");
    }
    let three = demands(path, 3, None);
    let Outcome::Granted(grant) = launch(&three) else { panic!("a free slot is lost") };
    wrote(path, &grant);
    drop(grant);
    look(path, 2);
}

fn look(path: &Path, used: u64) {
    let file =
        LockFile::open_to_read(&LockPath::named(path)).expect("the file opens").expect("the file is there");
    let occupancy = scan(&file).expect("the locks");
    assert_eq!(occupancy.shown(), used);
    for holder in holders(&file, &occupancy).expect("the holders") {
        let texts = [holder.host, holder.command, holder.rule].into_iter().flatten();
        assert!(texts.map(|text| visible(&text)).all(|text| !text.contains(is_unsafe)));
    }
}

/// After a launch the file says what is so, whatever it said before.
fn wrote(path: &Path, grant: &Grant<'_>) {
    assert_eq!(grant.slots()[0].slots.to_string(), "3");
    let file =
        LockFile::open_to_read(&LockPath::named(path)).expect("the file opens").expect("the file is there");
    let header = Header::read(&file).expect("a header");
    assert_eq!(header.cursor, 4);
    assert!(header.last_start.is_some());
    assert!(header.hint.is_some_and(|hint| (3..=LAST_SLOT).contains(&hint)), "{header:?}");
    let mut bytes = [0; RECORD_SIZE];
    let length = file.read_at(&mut bytes, record_at(3)).expect("a record");
    assert_eq!(Record::decode(&bytes[..length]).map(|record| record.pid), Some(process::own_pid()));
}

fn demands(path: &Path, limit: u64, pause: Option<Pause>) -> [Demand; 1] {
    let amount = Amount::plain(Slots::Number(1), limit);
    let mut file = FileLocation::named(path.to_owned(), 0o600);
    // What a policy names is believed to be a repository, whatever it holds.
    file.creation.by_hand = false;
    let claim = Claim::outside_the_policy(file, amount, "rule");
    [Demand::One(Claim { pace: Pace { pause, expiry: None }, ..claim })]
}

fn launch(demands: &[Demand]) -> Outcome<'_> {
    let inherited = Inherited::default();
    let asker = AcquireContext {
        launch: Launch { command: "x", host: "h", uid: 0, ancestors: &[], hold: Hold::Process },
        keepers: Keepers::of(&inherited),
        generation: 0,
        on_expired: &|_, _, _| {},
        clock: Clock::default(),
    };
    acquire(demands, &asker).unwrap_or_else(|error| panic!("{error}"))
}
