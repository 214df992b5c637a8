//! `linger` at the site: a slot stays taken on all hosts for some time after its program has ended, and goes
//! to the same user on the same host before it goes to others.

use std::fs;

use nix::sys::signal::Signal;

use super::scene::{Scene, value};
use super::scenes::AT_ONCE;
use super::{MISSED, REFUSED, held, listed, seats, status, waiting};
use crate::support::{Ending, Etcd, Host, Mishap, Running, Test, eventually, given_time, needs_etcd};

fn matlab(host: &Host, user: &str) -> Test {
    host.test().user(user).args(["run", "--", "matlab"])
}

#[track_caller]
fn ends(mut running: Running) {
    running.close_stdin();
    running.end();
}

/// How many holders an agent has written down, ended ones included.
fn written(host: &Host) -> usize {
    fs::read_dir(host.site.agent_state().join("holdings")).expect("what is written down").count()
}

/// The only holder on a host, as another one lists it.
fn command(host: &Host) -> String {
    listed(host)[0]["holders"][0]["command"].as_str().unwrap_or_default().to_owned()
}

/// Others find it taken on every host, also where its agent was started again, or did not see the end. The
/// same user takes it over on the same host: it is one slot.
#[test]
fn a_slot_stays_taken_for_its_user() {
    needs_etcd!();
    let scene = Scene::new("linger = \"1h\"", None);
    let ((mut one, _way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let taken = |one: &Host| {
        eventually("others see that it has ended", || (command(&two) == "matlab (ended)").then_some(()));
        for host in [one, &two] {
            matlab(host, "backup").stderr(REFUSED).status(75);
        }
        // Its user, on another host.
        matlab(&two, "games").stderr(REFUSED).status(75);
    };
    let running = matlab(&one, "games").spawn();
    one.agent.signal(Signal::SIGKILL);
    ends(running);
    one.restart();
    taken(&one);
    let again = matlab(&one, "games").spawn();
    eventually("others see who has it", || (command(&two) == "matlab").then_some(()));
    // It is for one program at a time.
    matlab(&one, "games").stderr(REFUSED).status(75);
    ends(again);
    taken(&one);
    one.restart();
    taken(&one);
    let _again = matlab(&one, "games").spawn();
    assert_eq!(scene.slots(), 1);
}

/// When the time is over, a waiting launch of any host gets it, also if the agent was started again meanwhile.
#[test]
fn it_ends() {
    needs_etcd!();
    for restarts in [false, true] {
        let scene = Scene::new("linger = \"2s\"", None);
        let ((mut one, _way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
        Scene::meet(&[&one, &two]);
        ends(matlab(&one, "games").spawn());
        let mut waits = two.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
        if restarts {
            one.restart();
        }
        waits.wait_for_echo();
        ends(waits);
        eventually("nothing is left", || (scene.slots() == 0 && written(&one) == 0).then_some(()));
    }
}

/// The time of a program that has ended is over while another one of the same user has the slot: it stays.
#[test]
fn a_slot_that_was_taken_over_stays() {
    needs_etcd!();
    given_time(&["1s", "5s", "20s"], stays_once_it_was_taken_over);
}

fn stays_once_it_was_taken_over(linger: &str) {
    let scene = Scene::new(&format!("linger = \"{linger}\""), None);
    let ((one, _way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    ends(matlab(&one, "games").spawn());
    let since = scene.revision();
    let mut again = matlab(&one, "games").spawn();
    eventually("the first one is forgotten", || (written(&one) == 1).then_some(()));
    matlab(&two, "backup").stderr(REFUSED).status(75);
    // At no moment it was free.
    for revision in since..=scene.revision() {
        assert_eq!(scene.told(revision)["kvs"].as_array().map_or(0, Vec::len), 1, "at {revision}");
    }
    assert!(again.answers());
}

/// No launch takes over a slot whose key is being deleted because the time is over: it takes a new one after
/// that.
#[test]
fn a_slot_that_is_being_deleted_is_not_taken_over() {
    needs_etcd!();
    given_time(&["1s", "5s", "20s"], is_not_taken_over_any_more);
}

fn is_not_taken_over_any_more(linger: &str) {
    let scene = Scene::new(&format!("linger = \"{linger}\""), None);
    let (one, way) = scene.host("lab1");
    Scene::meet(&[&one]);
    ends(matlab(&one, "games").spawn());
    eventually("it is written that it has ended", || {
        let told = scene.told(0);
        let key = told["kvs"].get(0)?;
        value(key)["lingers_until"].is_u64().then_some(())
    });
    way.befall(scene.first_slot(), Mishap::Late);
    eventually("the deletion is under way", || way.has_befallen().then_some(()));
    let mut again = one.test().user("games").args(["run", "-q", "-w", "1h", "--", "matlab"]).background();
    again.wait_for_echo();
    let since = scene.revision();
    way.ask_late();
    eventually("all that was asked is done", || way.has_been_asked_late().then_some(()));
    for revision in since..=scene.revision() {
        assert_eq!(scene.told(revision)["kvs"].as_array().map_or(0, Vec::len), 1, "at {revision}");
    }
    assert!(again.answers());
}

/// A slot without a program is put back after a restore, and until then nobody is let in.
#[test]
fn it_is_put_back_after_a_restore() {
    needs_etcd!();
    let etcd = Etcd::new();
    let settings = etcd.settings(&Etcd::prefix(), "9s");
    let [one, two] = ["lab1", "lab2"].map(|name| Host::new(name, &seats(1, "linger = \"1h\""), &settings));
    Scene::meet(&[&one, &two]);
    let saved = etcd.save();
    ends(matlab(&one, "games").spawn());
    eventually("the end is seen", || (command(&two) == "matlab (ended)").then_some(()));
    etcd.restore(&saved, "another");
    eventually("slots are given again", || {
        let outcome = two.test().args(AT_ONCE).outcome();
        assert_ne!(outcome.ending, Ending::Status(0), "one too many");
        let is_open = status(&two)["site"]["connected"] == true;
        (outcome.ending == Ending::Status(75) && is_open && command(&two) == "matlab (ended)").then_some(())
    });
    // The other host may take longer until it gives slots again.
    let mut again = one.test().user("games").args(["run", "-q", "-w", "1h", "--", "matlab"]).background();
    again.wait_for_echo();
    eventually("one is counted", || (held(&two) == 1).then_some(()));
}

/// Every host knows until when it stays, and root of any host frees it. Nobody else does.
#[test]
fn root_of_any_host_frees_it() {
    needs_etcd!();
    let scene = Scene::new("linger = \"1h\"", None);
    let ((mut one, _way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let running = matlab(&one, "games").spawn();
    let who = format!("PID {} (matlab (ended))", running.pid());
    ends(running);
    eventually("others see that it has ended", || {
        listed(&two)[0]["holders"][0]["lingers_until"].is_string().then_some(())
    });
    let end = |user: &str| two.test().user(user).args(["end", "--yes", "seats", "slot:1"]);
    end("games")
        .stderr(&format!(
            "rungate: seats: {who} cannot be ended: the slot lingers until [..] (linger)\n...\n"
        ))
        .status(71);
    // Its host is away, and when it is back nothing is requested any more.
    one.agent.signal(Signal::SIGKILL);
    let asked =
        format!("rungate: seats: slot 1 of {who} on lab1 still lingers: its host was asked to free it\n");
    end("root").stderr(&asked).status(71);
    let notices = format!("{}e/", scene.prefix);
    eventually("the request is withdrawn", || {
        scene.etcd.control(&["get", "--prefix", "--keys-only", &notices])?.trim().is_empty().then_some(())
    });
    one.restart();
    matlab(&one, "backup").stderr(REFUSED).status(75);
    let mut waits =
        two.test().user("backup").args(["run", "-q", "--wait", "1h", "--", "matlab"]).background();
    waits.write_line("it has it");
    eventually("it waits", || (waiting(&two) == 1).then_some(()));
    end("root").stderr(&format!("rungate: seats: freed slot 1 of {who} on lab1\n")).status(0);
    assert_eq!(waits.read_line(), "it has it\n");
    assert_eq!((scene.slots(), written(&one)), (1, 0));
    one.agent.signal(Signal::SIGKILL);
    let log = one.agent.end().stderr;
    let freed = "rungate-agent: seats: freed slot 1, which lingered, at the request of root on lab2\n";
    assert!(log.contains(freed), "{log}");
}

/// A host that dies frees its other slots as ever, and those that linger only after that time.
#[test]
fn it_outlasts_its_host() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let policy = |linger: &str| {
        let other = "[repository.other]\nkeeper = \"site\"\nlimit = 1\n\n[[rule]]\ncommands = [\"other\"]\nacquire = [\"other\"]\n";
        format!("{}\n{other}", seats(1, &format!("linger = \"{linger}\"")))
    };
    for (linger, stays) in [("1h", true), ("1s", false)] {
        let settings = etcd.settings(&Etcd::prefix(), MISSED);
        let [one, two] = ["lab1", "lab2"].map(|name| Host::new(name, &policy(linger), &settings));
        Scene::meet(&[&one, &two]);
        let _running = matlab(&one, "games").spawn();
        let _other = one.test().args(["run", "--", "other"]).spawn();
        eventually("both are seen", || (held(&two) == 2).then_some(()));
        one.agent.signal(Signal::SIGKILL);
        let mut waits = two.test().args(["run", "-q", "--wait", "forever", "--", "other"]).background();
        waits.wait_for_echo();
        if stays {
            matlab(&two, "backup").stderr(REFUSED).status(75);
        } else {
            let waits = ["run", "-q", "--wait", "forever", "--", "matlab"];
            two.test().args(waits).background().wait_for_echo();
        }
    }
}
