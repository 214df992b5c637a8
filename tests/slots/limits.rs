//! A launch is admitted when `held + slots <= limit`.

use std::{fs, os::unix::fs::MetadataExt};

use crate::support::{Site, seats};

const REFUSED: &str = "rungate: matlab: not started: [..]\n...\n";

/// A lowered limit kills nobody: `used` may exceed `limit` in every listing.
#[test]
pub(crate) fn a_lowered_limit_kills_nobody_and_admits_nobody_until_use_falls_below() {
    let site = Site::with_seats(5, "", &["matlab"]);
    let matlab = site.test().args(["run", "--", "matlab"]);
    let mut holders: Vec<_> = (0..5).map(|_| matlab.spawn()).collect();
    site.policy(&seats(4, "", &["matlab"]));
    let status =
        |line: &str| site.test().args(["status"]).stdout(&format!("REPOSITORY[..]\n{line}\n")).status(0);
    status("seats[gap]5[gap]4[gap][..]");
    matlab.clone().stderr(REFUSED).status(75);
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3, 4, 5], "all of them still run");

    // Those with the low slots go first: what sits above the limit still counts.
    holders.remove(0).kill();
    status("seats[gap]4[gap]4[gap][..]");
    matlab.clone().stderr(REFUSED).status(75);
    holders.remove(0).kill();
    status("seats[gap]3[gap]4[gap][..]");
    let running = matlab.spawn();
    matlab.clone().stderr(REFUSED).status(75);
    drop(running);
    matlab.status(0);
}

/// `limit = 0` drains.
#[test]
pub(crate) fn a_limit_of_nothing_drains() {
    let site = Site::with_seats(1, "", &["matlab"]);
    let matlab = site.test().args(["run", "--", "matlab"]);
    let running = matlab.spawn();
    site.policy(&seats(0, "", &["matlab"]));
    matlab.clone().stderr(REFUSED).status(75);
    assert_eq!(site.held("seats.lock")[0].pid, running.pid());
    running.kill();
    matlab.clone().stderr(REFUSED).status(75);
    site.policy(&seats(1, "", &["matlab"]));
    matlab.status(0);
}

/// A launch that takes three of five slots leaves too little for a second one, and enough for a smaller one.
#[test]
pub(crate) fn slots_are_taken_together_or_not_at_all() {
    let site = Site::with_policy(
        r#"
        [repository.tokens]
        limit = 5

        [[rule]]
        name     = "three tokens"
        commands = ["spectre"]
        acquire  = [{ repository = "tokens", slots = 3 }]

        [[rule]]
        name     = "two tokens"
        commands = ["viewer"]
        acquire  = [{ repository = "tokens", slots = 2 }]
        "#,
    );
    site.program("spectre");
    site.program("viewer");
    let spectre = site.test().args(["run", "--", "spectre"]);
    let first = spectre.spawn();
    assert_eq!(site.held_numbers("tokens.lock"), [1, 2, 3]);
    spectre.clone().stderr("rungate: spectre: not started: [..]\n...\n").status(75);
    assert_eq!(site.held_numbers("tokens.lock"), [1, 2, 3], "the refused one kept nothing");
    let second = site.test().args(["run", "--", "viewer"]).spawn();
    assert_eq!(site.held_numbers("tokens.lock"), [1, 2, 3, 4, 5]);
    assert!(site.held("tokens.lock")[3..].iter().all(|slot| slot.pid == second.pid()));
    drop(first);
    assert_eq!(site.held_numbers("tokens.lock"), [4, 5]);
    spectre.status(0);
}

/// `ceiling = 30` lowers that for this rule's launches: only while everybody's use together, this launch
/// included, stays at or below 30.
#[test]
pub(crate) fn a_ceiling_counts_everybody_and_binds_only_its_rule() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 3

        [[rule]]
        name     = "anybody"
        commands = ["matlab"]
        acquire  = ["seats"]

        [[rule]]
        name     = "batch leaves one free"
        commands = ["batch"]
        acquire  = [{ repository = "seats", ceiling = 2 }]
        "#,
    );
    site.program("matlab");
    site.program("batch");
    let matlab = site.test().args(["run", "--", "matlab"]);
    let batch = site.test().args(["run", "--", "batch"]);
    let first = matlab.spawn();
    let second = batch.spawn();
    batch.clone().stderr("rungate: batch: not started: [..]\n...\n").status(75);
    let third = matlab.spawn();
    matlab.clone().stderr(REFUSED).status(75);
    drop((first, third));
    batch.status(0);
    drop(second);
}

/// Slots above the limit can never be available: refused at once with 78, and a fault of `policy check` where
/// it can be seen there.
#[test]
pub(crate) fn more_slots_than_the_limit_can_never_be_had() {
    let site = Site::new();
    site.program("matlab");
    site.test()
        .args([
            "run",
            "--repository",
            "$DIR/repositories/seats",
            "--limit",
            "2",
            "--slots",
            "3",
            "--",
            "matlab",
        ])
        .stderr(
            "
            rungate: matlab: not started: it needs more than it can ever get
              seats  3 slots wanted of 2
                  --limit 2, $DIR/repositories/seats
            Ask for fewer slots, or ask your administrator: rungate explain -- matlab
            ",
        )
        .status(78);
    assert_eq!(site.held("seats"), []);
}

/// Without a file the lock file is named after the command, as rules see it: two jobs of one interpreter
/// are two things.
#[test]
pub(crate) fn a_limit_of_ones_own_counts_by_the_name_for_rules() {
    let site = Site::new();
    site.program("python3");
    let job = |name: &str| site.test().args(["run", "-q", "--limit", "1", "--as", name, "--", "python3"]);
    site.script("python3", "#!/bin/sh\nexec cat\n");
    let mut first = job("a").background();
    first.wait_for_echo();
    job("a").status(75);
    job("b").status(0);
    site.test().args(["run", "-q", "--limit", "1", "--", "python3"]).status(0);
    first.close_stdin();
    first.end();
}

/// So many for each processor of the host that is online, also for a launch that may use only some of them:
/// nobody raises or lowers a limit with taskset(1).
#[test]
pub(crate) fn a_limit_by_processors_is_the_hosts() {
    let site = Site::with_policy(&seats(1, "", &["matlab"]).replace("limit = 1", "limit = \"1/cpu\""));
    site.program("matlab");
    let online =
        fs::read_to_string("/sys/devices/system/cpu/online").expect("the processors that are online");
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        1 + last.parse::<u32>().expect("a number") - first.parse::<u32>().expect("a number")
    };
    let limit: u32 = online.trim().split(',').map(count).sum();
    let shown = format!("...\nseats[gap]1[gap]0[gap]{limit}[gap]0[gap]0s ok\n...\n");
    let explain = ["explain", "--", "matlab"];
    site.test().args(explain).stdout(&shown).status(0);
    let first = online.split(|c: char| !c.is_ascii_digit()).next().expect("a processor");
    let bound = ["-c", first, site.rungate().to_str().expect("a path")].into_iter().chain(explain);
    site.test().program("/usr/bin/taskset").args(bound).stdout(&shown).status(0);
}

/// `--repository` on a non-empty file that is no repository: a slip of the hand overwrote it.
#[test]
pub(crate) fn a_file_that_is_no_repository_is_left_as_it_is() {
    let site = Site::new();
    let start = |file: &str| {
        let file = format!("$DIR/work/{file}");
        site.test().args(["run", "--repository", &file, "--limit", "1", "--", "true"])
    };
    let long = "text ".repeat(2000);
    for text in ["x", "thesis\n", "8 bytes\n", "a longer text\n", long.as_str()] {
        site.write("work/thesis", text);
        start("thesis")
            .stderr(
                "
                rungate: true: not started: $DIR/work/thesis has other content than slots, and is not changed
                Name a file that is empty or does not exist; to erase this one: truncate -s 0 $DIR/work/thesis
                ",
            )
            .status(74);
        site.test()
            .args(["exectimes", "$DIR/work/thesis", "1", "true"])
            .stderr("[..]$DIR/work/thesis has other content than slots[..]\n")
            .status(1);
        assert_eq!(fs::read_to_string(site.path("work/thesis")).expect("it is there"), text);
    }
    // What rungate or exectimes left is one, and so is an empty file, as `touch` or `install` make it.
    for (name, content) in
        [("empty", Vec::new()), ("peers", 8_u64.to_ne_bytes().to_vec()), ("old", vec![0; 8])]
    {
        fs::write(site.path(format!("work/{name}")), content).expect("a file");
        start(name).status(0);
        start(name).status(0);
    }
}

/// A claim of more than some 23,000 slots never started, because each of them was named in the environment,
/// and a million of them were a million locks and records under the mutex.
#[test]
pub(crate) fn a_million_slots_are_taken_like_one() {
    for hold in ["process", "descriptor", "supervisor", "tree"] {
        let policy = seats(1_000_000, "", &["matlab"])
            .replace(r#"["seats"]"#, r#"[{ repository = "seats", slots = "all" }]"#);
        let site = Site::with_policy(&policy);
        site.script("matlab", "#!/bin/sh\necho $RUNGATE_HELD $RUNGATE_SLOT_SEATS\nexec cat\n");
        let matlab = site.test().args(["run", "--hold", hold, "--", "matlab"]);
        let mut running = matlab.background();
        assert_eq!(running.read_line(), "seats=1-1000000 1-1000000\n", "{hold}");
        running.wait_for_echo();
        let file = fs::metadata(site.repository("seats.lock")).expect("the repository");
        assert!(file.blocks() * 512 < 1 << 16, "{hold}: {} blocks", file.blocks());
        // All of them have the one holder, with its record.
        site.test()
            .args(["list", "seats"])
            .stdout(
                "
                seats: 1000000 of 1000000 used
                [..]SLOT[..]
                1-1000000[gap][pid] [..] matlab[gap]seats
                ",
            )
            .status(0);
        matlab.clone().stderr("rungate: matlab: not started: [..]\n...\n").status(75);
        running.close_stdin();
        running.end();
        assert_eq!(site.lock_between("seats.lock", 0, i64::MAX).map(|lock| lock.l_start), None, "{hold}");
    }
}

/// Slots that somebody else's lie between: the record of each run says how many it is for.
#[test]
pub(crate) fn every_slot_of_a_launch_is_attributed_to_it() {
    let policy =
        seats(12, "", &["matlab"]).replace(r#"["seats"]"#, r#"[{ repository = "seats", slots = 8 }]"#);
    let site = Site::with_policy(&policy);
    site.script("matlab", "#!/bin/sh\necho $RUNGATE_HELD\nexec cat\n");
    // Slots 4 and 7.
    let _others = site.holder("seats.lock", ["posix", "write", "11:1", "14:1"]);
    for hold in ["process", "descriptor", "supervisor"] {
        let mut running = site.test().args(["run", "--hold", hold, "--", "matlab"]).background();
        assert_eq!(running.read_line(), "seats=1-3,5,6,8-10\n", "{hold}");
        let listed = site.test().args(["list", "seats"]).outcome().stdout;
        assert_eq!(listed.matches(" seats\n").count(), 8, "{hold}: {listed}");
        running.close_stdin();
        running.end();
        let _ = fs::OpenOptions::new().write(true).open(site.repository("seats.lock")).and_then(|file| {
            // The search for free slots begins where the last one ended: from the start again.
            std::os::unix::fs::FileExt::write_all_at(&file, &0_u64.to_le_bytes(), 4096 + 16)
        });
    }
}
