//! Limits that the caller has set for itself. A launch either has its slots and starts, or it ends with a
//! reason; a program that runs without its slots is what must never be.

use std::fs;

use crate::support::{Ending, Site, Test, needs_root, seats, set_mode};

/// A site with a program that says what it was told of its slots, and needs next to nothing for that.
fn site() -> Site {
    let site = Site::with_policy(&seats(1, "", &["told"]));
    site.copy_of("/usr/bin/printenv", "told");
    site
}

fn told(site: &Site, limit: &str) -> Test {
    let through = format!("{limit}; exec \"$@\"");
    site.test().args(["run", "--", "told", "RUNGATE_HELD"]).through(["bash", "-c", &through, "bash"])
}

/// The program started with its slot, or it did not start.
#[track_caller]
fn with_its_slot_or_not_at_all(site: &Site, limit: &str) -> Ending {
    let outcome = told(site, limit).outcome();
    let started = outcome.stdout == "seats=1\n";
    assert!(started || outcome.stdout.is_empty(), "{limit}: {outcome:?}");
    assert!(started == (outcome.ending == Ending::Status(0)), "{limit}: {outcome:?}");
    assert_eq!(site.held("seats.lock"), [], "{limit}");
    outcome.ending
}

/// "A thousand inherited descriptors", of other files and of the repository itself: they stay open, and cost
/// nobody their slot.
#[test]
fn a_thousand_inherited_descriptors() {
    let site = site();
    told(&site, ":").stdout("seats=1\n").status(0);
    for file in ["/dev/null", "$DIR/repositories/seats.lock"] {
        let open = site.expand(&format!(
            "ulimit -n 1100; for ((n = 20; n < 1020; n++)); do eval \"exec $n<{file}\"; done"
        ));
        told(&site, &open).stdout("seats=1\n").status(0);
        let _holder = site.holder("seats.lock", ["posix", "write", "8:1"]);
        let outcome = told(&site, &open).outcome();
        assert_eq!(outcome.ending, Ending::Status(75), "{file}: {}", outcome.stderr);
    }
}

#[test]
fn few_descriptors() {
    let site = site();
    let endings: Vec<Ending> =
        (3..=10).map(|most| with_its_slot_or_not_at_all(&site, &format!("ulimit -n {most}"))).collect();
    assert_eq!(endings[5..], [Ending::Status(0); 3], "eight are enough: {endings:?}");
}

/// When hint or record cannot be written, refuse (74): also where the kernel would rather send SIGXFSZ.
#[test]
fn no_file_may_grow() {
    let site = site();
    told(&site, "ulimit -f 0")
        .stderr("rungate: [..]$DIR/repositories/seats.lock[..]File too large[..]\n...\n")
        .status(74);
    told(&site, ":").stdout("seats=1\n").status(0);
}

/// "A log that cannot be written stops no launch": also where the kernel would rather send SIGXFSZ. What is in
/// it stays whole.
#[test]
fn a_log_that_is_longer_than_files_may_be() {
    let site = site();
    let log = "[log]\nto = \"$DIR/work/log.jsonl\"\nreplay = true\n";
    site.policy(&format!("{log}{}", seats(1, "", &["told"])));
    told(&site, ":").stdout("seats=1\n").status(0);
    // Ten bytes less than sixteen blocks.
    let text = fs::read_to_string(site.path("work/log.jsonl")).expect("the log");
    let long = format!("{text:\n<0$}", 16 * 1024 - 10);
    site.write("work/log.jsonl", &long);
    told(&site, "ulimit -f 16").stdout("seats=1\n").stderr("...\n").status(0);
    assert_eq!(fs::read_to_string(site.path("work/log.jsonl")).expect("the log"), long);
}

/// Too little memory ends in the loader, in rungate, or not at all.
#[test]
fn little_memory() {
    let site = site();
    for kilobytes in (2_000..40_000).step_by(1_500) {
        with_its_slot_or_not_at_all(&site, &format!("ulimit -v {kilobytes}"));
    }
    told(&site, ":").stdout("seats=1\n").status(0);
}

/// Permission bits of the file, exactly, "whatever the umask".
#[test]
fn a_umask_that_leaves_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let site = site();
    told(&site, "umask 0777").stdout("seats=1\n").status(0);
    let status = fs::metadata(site.repository("seats.lock")).expect("the repository");
    assert_eq!(status.permissions().mode() & 0o7777, 0o666);
}

/// A root directory with rungate, what it is linked with and a shell, and nothing else: no `/proc`, no
/// `/etc`, no locales.
#[test]
fn a_root_directory_with_nothing_in_it() {
    needs_root!();
    let site = Site::new();
    let copy = "set -e; mkdir -p root/bin root/run; cp \"$0\" root/rungate; cp /bin/cat root/bin/cat; \
                ldd \"$0\" /bin/cat | grep -o '/[^ :]*' | sort -u | while read -r file; do \
                case $file in *.so*) mkdir -p \"root${file%/*}\"; cp \"$file\" \"root$file\";; esac; done";
    site.test().program("/bin/bash").args(["-c", copy, site.rungate().to_str().expect("a path")]).status(0);
    set_mode(&site.path("work/root"), 0o755);
    let launch = |hold: &str| {
        let words =
            ["run", "--hold", hold, "--repository", "/run/seats.lock", "--limit", "1", "--", "/bin/cat"];
        site.test().program("/usr/sbin/chroot").args(["$DIR/work/root", "/rungate"]).args(words)
    };
    let holder = launch("process").spawn();
    let outcome = launch("process").outcome();
    assert_eq!(outcome.ending, Ending::Status(75), "{}", outcome.stderr);
    drop(holder);
    launch("process").status(0);
    // A description of its own is reached by way of /proc: without it there is a reason, and no start without
    // a slot.
    let outcome = launch("descriptor").outcome();
    assert_eq!(outcome.ending, Ending::Status(74), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("/run/seats.lock"), "{}", outcome.stderr);
}
