//! Everything at once: launches of several users under a random policy, with holds of all kinds, waits and
//! expiries, beside peers in the manner of exectimes, while limits change before a line that waits, processes
//! are killed, stopped and silenced, and lock files truncated, overwritten and replaced; some launches are in
//! PID namespaces of their own, and a hostile user does what `hostility.rs` says. A referee that uses no code
//! of rungate watches: see `tests/programs/referee`.
//!
//! The ordinary tests have five seconds of it. A longer one, and one from a given seed:
//!
//! ```sh
//! RUNGATE_STORM_SECONDS=60 cargo test --test tests storm_of_everything -- --nocapture
//! RUNGATE_STORM_SEED=4711 cargo test --test tests storm_of_everything -- --nocapture
//! ```

mod climate;
mod deliberate_faults;
mod hostility;
mod licences;
mod referee;
mod weather;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

use crate::support::{Account, Dice, Ending, Outcome, Site, eventually, needs_root, tell};
use climate::{COMMANDS, Climate, Firm, USERS};
use hostility::Hostility;
use referee::Referee;
use weather::{Sky, Weather};

/// A storm that is to be.
#[derive(Clone, Copy, Debug)]
struct Storm {
    seed: u64,
    longest: Duration,
    /// So many launches at once.
    workers: usize,
    sky: Sky,
    /// So many in a hundred are peers.
    peers: usize,
    is_hostile: bool,
    /// Whether limits change while somebody waits.
    is_changing: bool,
    /// So many in a hundred are in PID namespaces of their own.
    apart: usize,
    /// What is wrong with the launchers, where they were built for that.
    fault: Option<&'static str>,
    /// For how long a program runs, in milliseconds.
    work: (usize, usize),
    /// The wait and the hold of each launch; random ones where none is given.
    wait: Option<&'static str>,
    hold: Option<&'static str>,
    /// So many in a hundred leave a child behind.
    daemons: usize,
    /// For longer than its wait and this nobody is at work.
    slack: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
struct Calm {
    started: usize,
    refused: usize,
    killed: usize,
    peers: usize,
    /// What a launch should not have said, or how it should not have ended.
    odd: Vec<String>,
    weather: Weather,
    hostility: Hostility,
    /// So often the limits changed while somebody waited.
    changes: usize,
    /// What the referee saw.
    violations: Vec<String>,
    looks: u64,
}

const STORM: Storm = Storm {
    seed: 0,
    longest: Duration::from_secs(5),
    workers: 16,
    sky: Sky::Wild,
    peers: 10,
    is_hostile: true,
    is_changing: true,
    apart: 15,
    fault: None,
    work: (0, 80),
    wait: None,
    hold: None,
    daemons: 10,
    slack: Duration::from_secs(20),
};

/// A storm in which nothing starts at all is over then.
const LONGEST: Duration = Duration::from_secs(240);

#[test]
fn storm_of_everything() {
    needs_root!();
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    let seed = number("RUNGATE_STORM_SEED").unwrap_or(now.as_secs());
    let seconds = number("RUNGATE_STORM_SECONDS").unwrap_or(5);
    let storm = Storm { seed, longest: Duration::from_secs(seconds), ..STORM };
    let climate = Climate::any(&mut Dice::new(seed));
    let site = stage(&climate);
    let calm = storm.rage(&site, climate);
    tell(&format!(
        "RUNGATE_STORM_SEED={seed} RUNGATE_STORM_SECONDS={seconds}: {} started, {} refused, {} ended by a signal, {} peers; \
         {} changes; {:?}; {:?}; {} looks of the referee",
        calm.started,
        calm.refused,
        calm.killed,
        calm.peers,
        calm.changes,
        calm.weather,
        calm.hostility,
        calm.looks
    ));
    let policy = fs::read_to_string(site.path("policy.toml")).expect("the policy");
    assert!(calm.violations.is_empty(), "{}\n{policy}", calm.violations.join("\n"));
    assert!(calm.hostility.harm.is_empty(), "{}\n{policy}", calm.hostility.harm.join("\n"));
    assert!(calm.odd.is_empty(), "{}\n{policy}", calm.odd.join("\n"));
    assert!(calm.started > 0 && calm.looks > 0, "{calm:?}");
}

/// Where a storm is to rage.
fn stage(climate: &Climate) -> Site {
    let site = Site::new();
    fs::create_dir(site.path("old")).expect("a directory");
    let actor = site.helper("actor");
    for number in 0..COMMANDS {
        site.copy_of(actor.to_str().expect("a plain path"), &format!("c{number}"));
    }
    climate.begin(&site);
    Hostility::prepare(&site);
    site
}

impl Storm {
    /// Lets it rage until its time is over or, where the launchers have a fault, until the referee has seen
    /// something.
    fn rage(&self, site: &Site, mut climate: Climate) -> Calm {
        let begun = Instant::now();
        let (is_over, peers) = (AtomicBool::new(false), AtomicUsize::new(0));
        let has_started = AtomicBool::new(false);
        let mut referee = Referee::watch(site, self.slack);
        let mut calm = Calm::default();
        let least = climate.least;
        let firm = climate.firm();
        thread::scope(|scope| {
            let (is_over, peers, firm, has_started) = (&is_over, &peers, &firm, &has_started);
            let workers: Vec<_> = (0..self.workers)
                .map(|worker| {
                    scope.spawn(move || {
                        let mut dice = Dice::new(self.seed.wrapping_mul(1000) + worker as u64);
                        let mut outcomes = Vec::new();
                        while !is_over.load(Ordering::Relaxed) {
                            if dice.percent(self.peers) {
                                peer(site, &mut dice, least);
                                peers.fetch_add(1, Ordering::Relaxed);
                            } else {
                                let outcome = self.launch(site, &mut dice, firm);
                                has_started.fetch_or(outcome.ending == Ending::Status(0), Ordering::Relaxed);
                                outcomes.push(outcome);
                            }
                        }
                        outcomes
                    })
                })
                .collect();
            let hostility = self.is_hostile.then(|| {
                scope.spawn(move || {
                    Hostility::rage(site, self.seed.wrapping_mul(1000) + 998, self.fault, is_over)
                })
            });
            let mut dice = Dice::new(self.seed.wrapping_mul(1000) + 999);
            let (mut changed, mut pause) = (Instant::now(), Duration::ZERO);
            // A machine that has much else to do may not start anything in time.
            let may_end = || has_started.load(Ordering::Relaxed) || begun.elapsed() > LONGEST;
            while (begun.elapsed() < self.longest || !may_end())
                && !is_over.load(Ordering::Relaxed)
                && (self.fault.is_none() || !referee.has_seen())
            {
                sleep(Duration::from_millis(20));
                calm.weather.strike(self.sky, site, &mut dice);
                // In the middle of a line, and then not for a while: some are to grow old under one policy.
                if self.is_changing && changed.elapsed() > pause && Climate::is_waited_for(site) {
                    climate.change(site, &mut dice);
                    calm.changes += 1;
                    changed = Instant::now();
                    pause = Duration::from_secs(*dice.one_of(&[2, 3, 12]));
                }
            }
            is_over.store(true, Ordering::Relaxed);
            while self.sky != Sky::Clear && !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
                calm.weather.clear_up(site);
                sleep(Duration::from_millis(20));
            }
            if let Some(hostility) = hostility {
                calm.hostility = hostility.join().expect("the hostile user");
            }
            for outcome in workers.into_iter().flat_map(|worker| worker.join().expect("a worker")) {
                calm.count(outcome);
            }
        });
        (calm.looks, calm.violations) = referee.end();
        calm.peers = peers.into_inner();
        if self.fault.is_none() {
            nothing_is_left(site);
        }
        calm
    }

    fn launch(&self, site: &Site, dice: &mut Dice, firm: &Firm) -> Outcome {
        let hold =
            self.hold.unwrap_or_else(|| *dice.one_of(&["process", "descriptor", "supervisor", "tree"]));
        let wait = self.wait.unwrap_or_else(|| *dice.one_of(&["0s", "0s", "0s", "200ms", "1s", "3s", "25s"]));
        let seconds = match wait {
            "200ms" => "0.2",
            wait => wait.trim_end_matches('s'),
        };
        let is_supervised = matches!(hold, "supervisor" | "tree");
        let act = match dice.below(100) {
            roll if roll < self.daemons => "daemon",
            roll if roll > 90 && is_supervised => "closing",
            _ => "",
        };
        // Of these it is known what must come of them.
        let spared = if self.sky == Sky::Clear || dice.percent(30) { "yes" } else { "no" };
        let user = USERS[dice.below(USERS.len())];
        // Who is in a PID namespace sees nobody else, and is seen by all.
        let mut launch = if dice.percent(self.apart) {
            let Account { uid, gid, .. } = Account::named(user);
            let ids = [format!("--reuid={uid}"), format!("--regid={gid}")];
            let apart =
                ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "setpriv", "--init-groups"];
            site.test().through(apart).through(ids)
        } else {
            site.test().user(user)
        };
        let command = dice.below(COMMANDS);
        let place = if firm.contains(&(command, user)) { "firm" } else { "" };
        let since_boot = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("the clock since boot");
        let begun = format!("{}.{:09}", since_boot.tv_sec(), since_boot.tv_nsec());
        let variables = [
            ("SITE", "$DIR"),
            ("HOLD", hold),
            ("WAIT", seconds),
            ("ACT", act),
            ("SPARED", spared),
            ("PLACE", place),
            ("BEGUN", &begun),
        ];
        for (name, value) in variables {
            launch = launch.env(&format!("STORM_{name}"), value);
        }
        if let Some(fault) = self.fault {
            launch = launch.env("RUNGATE_WRONG", fault);
        }
        let command = format!("c{command}");
        let time = dice.between(self.work.0, self.work.1).to_string();
        launch = launch.args(["run", "--hold", hold, "--wait", wait, "--", &command, &time]);
        launch.args((!act.is_empty()).then_some(act)).outcome()
    }
}

impl Calm {
    fn count(&mut self, outcome: Outcome) {
        match outcome.ending {
            Ending::Status(0) => self.started += 1,
            Ending::Status(69 | 75 | 124) => self.refused += 1,
            // An expired one dies of the first signal that it is asked with. The first process of a PID
            // namespace cannot die of a signal as its command did; it says so with its status.
            Ending::Signal(2 | 9 | 15) | Ending::Status(130 | 137 | 143) => self.killed += 1,
            // What unshare(1) makes of a child that was killed: it unblocks what is not in the set of
            // signals.
            Ending::Status(1)
                if outcome.stderr.ends_with("unshare: sigprocmask unblock failed: Invalid argument\n") =>
            {
                self.killed += 1;
            }
            // Somebody replaces the files all the time; on a machine that stands still, somebody keeps a
            // mutex for too long.
            Ending::Status(74)
                if ["deleted and created again", "stayed locked"]
                    .iter()
                    .any(|words| outcome.stderr.contains(words)) =>
            {
                self.refused += 1;
            }
            _ => self.odd.push(format!("{:?}: {}", outcome.ending, outcome.stderr)),
        }
        if outcome.stderr.contains("panicked") {
            self.odd.push(outcome.stderr);
        }
    }
}

/// A peer that wants no more than rungate lets in at any time. Everybody may write to a file that it creates,
/// as is told to those who use both.
fn peer(site: &Site, dice: &mut Dice, limit: usize) {
    let file = format!("r{}.lock", dice.below(3));
    if !site.repository(&file).exists() {
        return;
    }
    let peer = site.test().program(site.helper("peer")).env("STORM_SITE", "$DIR");
    let limit = limit.to_string();
    let peer = peer.through(["sh", "-c", "umask 0; exec \"$@\"", "sh"]);
    peer.args([site.repository(&file)]).args([limit.as_str(), "sleep", "0.05"]).outcome();
}

/// When nobody is there any more, nothing is held.
fn nothing_is_left(site: &Site) {
    for file in fs::read_dir(site.repository("")).expect("the repositories").flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        if Path::new(&name).extension().is_none_or(|end| end != "lock") {
            continue;
        }
        eventually(&format!("{name} is free"), || {
            site.lock_between(&name, 0, i64::MAX).is_none().then_some(())
        });
    }
}
