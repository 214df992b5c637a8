//! A hostile user in a storm: locks slots and what proves a job through descriptors that a daemon of root's
//! gets, forges records that name this daemon, and changes directories below a repository's for links while
//! launches of root's walk through them. No daemon may be ended, and nothing outside may be touched.

use std::fs;
use std::os::unix::fs::{FileExt, lchown, symlink};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::climate::SWEPT;
use crate::support::{Account, Dice, Ending, Site, Test, eventually, set_mode};

/// Who is hostile.
const WHO: &str = "daemon";

/// The slots that are locked.
const DONATED: std::ops::RangeInclusive<i64> = 5..=6;

/// Longer than `expire_after` of the repository that is swept, and a tick of the clock that processes are
/// born by.
const LONGEST: Duration = Duration::from_millis(350);

/// What was tried, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Hostility {
    /// Descriptors that were to be donated, and those that were: a launch may have had the slot.
    pub(super) offered: usize,
    pub(super) donated: usize,
    pub(super) forged: usize,
    pub(super) sweeps: usize,
    /// Launches through a directory that was changed meanwhile, and how many of them started.
    pub(super) walks: usize,
    pub(super) arrived: usize,
    /// Harm that was done.
    pub(super) harm: Vec<String>,
    fault: Option<&'static str>,
}

impl Hostility {
    /// Makes ready what it is to be directed at.
    pub(super) fn prepare(site: &Site) {
        fs::create_dir(site.path("treasure")).expect("a directory");
        site.write("treasure/seat", TREASURE);
        fs::create_dir(site.repository("farm")).expect("a directory");
        set_mode(&site.repository("farm"), 0o1777);
        site.copy_of("/bin/true", "f0");
    }

    /// Everything, one after the other, until it is over.
    pub(super) fn rage(site: &Site, seed: u64, fault: Option<&'static str>, is_over: &AtomicBool) -> Self {
        let mut dice = Dice::new(seed);
        let mut hostility = Self { fault, ..Self::default() };
        while !is_over.load(Ordering::Relaxed) {
            hostility.donate(site, &mut dice);
            hostility.lead_astray(site);
            // Of a fault on purpose enough was seen.
            if fault.is_some() && !hostility.harm.is_empty() {
                is_over.store(true, Ordering::Relaxed);
            }
        }
        hostility
    }

    /// A test that runs rungate as it is in this storm.
    fn test(&self, site: &Site) -> Test {
        let test = site.test();
        match self.fault {
            Some(fault) => test.env("RUNGATE_WRONG", fault),
            None => test,
        }
    }

    /// A daemon that holds a stranger's descriptor, and is named by a record, answers after a sweep as
    /// before.
    fn donate(&mut self, site: &Site, dice: &mut Dice) {
        let path = site.repository(&swept());
        if !path.exists() {
            return;
        }
        let forger = site.helper("forger");
        let slot = *dice.one_of(&DONATED.collect::<Vec<i64>>());
        let socket = format!("$DIR/work/socket{}", self.offered);
        self.offered += 1;
        let born = Instant::now();
        let mut daemon = site.test().program(&forger).args(["serve", &socket]).background();
        assert_eq!(daemon.read_line(), "ready\n");
        // A guardian of each kind that a launch can have, taken long ago.
        let guardian = (1_i64 << 62) + (1 << 60) + (slot << 36) + 4 + *dice.one_of(&[0, 1, 2, 3]);
        let give = site.test().user(WHO).program(&forger).args(["give", &socket]).args([&path]);
        let given = give.args([format!("{}:1", 7 + slot), format!("{guardian}:1")]).outcome();
        if given.ending != Ending::Status(0) {
            // Somebody has this slot, or has replaced the file.
            daemon.kill();
            return;
        }
        assert_eq!(daemon.read_line(), "received\n");
        self.donated += 1;
        self.forged += usize::from(forge(site, slot, daemon.pid(), dice));
        // Nobody is ended who is younger than the holders of the policy may get.
        eventually("the daemon is old enough", || (born.elapsed() > LONGEST).then_some(()));
        let swept = self.test(site).args(["end", "--overdue"]).outcome();
        self.sweeps += 1;
        if swept.stderr.contains("panicked") || !matches!(swept.ending, Ending::Status(0 | 71 | 74)) {
            self.harm.push(format!("a sweep ended with {:?}: {}", swept.ending, swept.stderr));
        }
        if daemon.is_zombie() {
            self.harm.push(format!("a daemon was ended: {:?}\n{}", daemon.end().ending, swept.stderr));
            return;
        }
        daemon.wait_for_echo();
        daemon.kill();
    }

    /// Launches, while what is on their way is a directory now and a link then.
    fn lead_astray(&mut self, site: &Site) {
        let (way, other) = (site.repository("farm/f0"), site.repository("farm/.f0"));
        let hostile = Account::named(WHO);
        fs::create_dir(&way).expect("nobody else makes it");
        set_mode(&way, 0o1777);
        symlink("../../treasure", &other).expect("a new link");
        for path in [&way, &other] {
            lchown(path, Some(hostile.uid), Some(hostile.gid)).expect("give it to the hostile user");
        }
        let is_done = AtomicBool::new(false);
        let outcomes = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let (way, other) = ((rustix::fs::CWD, &way), (rustix::fs::CWD, &other));
                    let exchange = rustix::fs::RenameFlags::EXCHANGE;
                    rustix::fs::renameat_with(way.0, way.1, other.0, other.1, exchange)
                        .expect("exchange them");
                    thread::yield_now();
                }
            });
            let launch = |user: &&str| self.test(site).user(user).args(["run", "--", "f0"]).outcome();
            let outcomes: Vec<_> = ["root", "games", "root", "root"].iter().map(launch).collect();
            is_done.store(true, Ordering::Relaxed);
            outcomes
        });
        for outcome in outcomes {
            self.walks += 1;
            match outcome.ending {
                Ending::Status(0) => self.arrived += 1,
                Ending::Status(74 | 75) => {}
                _ => self.harm.push(format!("{:?}: {}", outcome.ending, outcome.stderr)),
            }
        }
        for path in [&way, &other] {
            if fs::remove_file(path).is_err() {
                fs::remove_dir_all(path).expect("a directory");
            }
        }
        let names: Vec<_> = fs::read_dir(site.path("treasure")).expect("it is there").flatten().collect();
        let text = fs::read_to_string(site.path("treasure/seat")).unwrap_or_default();
        if names.len() != 1 || text != TREASURE {
            self.harm.push(format!("a treasure was touched: {names:?} {text:?}"));
            site.write("treasure/seat", TREASURE);
        }
    }
}

const TREASURE: &str = "of root\n";

fn swept() -> String {
    format!("r{SWEPT}.lock")
}

/// Writes a record of this slot that names the daemon, made of one that exists, if there is one.
fn forge(site: &Site, slot: i64, daemon: i32, dice: &mut Dice) -> bool {
    let Ok(file) = fs::File::options().read(true).write(true).open(site.repository(&swept())) else {
        return false;
    };
    let place = |slot: i64| 8192 + 256 * (slot.unsigned_abs() - 1);
    let mut bytes = [0; 256];
    let record = (1..=6).find_map(|slot| {
        file.read_exact_at(&mut bytes, place(slot)).ok()?;
        serde_json::from_slice::<Value>(&bytes).ok().filter(Value::is_object)
    });
    let Some(mut record) = record else { return false };
    let stat = fs::read_to_string(format!("/proc/{daemon}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    record["pid"] = json!(daemon);
    record["start"] = json!(fields.split(' ').nth(22 - 3).and_then(|field| field.parse::<u64>().ok()));
    record["hold"] = json!(*dice.one_of(&["process", "descriptor", "supervisor", "tree"]));
    record["since"] = json!(1_000_000_000_000_u64);
    record["taken"] = json!(1);
    let text = format!("{:<255}\n", record.to_string());
    text.len() == 256 && file.write_all_at(text.as_bytes(), place(slot)).is_ok()
}
