//! Names of hosts: one that changes, and one that two hosts have.

use super::scene::Scene;
use super::{held, listed, status, waiting};
use crate::support::{Ending, Host, Running, eventually, is_alive, needs_etcd};

fn holds(host: &Host) -> Running {
    host.test().args(["run", "--", "matlab"]).spawn()
}

fn waits(host: &Host) -> Running {
    host.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background()
}

/// On which host the first slot is, as another one lists it.
fn host_of_slot(by: &Host) -> String {
    listed(by)[0]["holders"][0]["host"].as_str().unwrap_or_default().to_owned()
}

/// A host that gets another name while its agent runs is the same host until the agent is restarted, and with
/// all that it holds afterwards. Nobody else gets a slot of it meanwhile.
#[test]
fn a_host_that_is_renamed_keeps_its_slots_and_places() {
    needs_etcd!();
    let scene = Scene::new("", None).with("6s");
    let ((mut one, _way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    one.rename("lab9");
    let holder = holds(&one);
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    assert_eq!(host_of_slot(&two), "lab1", "there is no other host that could be asked for it");
    let mut first = waits(&one);
    eventually("one waits", || (scene.tickets(0).len() == 1).then_some(()));
    let tickets = scene.tickets(0);
    let second = waits(&two);
    eventually("two wait", || (scene.tickets(0).len() == 2).then_some(()));
    one.restart();
    eventually("it holds the slot by its new name", || (host_of_slot(&two) == "lab9").then_some(()));
    // Nothing is left of the host of the old name when it has been taken for gone.
    eventually("the old name is gone", || {
        let keys = scene.etcd.control(&["get", "--prefix", "--keys-only", &format!("{}g/", scene.prefix)])?;
        (!keys.contains("g/lab1\n")).then_some(())
    });
    assert!(
        [&holder, &first, &second].iter().all(|launch| is_alive(launch.pid())),
        "nobody was ended or refused"
    );
    assert_eq!((held(&two), scene.slots()), (1, 1));
    assert_eq!(scene.tickets(0)[0], tickets[0], "who came first is the first");
    drop(holder);
    first.write_line("it runs");
    assert_eq!(first.read_line(), "it runs\n");
}

/// The trouble that a host tells of.
fn trouble(host: &Host) -> String {
    status(host)["site"]["trouble"]["text"].as_str().unwrap_or_default().to_owned()
}

/// Two hosts of one name and one kernel, as containers may be: neither gets a slot, neither loses what it has,
/// and both say why.
#[test]
fn twins_get_nothing_and_lose_nothing() {
    needs_etcd!();
    let scene = Scene::new("", None).of(3).with("6s");
    let ((one, _way), (other, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &other]);
    let holder = holds(&one);
    eventually("the slot is seen", || (held(&other) == 1).then_some(()));
    let taken = scene.revision();
    let (twin, _twins_way) = scene.host("lab1");
    for host in [&one, &twin] {
        eventually("it is told", || {
            trouble(host).contains("another host calls itself lab1 too").then_some(())
        });
        // The agent says it after four seconds, and a launch waits for five.
        let outcome = eventually("the agent answers", || {
            let outcome = host.test().args(["run", "-n", "--", "matlab"]).outcome();
            Some(outcome).filter(|outcome| !outcome.stderr.contains("has not answered for"))
        });
        assert_eq!(outcome.ending, Ending::Status(74), "{outcome:?}");
        assert!(outcome.stderr.contains("another host calls itself lab1 too"), "{outcome:?}");
    }
    // For long enough for a host to be taken for gone, and for an agent to delete what it does not know.
    eventually("it lasts", || {
        // An agent that does not run for some time is not seen for that long, and seen again.
        let lasts = status(&one)["site"]["trouble"]["lasts"].as_f64()?;
        (lasts > 15.0).then_some(())
    });
    assert!(scene.has_the_slot_of(taken), "the slot is as it was");
    assert!(is_alive(holder.pid()));
    drop(holder);
    eventually("the slot is free", || (scene.slots() == 0).then_some(()));
    drop(twin);
    eventually("the other one is alone", || {
        let outcome = one.test().args(["run", "-q", "-n", "--", "matlab"]).outcome();
        (outcome.ending == Ending::Status(0)).then_some(())
    });
    assert_eq!((trouble(&one), waiting(&one)), (String::new(), 0));
}
