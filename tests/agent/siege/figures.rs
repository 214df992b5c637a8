//! The agent under each attack of one user, in figures: how long it is silent to others, how much memory it
//! takes and what that costs of a processor. It runs under a limit of memory, as its unit sets one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rungate::{
    judge::terms::claim::ExpireKill,
    keeper::agent::message::{Answer, Evict, Request, Take, Which},
};

use super::{Call, DONE, FAILED, Mob, delegated, question, site, sweeps, used_by};
use crate::{
    agent::hostility::memory_of,
    support::{Running, Site, needs_root, tell},
};

/// `MemoryMax` of the unit, in bytes.
const MEMORY: &str = "536870912";

/// Where control groups may be made, with the file that limits memory: two of the first kind of groups, or
/// one of the second.
const MEMORY_V1: (&str, &str) = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes");
const PROCESSOR_V1: &str = "/sys/fs/cgroup/cpu";
const BOTH_V2: (&str, &str) = ("/sys/fs/cgroup", "memory.max");

/// How often somebody else asks something.
const EVERY: Duration = Duration::from_millis(10);

/// What the agent may do at most: the goals.
const SILENCE: Duration = Duration::from_millis(200);
const MOST: u64 = 64 * 1024;

/// Control groups for one process, as its unit has them: with this much memory, and with a share of the
/// processors that does not depend on how many other processes there are.
pub(in crate::agent) struct Unit(Vec<PathBuf>);

impl Unit {
    pub(in crate::agent) fn of(process: &Running) -> Self {
        let group = |root: &str| {
            let group = Path::new(root).join(format!("rungate-{}", process.pid()));
            fs::create_dir(&group).expect("a control group");
            group
        };
        let is_first = Path::new(PROCESSOR_V1).is_dir();
        let (root, limit) = if is_first { MEMORY_V1 } else { BOTH_V2 };
        let memory = group(root);
        fs::write(memory.join(limit), MEMORY).expect("a limit of memory");
        let groups: Vec<PathBuf> =
            std::iter::once(memory).chain(is_first.then(|| group(PROCESSOR_V1))).collect();
        if let Some(processor) = groups.get(1) {
            // Beside it there are processes, and not the groups of all users: it would be one of thousands.
            fs::write(processor.join("cpu.shares"), "262144").expect("a share of the processors");
        }
        for group in &groups {
            fs::write(group.join("cgroup.procs"), process.pid().to_string()).expect("a process in its group");
        }
        Self(groups)
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        // They are empty once the process has ended.
        let deadline = Instant::now() + Duration::from_secs(5);
        for group in &self.0 {
            while fs::remove_dir(group).is_err() && Instant::now() < deadline {
                thread::sleep(EVERY);
            }
        }
    }
}

/// Somebody else, who asks the agent something again and again.
pub(in crate::agent) struct Others {
    is_over: Arc<AtomicBool>,
    thread: thread::JoinHandle<Duration>,
}

impl Others {
    pub(in crate::agent) fn ask(site: &Site) -> Self {
        let (mut call, is_over) = (Call::to(site), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            // What is measured is the agent, and not how long this thread waits for a processor.
            let task = fs::read_link("/proc/thread-self").expect("a thread");
            let task = task.file_name().expect("its number").to_owned();
            let renice = Command::new("renice").args(["-n", "-20", "-p"]).arg(task).output();
            assert!(renice.is_ok_and(|renice| renice.status.success()), "it comes first");
            let mut longest = Duration::ZERO;
            while !told.load(Ordering::Relaxed) {
                let begun = Instant::now();
                call.says(&Request::About);
                assert!(matches!(call.hears(), Answer::About(_)));
                longest = longest.max(begun.elapsed());
                thread::sleep(EVERY);
            }
            longest
        });
        Self { is_over, thread }
    }

    /// Returns the longest time until an answer.
    pub(in crate::agent) fn end(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("it is answered")
    }
}

/// An attack: what comes before it, and what is measured.
type Attack = fn(&Site);

fn mob(site: &Site, user: &str, calls: usize) -> Mob {
    let mut mob = Mob::of(site, user);
    mob.calls(calls);
    mob
}

fn waits_end(site: &Site, count: usize, after: Duration) {
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut mob = mob(site, "bin", count);
    mob.asks_until(question("matlab"), after);
    mob.ends_with();
}

fn one_table(site: &Site) {
    let mut holders = mob(site, "bin", 100);
    holders.says(&Request::Take(question("free")));
    holders.hears();
    let mut mob = mob(site, "bin", 100);
    mob.says(&Request::Look(vec!["free".to_owned(); 29_000]));
    mob.hears();
}

fn long_names(site: &Site) {
    for _ in 0..100 {
        let mut mob = mob(site, "bin", 10);
        mob.says(&Request::Take(Take { typed: "x".repeat(240_000).into(), ..question("free") }));
        mob.hears();
    }
}

fn many_ancestors(site: &Site) {
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let mut mob = mob(site, "bin", 40);
    mob.says(&Request::Take(Take { held: "a=1 ".repeat(62_500).into(), ..question("matlab") }));
    mob.hears();
}

fn sweep(site: &Site) {
    let _heir = sweeps::heir(site, 250);
    let mut mob = mob(site, "bin", 1);
    mob.says(&Request::Evict(Evict {
        table: "free".to_owned(),
        which: Which::Overdue(Duration::ZERO),
        grace: Duration::from_secs(600),
        kill: ExpireKill::Process,
    }));
    // Until nothing more can come of it.
    thread::sleep(Duration::from_secs(1));
}

fn costly_patterns(site: &Site) {
    let arguments = vec![delegated::ARGUMENT.into(); 5500];
    let mut mob = mob(site, "ann", 12);
    mob.says(&Request::Take(Take { arguments, ..question("matlab") }));
    assert_eq!(mob.hears(), [(FAILED, 12)].into(), "it would take too long");
}

fn ends(site: &Site) {
    let launch = [Request::Take(question("free")), Request::GiveBack(true)];
    for _ in 0..10 {
        let mut mob = mob(site, "bin", 41);
        mob.says_all(&vec![launch.clone(); 25].concat());
        mob.listens(DONE, 25);
    }
}

#[test]
#[ignore = "figures: the agent under each attack, for a machine with nothing else to do"]
fn the_agent_under_each_attack() {
    needs_root!();
    let attacks: [(&str, Attack); 9] = [
        ("2,000 waits end together", |site| waits_end(site, 2000, Duration::from_millis(2500))),
        ("250 waits end unheard", |site| waits_end(site, 250, Duration::from_secs(5))),
        ("2,000 waits end unheard", |site| waits_end(site, 2000, Duration::from_secs(5))),
        ("one table 29,000 times, by 100", one_table),
        ("1,000 names of 240 KB", long_names),
        ("40 waits with 250 KB of ancestors", many_ancestors),
        ("250 holders of one heir are ended", sweep),
        ("950 costly patterns", costly_patterns),
        ("10,250 programs end", ends),
    ];
    let mut missed = Vec::new();
    tell("attack                              silent      memory   processor");
    for (name, attack) in attacks {
        let (site, agent) = if name.ends_with("patterns") { delegated::costly(950) } else { site() };
        let unit = Unit::of(&agent);
        let (used, others) = (used_by(&agent), Others::ask(&site));
        attack(&site);
        let used = used_by(&agent).saturating_sub(used);
        let (silent, memory) = (others.end(), memory_of(&agent));
        tell(&format!("{name:<34} {:>4} ms {memory:>7} KiB {:>8} ms", silent.as_millis(), used.as_millis()));
        if silent > SILENCE || memory > MOST {
            missed.push(name);
        }
        agent.kill();
        drop(unit);
    }
    assert_eq!(missed, [""; 0], "silent for {SILENCE:?} at most, {MOST} KiB at most");
}
