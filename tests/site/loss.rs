//! A host that loses the site while programs run.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};

use super::scene::Scene;
use super::scenes::AT_ONCE;
use super::{LASTING, MISSED, held, hosts_with, listed, seats, status, waiting};
use crate::support::{Etcd, Host, Mishap, Running, Ways, eventually, given_time, is_alive, needs_etcd, tell};

/// Two hosts: a program on the first one has the only seat, and a launch on the second one waits for it.
pub(super) struct Pair {
    pub(super) scene: Scene,
    pub(super) one: Host,
    pub(super) two: Host,
    /// That of the first host; the other one's has to stay, too.
    pub(super) way: Ways,
    _other_way: Ways,
    pub(super) first: Running,
    pub(super) second: Running,
}

impl Pair {
    /// With what is prepared on the first host.
    pub(super) fn of(scene: Scene, prepare: impl FnOnce(&Host)) -> Self {
        let ((one, way), (two, other_way)) = (scene.host("lab1"), scene.host("lab2"));
        Scene::meet(&[&one, &two]);
        prepare(&one);
        let first = one.test().args(["run", "--", "matlab"]).spawn();
        eventually("the slot is seen", || (held(&two) == 1).then_some(()));
        let second = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
        eventually("it stands in line", || (waiting(&one) == 1 && waiting(&two) == 1).then_some(()));
        Self { scene, one, two, way, _other_way: other_way, first, second }
    }

    /// Returns when the first host has been taken for gone, and the second launch has the seat.
    pub(super) fn second_runs(&mut self) {
        self.second.wait_for_echo();
    }
}

/// The time since boot, by which agents and these programs go, in seconds.
fn now() -> f64 {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(|now| Duration::from(now).as_secs_f64()).expect("a clock")
}

/// A program that records when it gets TERM, and goes on.
const STUBBORN: &str = "
    #!/bin/sh
    trap 'read -r now rest </proc/uptime; echo $now >$DIR/term' TERM
    while :; do sleep 0.02; done
    ";

/// A program that does not end at once gets TERM when a quarter of the ttl is left, and KILL when a tenth of
/// it is: not sooner, so that it has its time, and not later than others can have its slot.
#[test]
fn a_program_gets_term_and_then_kill_before_others_can_get_its_slot() {
    needs_etcd!();
    // An agent that does not run for some time is late, and one that hears nothing of etcd for most of the
    // ttl sends TERM for an earlier deadline: that they do once. One that is wrong does so each time.
    let is_in_time = |ttl: f64| (0..3).any(|_| is_ended_in_time(ttl));
    assert!([15.0, 30.0].into_iter().any(is_in_time), "late, or by an earlier deadline, each time");
}

/// Whether that is so on a machine that is as busy as this one is now, where the ttl is so many seconds.
fn is_ended_in_time(ttl: f64) -> bool {
    let etcd = Etcd::new();
    let [one] = hosts_with(&etcd, &format!("{ttl}s"), &seats(1, "on_lost = \"stop\""), ["lab1"]);
    one.site.script("matlab", STUBBORN);
    let term = one.site.path("term");
    let running = one.test().args(["run", "--", "matlab"]).background();
    eventually("it runs", || (slots_of(&one) == Some(running.pid())).then_some(()));
    etcd.signal(Signal::SIGSTOP);
    // From here on no read can find the key of the host.
    let (before, left) = eventually("the site is missed", || {
        let (before, site) = (now(), status(&one)["site"].clone());
        site["trouble"].is_object().then(|| Some((before, site["left"].as_f64()?))).flatten()
    });
    let after = now();
    eventually("the program is ended", || (!is_alive(running.pid())).then_some(()));
    let ended = now();
    etcd.signal(Signal::SIGCONT);
    eventually("the slot is free", || (held(&one) == 0).then_some(()));
    // A machine that is busy for as long as the program has between both signals may kill it before it
    // writes. A TERM from before the deadline was asked for says nothing of this one.
    let told = fs::read_to_string(&term).ok().and_then(|text| text.trim().parse::<f64>().ok());
    let Some(told) = told.filter(|told| *told >= before) else { return false };
    // Of the deadline only this is known: that it is between these two.
    let (soonest, latest) = (before + left, after + left);
    tell(&format!("TERM {:.2} s and the end {:.2} s before the deadline", latest - told, latest - ended));
    assert!(told >= soonest - ttl / 4.0 - 0.05, "TERM comes too soon");
    assert!(ended >= soonest - ttl / 10.0 - 0.05, "KILL comes too soon");
    told < soonest - ttl / 10.0 && ended < soonest
}

/// Which process has the first slot.
fn slots_of(host: &Host) -> Option<i32> {
    listed(host)[0]["holders"][0]["pid"].as_i64().and_then(|pid| pid.try_into().ok())
}

/// How much sooner a host takes itself for lost, because clocks run unequally.
#[test]
fn the_margin_is_no_part_of_the_time_that_is_left() {
    needs_etcd!();
    let etcd = Etcd::shared();
    for (margin, most) in [("", 550.0), ("margin = \"2m\"\n", 480.0)] {
        let settings = etcd.settings(&Etcd::prefix(), "10m") + margin;
        let one = Host::new("lab1", &seats(1, ""), &settings);
        let left = eventually("it is there", || status(&one)["site"]["left"].as_f64());
        assert!(left <= most, "{left} s are left");
    }
}

/// An agent that is restarted during a cut counts on: the programs of its host end before others get their
/// slots.
#[test]
fn a_restart_during_a_cut_does_not_forget_the_deadline() {
    needs_etcd!();
    let mut pair = Pair::of(Scene::new("on_lost = \"stop\"", None).with("12s"), |_| ());
    pair.way.cut(true);
    pair.one.restart();
    pair.second_runs();
    assert!(!is_alive(pair.first.pid()), "two programs run");
    // What was ended stays ended when the site is back.
    pair.way.cut(false);
    eventually("one is counted", || (held(&pair.one) == 1 && held(&pair.two) == 1).then_some(()));
}

/// The same with another ttl, of which the others do not know. The log of the agent names what it ended.
#[test]
fn a_longer_ttl_counts_only_when_the_others_know_it() {
    needs_etcd!();
    let mut pair = Pair::of(Scene::new("on_lost = \"stop\"", None).with("12s"), |_| ());
    pair.way.cut(true);
    let settings = pair.way.settings(&pair.scene.prefix, "5m");
    pair.one.restart_with(&settings);
    pair.second_runs();
    assert!(!is_alive(pair.first.pid()), "two programs run");
    pair.one.agent.signal(Signal::SIGKILL);
    let said = pair.one.agent.end().stderr;
    let to_whom = format!(
        " to PID {} (matlab) of user 0: the site is lost, and on_lost is \"stop\"\n",
        pair.first.pid()
    );
    assert!(said.contains("rungate-agent: seats: sent SIG") && said.contains(&to_whom), "{said}");
}

/// A host that is in contact with the site: a ttl that is shorter than the time since the last contact of the
/// agent before ends nothing.
#[test]
fn a_shorter_ttl_ends_nothing() {
    needs_etcd!();
    let scene = Scene::new("on_lost = \"stop\"", None).with("10m");
    let (mut one, way) = scene.host("lab1");
    let mut running = one.test().args(["run", "--", "matlab"]).spawn();
    one.dies_after_contact_at(Duration::from_secs_f64(now() - 60.0).as_secs());
    one.restart_with(&way.settings(&scene.prefix, LASTING));
    eventually("it is there again", || (status(&one)["site"]["connected"] == true).then_some(()));
    assert!(running.answers(), "it was ended");
}

/// A check of the host's key that fails is repeated, and not left out.
#[test]
fn checks_that_fail_are_repeated_at_once() {
    needs_etcd!();
    // The program is ended where etcd is slow for seconds more.
    given_time(&["12s", "1m"], |ttl| repeats_its_checks(if ttl == "12s" { "12s" } else { "1m" }));
}

fn repeats_its_checks(ttl: &'static str) {
    let scene = Scene::new("on_lost = \"stop\"", None).with(ttl);
    let (one, way) = scene.host("lab1");
    let mut running = one.test().args(["run", "--", "matlab"]).spawn();
    let key = STANDARD.encode(format!("{}h/lab1", scene.prefix));
    // Three checks, each of three members.
    way.befall_each(format!("{{\"key\":\"{key}\",\"limit\""), [Mishap::Broken; 9]);
    eventually("all of them have failed", || way.has_befallen().then_some(()));
    eventually("it is seen again", || (status(&one)["site"]["seen"].as_f64()? < 3.0).then_some(()));
    assert!(running.answers(), "it was ended");
}

/// With `hold = "tree"` everything below the launch ends before others get the slot, also programs that
/// ignore TERM and start others all the time.
#[test]
fn a_tree_that_goes_on_forking_ends_before_others_can_get_its_slot() {
    needs_etcd!();
    let scripts = |one: &Host| {
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
    };
    let stop = "on_lost = \"stop\"\nhold = \"tree\"";
    let mut pair = Pair::of(Scene::new(stop, None).with("12s"), scripts);
    let forks = pair.one.site.path("bin/forks");
    eventually("it forks", || (running(&forks) > 0).then_some(()));
    pair.way.cut(true);
    pair.second_runs();
    assert_eq!(running(&forks), 0, "what is below the first launch goes on");
}

/// A launch below that alone uses the slot of the launch above, which has ended, ends in time as well.
#[test]
fn a_launch_below_that_keeps_the_slot_ends_before_others_can_get_it() {
    needs_etcd!();
    let scene = Scene::new("on_lost = \"stop\"", None).with("12s");
    let ((one, way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let script = format!(
        "
        #!/bin/bash
        if [ \"$1\" = below ]; then
            for n in /proc/self/fd/*; do n=${{n##*/}}; [ $n -gt 2 ] && eval \"exec $n>&-\"; done
            echo $$ >\"$DIR/below\"
            exec sleep 1000
        fi
        {} run -q -- matlab below </dev/null >/dev/null 2>&1 &
        exec cat
        ",
        one.site.rungate().display()
    );
    one.site.script("matlab", &script);
    let mut above = one.test().args(["run", "--hold", "descriptor", "--", "matlab"]).spawn();
    let below: i32 = eventually("the launch below runs", || {
        fs::read_to_string(one.site.path("below")).ok()?.trim().parse().ok()
    });
    above.close_stdin();
    eventually("the launch above has ended", || above.is_zombie().then_some(()));
    let mut second = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    eventually("it stands in line", || (waiting(&one) == 1 && held(&two) == 1).then_some(()));
    assert!(is_alive(below), "the slot is kept");
    way.cut(true);
    second.wait_for_echo();
    assert!(!is_alive(below), "two programs run");
}

/// Only processes of the program's user are ended with it: another one may have been given its descriptor.
/// The log says once that it continues. While such processes are looked for, the agent answers, however many
/// others there are.
#[test]
fn who_was_given_the_descriptor_of_a_lost_program_goes_on() {
    needs_etcd!();
    let etcd = Etcd::new();
    let keys = "on_lost = \"stop\"\nhold = \"descriptor\"";
    let [mut one] = hosts_with(&etcd, "6s", &seats(1, keys), ["lab1"]);
    one.site.script("matlab", "#!/bin/sh\nsleep 1000 </dev/null >/dev/null 2>&1 &\necho $!\nexec cat\n");
    let mut program = one.test().user("games").args(["run", "--", "matlab"]).background();
    let child: i32 = program.read_line().trim().parse().expect("a process id");
    let descriptors = fs::read_dir(format!("/proc/{}/fd", program.pid())).expect("its descriptors");
    let mut descriptors = descriptors.map(|entry| entry.expect("a descriptor").path());
    let is_fifo =
        |path: &PathBuf| fs::read_link(path).is_ok_and(|to| to.extension() == Some("fifo".as_ref()));
    let fifo = descriptors.find(is_fifo).expect("what keeps its slot");
    let words = ["-c", "exec 9>\"$0\"; exec cat", fifo.to_str().expect("a plain path")];
    let mut other = one.test().program("/bin/sh").args(words).spawn();
    // With them a look at all processes takes longer than the time between two looks.
    let many = "i=0; while [ $i -lt 6000 ]; do sleep 1000 & i=$((i+1)); done; echo ready; exec cat";
    let crowd = ["--pid", "--fork", "--kill-child", "sh", "-c", many];
    let mut crowd = one.test().program("/usr/bin/unshare").args(crowd).background();
    assert_eq!(crowd.read_line(), "ready\n");
    etcd.signal(Signal::SIGSTOP);
    eventually("it is ended", || (!is_alive(program.pid()) && !is_alive(child)).then_some(()));
    // Other processes that keep the slot are looked for again and again.
    let is_lost = || (status(&one)["site"]["left"] == 0.0).then_some(());
    eventually("it is lost", is_lost);
    etcd.signal(Signal::SIGCONT);
    other.wait_for_echo();
    one.agent.signal(Signal::SIGKILL);
    let log = one.agent.end().stderr;
    let told = format!(
        "rungate-agent: the site is lost: PID {}, which keeps slots of PID {} (matlab), was not ended, because \
         it runs as another user\n",
        other.pid(),
        program.pid()
    );
    assert_eq!(log.matches(&told).count(), 1, "{log}");
}

/// How many processes there are that run this script.
fn running(script: &std::path::Path) -> usize {
    let all = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let lines = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(&*script.to_string_lossy())).count()
}

/// `keep`: the program goes on; on the first contact again the agent takes its slots again, above the limit
/// if others have them, so that the count is honest: after a cut, and where the agent did not run. What the
/// host has is protected again.
#[test]
fn a_program_goes_on_and_is_counted_again() {
    needs_etcd!();
    let cut = |pair: &Pair, is_away| pair.way.cut(is_away);
    let stop = |pair: &Pair, is_away: bool| {
        pair.one.agent.signal(if is_away { Signal::SIGSTOP } else { Signal::SIGCONT });
    };
    for away in [&cut as &dyn Fn(&Pair, bool), &stop] {
        let mut pair = Pair::of(Scene::new("", None).with(MISSED), |_| ());
        away(&pair, true);
        pair.second_runs();
        pair.first.wait_for_echo();
        away(&pair, false);
        eventually("both are counted", || (held(&pair.two) == 2 && held(&pair.one) == 2).then_some(()));
        pair.second.kill();
        eventually("one is counted", || (held(&pair.two) == 1).then_some(()));
        pair.two.test().args(AT_ONCE).status(75);
        pair.first.signal(Signal::SIGKILL);
        eventually("none is counted", || (pair.scene.slots() == 0).then_some(()));
    }
}

/// A launch that waits on a host that was taken for gone "goes on waiting": its place is there again for all
/// to see.
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
