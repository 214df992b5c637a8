//! Each directory is judged once: how many system calls an ordinary launch makes. Whoever adds one says
//! here what for.

use std::fs;

use crate::support::{Fault, Sabotage, Site, TracedCall, needs_root, needs_strace};

/// So many calls where the site is in a directory of `/tmp`: 40 to find and read the policy, 10 for the
/// caller and the program, the rest for two lock files.
const MOST_CALLS: usize = 119;

/// So many more for each further directory on the way.
const FOR_A_DIRECTORY: usize = 4;

/// Ten rules in a policy with two drop-ins, and two repositories in one directory.
fn site() -> Site {
    let rules = |from: usize, to: usize| -> String {
        let rule = |number| {
            format!("[[rule]]\ncommands = [\"cmd{number}\", \"tool{number}-*\"]\nacquire = [\"first\"]\n")
        };
        (from..to).map(rule).collect()
    };
    let site = Site::new();
    site.system_policy(&format!(
        r#"
        version = 1
        defaults.directory = "$DIR/repositories"

        [repository.first]
        limit = 5

        [repository.second]
        limit = 5

        [[rule]]
        commands = ["quick"]
        acquire  = ["first", "second"]

        {}
        "#,
        rules(1, 4)
    ));
    for (name, from) in [("10-a", 4), ("20-b", 7)] {
        site.system_file(
            &format!("policy.d/{name}.toml"),
            &format!("version = 1\n{}", rules(from, from + 3)),
        );
    }
    site.copy_of("/bin/true", "quick");
    site
}

/// Every call of the launcher itself, from the moment when the dynamic loader has done its part until the
/// program runs.
fn calls(site: &Site) -> Vec<TracedCall> {
    let launch = site.test().args(["run", "--", "quick"]);
    // The first one creates the lock files.
    launch.clone().status(0);
    let report = Sabotage::begin(&launch, Fault::List, &["first.lock", "second.lock"]).end(site);
    assert_eq!(report.starts.len(), 1, "{report:?}");
    let loaded = report.calls.iter().position(|call| call.name == "munmap").expect("the loader's last call");
    // The standard library of a debug build asks after each descriptor that it closes.
    report.calls.into_iter().skip(loaded + 1).filter(|call| call.name != "fcntl(F_GETFD)").collect()
}

/// A zone that is replaced while it is read is seen to have changed: its state is older than what is read of it.
#[test]
fn a_time_zone_is_looked_at_before_it_is_read() {
    needs_root!();
    let site = site();
    site.system_policy(
        "version = 1\n[repository.first]\nlimit = 5\npath = \"$DIR/first.lock\"\n[[rule]]\n\
         commands = [\"quick\"]\nwhen = [\"00:00-24:00\"]\nacquire = [\"first\"]\n",
    );
    let calls = calls(&site);
    let of_zone = calls.iter().filter(|call| call.about.ends_with("localtime"));
    let names: Vec<&str> = of_zone.map(|call| call.name.as_str()).collect();
    assert_eq!(names[..2], ["newfstatat", "openat"], "{names:?}");
}

/// Where no `/proc` lists the descriptors that the caller left open, each number is tried, but only as far as the
/// kernel's table of them goes: the limit may be a thousand million.
#[test]
fn descriptors_are_looked_for_as_far_as_there_can_be_any() {
    needs_root!();
    needs_strace!();
    let site = site();
    let trace = site.path("work/trace");
    let alone =
        "mount -t tmpfs none /proc && ulimit -n $(ulimit -Hn) && test $(ulimit -n) -ge 8192 && exec \"$@\"";
    let strace = format!("strace -qq -o {} -e trace=fstat,newfstatat", trace.display());
    let launch = site.test().args(["run", "--", "quick"]);
    let launch = launch.through(["unshare", "--mount", "sh", "-c", alone, "sh"]);
    launch.through(strace.split(' ')).status(0);
    let calls = fs::read_to_string(trace).expect("the record of the calls");
    let tried = calls.lines().filter(|call| call.contains("EBADF")).count();
    // The first end that is tried is 1024. The numbers below it are not all closed.
    assert!((1000..=1024).contains(&tried), "{tried} numbers");
}

#[test]
fn each_directory_is_judged_once_and_nothing_is_asked_twice() {
    needs_root!();
    let site = site();
    let calls = calls(&site);
    let further = site.path("").components().count().saturating_sub(3);
    let most = MOST_CALLS + FOR_A_DIRECTORY * further;
    let list = || calls.iter().map(|call| format!("{} {}\n", call.name, call.about)).collect::<String>();
    let opened =
        |end: &str| calls.iter().filter(|call| call.name == "openat" && call.about.ends_with(end)).count();
    for directory in ["/", "etc", "policy.d", "/repositories"] {
        assert_eq!(opened(directory), 1, "{directory} in\n{}", list());
    }
    assert!(calls.len() <= most, "{} calls instead of {most}:\n{}", calls.len(), list());
}
