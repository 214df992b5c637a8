//! Who waits while the agent of its own host is killed and started again, or the host is away.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;

use super::scene::Scene;
use super::{MISSED, listed, status, waiting};
use crate::support::{Ending, Host, Mishap, Running, Ways, eventually, needs_etcd, tell};

/// A launch that waits, and says this when it runs.
fn waits(host: &Host, says: &str) -> Running {
    let mut launch = host.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    launch.write_line(says);
    launch
}

/// Two hosts: on the second one somebody holds the only seat. On the first one somebody waits, and then on
/// the second one.
struct Line {
    scene: Scene,
    one: Host,
    two: Host,
    /// That of the first host; the other one's has to stay, too.
    way: Ways,
    _other_way: Ways,
    holder: Running,
    /// On the first host, in the way of who waits there, if anybody can be.
    neighbour: Running,
    first: Running,
    second: Running,
    /// Those who wait.
    tickets: Vec<(String, u64)>,
}

impl Line {
    fn new(more: &str) -> Self {
        Self::at(Scene::new(more, None))
    }

    fn at(scene: Scene) -> Self {
        let ((one, way), (two, other_way)) = (scene.host("lab1"), scene.host("lab2"));
        Scene::meet(&[&one, &two]);
        let holder = two.test().args(["run", "--", "matlab"]).spawn();
        eventually("the slot is seen", || (scene.slots() == 1 && has_seen_slot(&one)).then_some(()));
        let neighbour = one.test().args(["run", "--", "other"]).spawn();
        let first = waits(&one, "first");
        eventually("one waits", || (scene.tickets(0).len() == 1).then_some(()));
        let second = waits(&two, "second");
        eventually("two wait", || (scene.tickets(0).len() == 2).then_some(()));
        let tickets = scene.tickets(0);
        Self { scene, one, two, way, _other_way: other_way, holder, neighbour, first, second, tickets }
    }

    /// Returns when the agent of the first host gives seats again.
    fn restart(&mut self) {
        self.one.restart();
        self.is_there_again();
    }

    fn is_there_again(&self) {
        eventually("it is there again", || (status(&self.one)["site"]["connected"] == true).then_some(()));
    }

    /// The seat is free, and whoever was in the way of the first besides has gone. Says when that was.
    fn frees_the_seat(&mut self) -> u64 {
        self.neighbour.signal(Signal::SIGKILL);
        let since = self.scene.revision();
        self.holder.signal(Signal::SIGKILL);
        since
    }

    /// Whether the first gets the seat that was taken after this revision, and when that was. None if it
    /// was passed over because it did not answer for some seconds.
    fn is_for_the_first(&self, since: u64) -> Option<(bool, u64)> {
        let (host, at) = self.scene.slot_after(since);
        if host == "lab2" && self.scene.was_away(&self.tickets[0].0) {
            tell("the first was passed over, because it did not answer");
            return None;
        }
        Some((host == "lab1", at))
    }
}

fn has_seen_slot(host: &Host) -> bool {
    listed(host).iter().any(|repository| repository["holders"][0]["host"] == "lab2")
}

/// Whoever waits on a host whose agent is killed is the first still, under the same number, unless it did not
/// answer for some seconds. `restart` says after which revision the seat is given to the next.
fn keeps_its_place(more: &str, restart: impl Fn(&mut Line) -> Option<u64>) {
    for _ in 0..5 {
        let mut line = Line::new(more);
        let Some((is_first, at)) = restart(&mut line).and_then(|since| line.is_for_the_first(since)) else {
            continue;
        };
        assert!(is_first);
        assert_eq!(line.scene.tickets(at - 1)[0].0, line.tickets[0].0);
        assert_eq!(line.first.read_line(), "first\n");
        drop(line.first);
        assert_eq!(line.second.read_line(), "second\n");
        drop(line.second);
        return eventually("nobody waits", || line.scene.tickets(0).is_empty().then_some(()));
    }
    panic!("it never answered in time");
}

/// The same, and its ticket is there all the time.
fn keeps_its_ticket(more: &str, restart: impl Fn(&mut Line)) {
    keeps_its_place(more, |line| {
        restart(line);
        let since = line.frees_the_seat();
        let (_, at) = line.is_for_the_first(since)?;
        assert_eq!(line.scene.tickets(at - 1)[0], line.tickets[0]);
        Some(since)
    });
}

/// An agent restarts within two ttls: nothing is lost, no place in the queue either, however often.
#[test]
fn who_waits_has_its_place_again() {
    needs_etcd!();
    keeps_its_ticket("", |line| {
        for _ in 0..2 {
            line.restart();
            eventually("both wait", || (waiting(&line.one) == 2 && waiting(&line.two) == 2).then_some(()));
        }
    });
}

/// The same where etcd cannot be reached when the agent is started.
#[test]
fn who_waits_has_its_place_again_when_etcd_can_be_reached() {
    needs_etcd!();
    keeps_its_ticket("", |line| {
        line.way.cut(true);
        line.one.restart();
        eventually("etcd is missed", || status(&line.one)["site"]["trouble"].is_object().then_some(()));
        line.way.cut(false);
        line.is_there_again();
    });
}

/// A repository of each host's own, beside that of the site.
const OF_HOST: &str = "
        [repository.bench]
        keeper = \"agent\"
        limit  = 1

        [[rule]]
        name     = \"bench\"
        commands = [\"matlab\", \"other\"]
        acquire  = [\"bench\"]
";

/// The same for a launch that stands in a line of its host's, too.
#[test]
fn who_waits_in_two_kinds_of_lines_has_both_places_again() {
    needs_etcd!();
    keeps_its_ticket(OF_HOST, |line| {
        let stands = |line: &Line| -> usize {
            let of_host = |repository: &&serde_json::Value| repository["repository"] == "bench";
            let listed = listed(&line.one);
            listed.iter().find(of_host).map_or(0, |bench| bench["waiting"].as_array().map_or(0, Vec::len))
        };
        assert_eq!(stands(line), 1);
        line.restart();
        eventually("it stands in both lines", || (stands(line) == 1).then_some(()));
    });
}

/// The agent dies after its launch got the slot, and before it knows. The slot is free again no sooner than
/// the launch is the first again, also where that is not heard at once.
#[test]
fn who_was_given_a_slot_unheard_is_still_the_first() {
    needs_etcd!();
    keeps_its_place("queue = 2", |line| {
        let answers = [Mishap::Unanswered].into_iter().chain([Mishap::Late; 1000]);
        line.way.befall_each(line.scene.first_slot(), answers);
        let taken = line.frees_the_seat();
        assert!(line.is_for_the_first(taken)?.0);
        assert_eq!(line.scene.tickets(0), line.tickets[1..], "its ticket goes with that");
        line.one.agent.signal(Signal::SIGKILL);
        line.way.befall(STANDARD.encode(&line.tickets[0].0), Mishap::Late);
        let since = line.scene.revision();
        line.restart();
        Some(since)
    });
}

/// The agent dies after a start was recorded, and before its launch knows: no pause begins with that.
#[test]
fn a_start_that_its_launch_never_knew_of_begins_no_pause() {
    needs_etcd!();
    let scene = Scene::new("if_elapsed = \"12h\"", None);
    let (mut one, way) = scene.host("lab1");
    eventually("it is there", || (status(&one)["site"]["connected"] == true).then_some(()));
    way.befall(scene.first_slot(), Mishap::Unanswered);
    let mut launch = waits(&one, "it runs");
    eventually("the slot is taken", || (scene.slots() == 1).then_some(()));
    one.restart();
    assert_eq!(launch.read_line(), "it runs\n");
    // With this one it begins.
    assert_eq!(one.test().args(["run", "-q", "-n", "--", "matlab"]).outcome().ending, Ending::Status(69));
}

/// The host stands still for so long that others take it for gone, and delete what it left.
#[test]
fn who_waits_on_a_host_that_comes_back_has_its_place_again() {
    needs_etcd!();
    for _ in 0..5 {
        let mut line = Line::at(Scene::new("", None).with(MISSED));
        line.one.agent.signal(Signal::SIGSTOP);
        eventually("its ticket is gone", || (line.scene.tickets(0) == line.tickets[1..]).then_some(()));
        line.one.agent.signal(Signal::SIGCONT);
        line.is_there_again();
        let is_back = eventually("it is there again", || {
            let is_back = line.scene.tickets(0)[0].0 == line.tickets[0].0;
            (is_back || line.first.is_zombie()).then_some(is_back)
        });
        if !is_back {
            tell("the first lost its patience with its agent");
            continue;
        }
        let since = line.frees_the_seat();
        let Some((is_first, _)) = line.is_for_the_first(since) else { continue };
        assert!(is_first);
        assert_eq!(line.first.read_line(), "first\n");
        return;
    }
    panic!("it never answered in time");
}

/// One that has ended has none.
#[test]
fn nobody_waits_behind_who_ended_while_its_agent_was_down() {
    needs_etcd!();
    let mut line = Line::new("");
    line.one.agent.signal(Signal::SIGKILL);
    line.first.kill();
    drop(line.holder);
    line.one.restart();
    assert_eq!(line.second.read_line(), "second\n");
    eventually("nobody waits", || line.scene.tickets(0).is_empty().then_some(()));
}

/// One that does not call is passed over, and has its place when it does.
#[test]
fn who_does_not_call_again_is_passed_over_and_keeps_its_place() {
    needs_etcd!();
    let mut line = Line::new("");
    line.one.agent.signal(Signal::SIGKILL);
    line.first.signal(Signal::SIGSTOP);
    eventually("it is stopped", || (line.first.state() == 'T').then_some(()));
    let since = line.frees_the_seat();
    line.one.restart();
    let (host, at) = line.scene.slot_after(since);
    assert_eq!(host, "lab2");
    assert_eq!(line.second.read_line(), "second\n");
    assert_eq!(line.scene.tickets(at), line.tickets[..1], "it is still the same");
    line.first.signal(Signal::SIGCONT);
    drop(line.second);
    assert_eq!(line.first.read_line(), "first\n");
    drop(line.first);
    eventually("nobody waits", || line.scene.tickets(0).is_empty().then_some(()));
}
