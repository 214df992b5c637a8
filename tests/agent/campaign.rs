//! 2,000 waiters of 50 users, limit 8, programs of 50 ms: how many of the starts that are possible there
//! are, what that takes of a processor, and how long the agent is silent at most. Each waiter speaks as a
//! launcher does: it shows that it lives a second after it has heard last, and asks again as soon as its
//! program has ended.

use std::{
    env, fs,
    time::{Duration, Instant},
};

use rungate::keeper::agent::message::{Request, Take};

use super::{
    hostility::memory_of,
    siege::{
        figures::{Others, Unit},
        question, used_by,
    },
};
use crate::support::{Running, Site, needs_root, set_mode, tell};

const USERS: u32 = 50;
const LIMIT: u32 = 8;
const PROGRAM: Duration = Duration::from_millis(50);

/// So many processes of one user, each with one launch after the other, for so many seconds from the moment
/// at which it is told to begin. Tells how many programs were started, how many launches were refused or hung
/// up on, and the longest time, in milliseconds, until it was answered: at first, when all ask in the same
/// moment, and after that.
const LAUNCHES: &str = r#"
import os, socket, sys, time
ask, start, end, beat = [open(f"{sys.argv[1]}.{name}", "rb").read() for name in ("ask", "start", "end", "beat")]
count, seconds, program = int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
print("ready", flush=True)
sys.stdin.readline()
over = time.monotonic() + seconds
def launches():
    starts = refused = 0
    longest, first = 0.0, None
    c = None
    while time.monotonic() < over:
        if c is None:
            c, got, said = socket.socket(socket.AF_UNIX), b"", time.monotonic()
            c.connect("/run/rungate-agent/socket")
            c.sendall(ask)
        # It shows that it lives a second after it has heard last, and else it waits for an answer.
        c.settimeout(max(0.001, min(1.0 if said is None else seconds, over - time.monotonic())))
        try:
            part = c.recv(1 << 20)
            if not part:
                raise OSError
        except TimeoutError:
            if said is None and time.monotonic() < over:
                said = time.monotonic()
                c.sendall(beat)
            continue
        except OSError:
            refused, c = refused + 1, None
            continue
        got += part
        while len(got) >= 4 and len(got) >= 4 + (size := int.from_bytes(got[:4], "little")):
            kind, got = got[5], got[4 + size:]
            if kind in (1, 2, 3, 7) and said is not None:
                took, said = time.monotonic() - said, None
                first, longest = (took, 0.0) if first is None else (first, max(longest, took))
            if kind == 1:
                starts += 1
                c.settimeout(None)
                c.sendall(start)
                time.sleep(program)
            elif kind in (2, 7):
                refused += 1
                time.sleep(1)
            if kind in (1, 2, 7):
                said = time.monotonic()
                c.sendall(end + ask)
    if said is not None:
        longest = max(longest, time.monotonic() - said)
    return starts, refused, int(1000 * longest), int(1000 * (first or 0))
ours, theirs = os.pipe()
for _ in range(count):
    if os.fork() == 0:
        os.write(theirs, ("%d %d %d %d\n" % launches()).encode())
        os._exit(0)
os.close(theirs)
told = [[int(word) for word in line.split()] for line in os.fdopen(ours)]
print(sum(of[0] for of in told), sum(of[1] for of in told), max(of[2] for of in told), max(of[3] for of in told), flush=True)
"#;

#[test]
#[ignore = "a campaign: two thousand waiters of fifty users"]
fn two_thousand_waiters_of_fifty_users_are_served() {
    needs_root!();
    let number = |name: &str, usual| env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    let seconds: u32 = number("RUNGATE_CAMPAIGN_SECONDS", 30);
    let waiters = number("RUNGATE_CAMPAIGN_WAITERS", 2000);
    let (site, agent) = Site::with_agent(&format!(
        "
        repository.seats = {{ limit = {LIMIT}, keeper = \"agent\" }}
        [[rule]]
        name     = \"seats\"
        commands = [\"matlab\"]
        acquire  = [\"seats\"]
        "
    ));
    let unit = Unit::of(&agent);
    let ask = Request::Take(Take { arguments: vec!["input".into()], ..question("matlab") });
    for (name, request) in [
        ("ask", &ask),
        ("start", &Request::Started),
        ("end", &Request::GiveBack(true)),
        ("beat", &Request::Beat),
    ] {
        let file = site.path(format!("said.{name}"));
        fs::write(&file, request.frame().expect("it is short")).expect("write what is said");
        set_mode(&file, 0o644);
    }
    let users: Vec<String> = (0..USERS).map(|number| format!("user{number}")).collect();
    for user in &users {
        site.account(user, &[]);
    }
    let launches = |user: &String| {
        let numbers = [(waiters / USERS).to_string(), seconds.to_string(), PROGRAM.as_secs_f64().to_string()];
        let test = site.test().user(user).program("/usr/bin/python3").args(["-c", LAUNCHES, "$DIR/said"]);
        let mut launches = test.args(numbers).background();
        assert_eq!(launches.read_line(), "ready\n");
        launches
    };
    let mut all: Vec<Running> = users.iter().map(launches).collect();
    let (begun, used) = (Instant::now(), used_by(&agent));
    let others = Others::ask(&site);
    for launches in &mut all {
        launches.write_line("begin");
    }
    let told: Vec<Vec<u32>> = all
        .iter_mut()
        .map(|launches| {
            launches.read_line().split_whitespace().map(|word| word.parse().expect("a number")).collect()
        })
        .collect();
    let (took, used) = (begun.elapsed(), used_by(&agent).saturating_sub(used));
    let others = others.end().as_millis();
    let sum = |at: usize| told.iter().map(|figures| figures[at]).sum::<u32>();
    let [longest, first] = [2, 3].map(|at| told.iter().map(|figures| figures[at]).max().unwrap_or(0));
    let fewest = told.iter().map(|figures| figures[0]).min().unwrap_or(0);
    let possible = f64::from(LIMIT) * f64::from(seconds) / PROGRAM.as_secs_f64();
    let share = f64::from(sum(0)) / possible;
    let cores = used.as_secs_f64() / took.as_secs_f64();
    tell(&format!(
        "{waiters} waiters: {} starts of {possible} possible in {seconds} s ({share:.2}), {fewest} of the user who had fewest, {} refused; \
         {cores:.2} of a processor, {} KiB, silent for {longest} ms at most, for {first} ms when all asked at once, and for {others} ms to others",
        sum(0),
        sum(1),
        memory_of(&agent)
    ));
    let is_alive = !agent.is_zombie();
    agent.kill();
    drop(unit);
    assert!(is_alive && sum(1) == 0, "it lives, and refuses nobody");
}
