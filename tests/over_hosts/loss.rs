//! A host that loses the site while programs run.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::scene::Scene;
use super::{TTL, held, hosts_with, seats, waiting};
use crate::support::{Etcd, eventually, needs_etcd, state_of, tell};

fn is_alive(pid: i32) -> bool {
    state_of(pid).is_some_and(|state| state != 'Z')
}

/// "`on_lost = \"stop\"`: the program gets TERM, then KILL, so early that it is gone before the deadline."
#[test]
fn a_program_is_ended_before_others_can_get_its_slot() {
    needs_etcd!();
    let etcd = Etcd::new();
    let [one] = hosts_with(&etcd, "6s", &seats(1, "on_lost = \"stop\""), ["lab1"]);
    let time_to_the_end = |_| {
        let running = one.test().args(["run", "--", "matlab"]).spawn();
        etcd.signal(Signal::SIGSTOP);
        let stopped = Instant::now();
        eventually("the program is ended", || {
            state_of(running.pid()).is_none_or(|state| state == 'Z').then_some(())
        });
        let ended = stopped.elapsed();
        etcd.signal(Signal::SIGCONT);
        eventually("the slot is free", || (held(&one) == 0).then_some(()));
        ended
    };
    // The last read was sent before the members were stopped. An agent that does not run for some seconds is
    // late, and that it is once; one that is wrong is late each time.
    let mut ended = (0..5).map(time_to_the_end).inspect(|ended| tell(&format!("ended after {ended:?}")));
    assert!(ended.any(|ended| ended < Duration::from_millis(5800)), "late each time");
}

/// An agent that is restarted during a cut counts on: the programs of its host end before others get their
/// slots.
#[test]
fn a_restart_during_a_cut_does_not_forget_the_deadline() {
    needs_etcd!();
    let scene = Scene::new("on_lost = \"stop\"", None).with("12s");
    let ((mut one, way), (two, _way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let running = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let mut second = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    eventually("it stands in line", || (waiting(&two) == 1).then_some(()));
    way.cut(true);
    one.restart();
    second.write_line("it runs");
    assert_eq!(second.read_line(), "it runs\n");
    assert!(!is_alive(running.pid()), "two programs run");
    // What was ended stays ended when the site is back.
    way.cut(false);
    eventually("one is counted", || (held(&one) == 1 && held(&two) == 1).then_some(()));
}

/// With `hold = "tree"` everything below the launch ends before others get the slot, also programs that ignore TERM
/// and start others all the time.
#[test]
fn a_tree_that_goes_on_forking_ends_before_others_can_get_its_slot() {
    needs_etcd!();
    let scene = Scene::new("on_lost = \"stop\"", None).with("12s");
    let ((one, way), (two, _way)) = (scene.host("lab1"), scene.host("lab2"));
    one.site.script("forks", "#!/bin/sh\ntrap '' TERM\nsleep 0.02\n\"$0\" &\nexit 0\n");
    one.site.script(
        "matlab",
        "
        #!/bin/sh
        trap '' TERM
        for chain in 1 2 3 4; do \"${0%matlab}forks\" & done
        exec cat
        ",
    );
    let forks = one.site.path("bin/forks");
    Scene::meet(&[&one, &two]);
    let _tree = one.test().args(["run", "--hold", "tree", "--", "matlab"]).spawn();
    eventually("it forks", || (running(&forks) > 0).then_some(()));
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let mut second = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    eventually("it stands in line", || (waiting(&two) == 1).then_some(()));
    way.cut(true);
    second.write_line("it runs");
    assert_eq!(second.read_line(), "it runs\n");
    assert_eq!(running(&forks), 0, "what is below the first launch goes on");
}

/// How many processes there are that run this script.
fn running(script: &std::path::Path) -> usize {
    let all = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let lines = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&*script.to_string_lossy())).count()
}

/// "`keep`: the program goes on; on the first contact again the agent takes its slots anew, above the limit
/// if others have them, so that the count is honest."
#[test]
fn a_program_goes_on_and_is_counted_again() {
    needs_etcd!();
    let etcd = Etcd::new();
    let [one, two] = hosts_with(&etcd, TTL, &seats(1, ""), ["lab1", "lab2"]);
    let mut running = one.test().args(["run", "--", "matlab"]).spawn();
    // The agent is stopped rather than cut off: to others it is the same.
    one.agent.signal(Signal::SIGSTOP);
    let mut second = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    second.write_line("it runs");
    assert_eq!(second.read_line(), "it runs\n");
    one.agent.signal(Signal::SIGCONT);
    eventually("both are counted", || (held(&two) == 2 && held(&one) == 2).then_some(()));
    running.wait_for_echo();
    drop(running);
    eventually("one is counted", || (held(&two) == 1).then_some(()));
}

/// A launch that waits on a host that was taken for gone "goes on waiting": its place is there again for all to
/// see.
#[test]
fn who_waits_on_a_host_that_was_taken_for_gone_stands_in_line_again() {
    needs_etcd!();
    let scene = Scene::new("", None).with("6s");
    let ((one, _way), (two, way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let _holder = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let _first = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    eventually("it stands in line", || (waiting(&one) == 1).then_some(()));
    way.cut(true);
    eventually("its host is taken for gone", || (waiting(&one) == 0).then_some(()));
    way.cut(false);
    eventually("it stands in line again", || (waiting(&one) == 1).then_some(()));
}
