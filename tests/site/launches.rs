//! Launches: one limit, one line and one list for all hosts.

use nix::sys::signal::Signal;

use super::scene::Scene;
use super::{REFUSED, held, hosts, seats, status, waiting};
use crate::support::{Ending, Etcd, Host, eventually, needs_etcd, needs_root};

/// Refusals name holders on other hosts.
#[test]
fn a_limit_holds_over_hosts() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(2, ""), ["lab1", "lab2"]);
    let first = one.test().user("games").args(["run", "--", "matlab"]).spawn();
    let _second = two.test().user("nobody").args(["run", "--", "matlab"]).spawn();
    eventually("both hosts see both", || (held(&one) == 2 && held(&two) == 2).then_some(()));
    one.test()
        .user("games")
        .args(["run", "--", "matlab"])
        .stderr(
            r#"
            rungate: matlab: not started: the limit is reached
              seats  2 of 2 used
                  rule "seats", /etc/rungate/policy.toml:[..]
                  PID [..] games matlab, since [..]
                  PID [..] nobody matlab on lab2, since [..]
            Close one of yours, or wait in the queue: rungate run --wait 30m -- matlab
            To see why: rungate explain -- matlab
            To end the oldest of yours: rungate end seats [pid]
            "#,
        )
        .status(75);
    let explained = one.test().args(["explain", "--", "matlab"]).outcome().stdout;
    let full = explained.lines().find(|line| line.contains("FULL: PID ")).expect(&explained);
    assert!(full.contains("@lab2") && !full.contains("@lab1"), "{full}");
    drop(first);
    // What ended here is free here at once.
    one.test().user("games").args(["run", "--", "matlab"]).status(0);
}

/// A repository for each counts over hosts as well, and by the same names.
#[test]
fn each_user_has_a_limit_over_all_hosts() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(1, "per = \"user\""), ["lab1", "lab2"]);
    let _first = one.test().user("games").args(["run", "--", "matlab"]).spawn();
    let _second = two.test().user("nobody").args(["run", "--", "matlab"]).spawn();
    eventually("both hosts see both", || (held(&one) == 2 && held(&two) == 2).then_some(()));
    two.test().user("games").args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
}

/// The line is one line: whoever came first is served first, on whichever host.
#[test]
fn the_line_goes_over_hosts() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two, three] = hosts(&etcd, &seats(1, ""), ["lab1", "lab2", "lab3"]);
    let holder = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1 && held(&three) == 1).then_some(()));
    let wait = ["run", "-q", "--wait", "forever", "--", "matlab"];
    let mut first = two.test().args(wait).background();
    first.write_line("first");
    eventually("one waits", || (waiting(&one) == 1 && waiting(&three) == 1).then_some(()));
    let mut second = three.test().args(wait).background();
    second.write_line("second");
    eventually("two wait", || (waiting(&two) == 2).then_some(()));
    // A newcomer does not pass them, though it is where the slot becomes free.
    drop(holder);
    assert_eq!(first.read_line(), "first\n");
    eventually("the next holder is seen", || (held(&one) == 1 && waiting(&one) == 1).then_some(()));
    one.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
    drop(first);
    assert_eq!(second.read_line(), "second\n");
}

/// What one transaction of etcd cannot take is refused with the reason, and nothing is taken.
#[test]
fn a_launch_of_more_repositories_than_etcd_takes_at_once_is_refused() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let policy_of = |count: usize, slots: u32| {
        let names: Vec<String> = (1..=count).map(|number| format!("seats{number}")).collect();
        let each =
            names.iter().map(|name| format!("[repository.{name}]\nkeeper = \"site\"\nlimit = {slots}\n"));
        let claim = |name: &String| format!("{{ repository = \"{name}\", slots = {slots} }}, ");
        let claims = names.iter().map(claim).collect::<String>();
        format!("{}[[rule]]\ncommands = [\"matlab\"]\nacquire = [{claims}]\n", each.collect::<String>())
    };
    let policy = |count| policy_of(count, 1);
    let [one] = hosts(&etcd, &policy(60), ["lab1"]);
    one.test().args(["run", "--", "matlab"]).status(0);
    one.site.system_policy(&policy(70));
    one.test()
        .args(["run", "--", "matlab"])
        .stderr(
            "
            rungate: matlab: not started: the agent refuses: what it claims of 70 repositories of the site is more \
            than etcd accepts in one transaction: claim less for one launch
            ",
        )
        .status(74);
    one.site.system_policy(&policy(60));
    one.test().args(["run", "--", "matlab"]).status(0);
    // With its places in the queues, a launch that waited has more to change: it starts all the same.
    one.site.system_policy(&policy_of(45, 2));
    let holder = one.test().args(["run", "--", "matlab"]).spawn();
    let mut waits = one.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    eventually("it waits", || (waiting(&one) > 0).then_some(()));
    drop(holder);
    waits.wait_for_echo();
}

/// A host that cannot be reached for a third of the ttl keeps nobody on other hosts from a seat. Who waits on it is
/// passed over, and is the first again when it is back.
#[test]
fn who_waits_on_a_host_that_cannot_be_reached_is_passed_over_and_keeps_its_place() {
    needs_etcd!();
    let scene = Scene::new("", None);
    let ((one, way), (two, _way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    let holder = two.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&one) == 1).then_some(()));
    let wait = ["run", "-q", "--wait", "forever", "--", "matlab"];
    let waits = |host: &Host, number: usize| {
        let mut launch = host.test().args(wait).background();
        launch.write_line("it runs");
        eventually("it waits", || (scene.tickets(0).len() == number).then_some(()));
        launch
    };
    let (mut first, mut second, mut third) = (waits(&one, 1), waits(&two, 2), waits(&two, 3));
    let tickets = scene.tickets(0);
    way.cut(true);
    drop(holder);
    assert_eq!(second.read_line(), "it runs\n");
    assert_eq!(scene.tickets(0), [tickets[0].clone(), tickets[2].clone()], "the first keeps its place");
    way.cut(false);
    eventually("its host is back", || {
        let hosts = status(&two)["site"]["hosts"].as_array().cloned().unwrap_or_default();
        hosts.iter().all(|host| host["lease"].is_string()).then_some(())
    });
    drop(second);
    assert_eq!(first.read_line(), "it runs\n");
    assert_eq!(scene.tickets(0), tickets[2..]);
    drop(first);
    assert_eq!(third.read_line(), "it runs\n");
}

/// One launch may need slots of all three keepers, all or none.
#[test]
fn all_or_none_of_site_agent_and_file() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let policy = "
        [repository.seats]
        keeper = \"site\"
        limit  = 1

        [repository.here]
        keeper = \"agent\"
        limit  = 1

        [repository.files]
        limit  = 1

        [[rule]]
        name     = \"all\"
        commands = [\"matlab\"]
        acquire  = [\"files\", \"here\", \"seats\"]

        [[rule]]
        name     = \"seats\"
        commands = [\"other\"]
        acquire  = [\"seats\"]
        ";
    let [one, two] = hosts(&etcd, policy, ["lab1", "lab2"]);
    let running = one.test().args(["run", "--", "matlab"]).spawn();
    eventually("the slot is seen", || (held(&two) == 1).then_some(()));
    let refused = "rungate: matlab: not started: 1 of 3 limits is reached\n  seats  1 of 1 used\n...\n";
    two.test().args(["run", "--", "matlab"]).stderr(refused).status(75);
    // Nothing of the others was kept.
    assert_eq!((held(&two), two.site.held_numbers("files.lock")), (1, vec![]));
    drop(running);
    eventually("its end is seen", || (held(&two) == 0).then_some(()));
    let _other = two.test().args(["run", "--", "other"]).spawn();
    eventually("the slot is seen", || (held(&one) == 1).then_some(()));
    one.test().args(["run", "--", "matlab"]).stderr(refused).status(75);
    assert_eq!(one.site.held_numbers("files.lock"), [0_i64; 0]);
}

/// Not started again within this time of the last start, on whichever host.
#[test]
fn a_pause_counts_on_all_hosts() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let [one, two] = hosts(&etcd, &seats(3, "if_elapsed = \"1h\""), ["lab1", "lab2"]);
    one.test().user("games").args(["run", "--", "matlab"]).status(0);
    let too_soon =
        "rungate: matlab: too soon: last started by games at [..] ([..] ago), next allowed at [..]\n...\n";
    is_too_soon(&two);
    two.test().args(["run", "--", "matlab"]).stderr(too_soon).status(69);
    // And so does a reset.
    one.test().args(["reset", "seats"]).status(0);
    eventually("it is forgotten", || (!finds_it_too_soon(&two)).then_some(()));
    two.test().args(["run", "--", "matlab"]).status(0);
}

/// The same from the last end.
#[test]
fn a_pause_from_the_end_counts_on_all_hosts() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let pause = "if_elapsed = \"1h\"\nif_elapsed_from = \"end\"\nhold = \"supervisor\"";
    let [one, two] = hosts(&etcd, &seats(3, pause), ["lab1", "lab2"]);
    let mut first = one.test().args(["run", "--", "matlab"]).spawn();
    // Whoever hears of this has heard of everything before.
    let mut second = two.test().args(["run", "--", "matlab"]).spawn();
    eventually("both hosts see both", || (held(&one) == 2 && held(&two) == 2).then_some(()));
    for running in [&mut first, &mut second] {
        running.close_stdin();
        running.end();
    }
    let too_soon = "rungate: matlab: too soon: last ended [..] ([..] ago), next allowed at [..]\n...\n";
    for host in [&one, &two] {
        is_too_soon(host);
        host.test().args(["run", "--", "matlab"]).stderr(too_soon).status(69);
    }
}

/// The same where the agent is started again before the end, or after an end that it did not see.
#[test]
fn a_pause_from_an_end_counts_after_a_restart() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let pause = "if_elapsed = \"1h\"\nif_elapsed_from = \"end\"\nhold = \"supervisor\"";
    for sees_it in [true, false] {
        let [mut one, two] = hosts(&etcd, &seats(3, pause), ["lab1", "lab2"]);
        let mut running = one.test().args(["run", "--", "matlab"]).spawn();
        eventually("both hosts see it", || (held(&one) == 1 && held(&two) == 1).then_some(()));
        if sees_it {
            one.restart();
        } else {
            one.agent.signal(Signal::SIGKILL);
        }
        running.close_stdin();
        running.end();
        if !sees_it {
            one.restart();
        }
        is_too_soon(&two);
        is_too_soon(&one);
    }
}

/// The same where a program ends before its agent has heard of its start.
#[test]
fn a_pause_from_an_end_that_comes_before_its_start_is_heard_of() {
    needs_etcd!();
    let pause = "if_elapsed = \"1h\"\nif_elapsed_from = \"end\"\nhold = \"supervisor\"";
    let scene = Scene::new(pause, None);
    let ((one, way), (two, _other_way)) = (scene.host("lab1"), scene.host("lab2"));
    Scene::meet(&[&one, &two]);
    way.deafen(true);
    one.test().args(["run", "--", "matlab"]).status(0);
    way.deafen(false);
    is_too_soon(&one);
    is_too_soon(&two);
}

/// Returns when a host has heard that it is too soon for another launch.
fn is_too_soon(host: &Host) {
    eventually("it is too soon", || finds_it_too_soon(host).then_some(()));
}

/// Whether a host says so.
pub(super) fn finds_it_too_soon(host: &Host) -> bool {
    let outcome = host.test().args(["explain", "--json", "--", "matlab"]).outcome();
    outcome.stdout.contains("too soon")
}

/// With one host and no etcd configured, `site` is served by the local agent, and says so.
#[test]
fn without_etcd_the_agent_of_the_host_keeps_the_limit() {
    needs_root!();
    let host = Host::new("lab1", &seats(1, ""), "version = 1\n");
    let running = host.test().args(["run", "--", "matlab"]).spawn();
    host.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
    assert_eq!(held(&host), 1);
    drop(running);
    host.test().args(["run", "--", "matlab"]).status(0);
}

/// The agent's own death ends no pause.
#[test]
fn without_etcd_a_pause_is_kept_too() {
    needs_root!();
    let mut host = Host::new("lab1", &seats(1, "if_elapsed = \"1h\""), "version = 1\n");
    host.test().args(["run", "--", "matlab"]).status(0);
    let is_too_soon = |host: &Host| {
        assert_eq!(host.test().args(["run", "-q", "--", "matlab"]).outcome().ending, Ending::Status(69));
    };
    is_too_soon(&host);
    host.restart();
    is_too_soon(&host);
    host.test().args(["reset", "seats"]).status(0);
    host.restart();
    host.test().args(["run", "--", "matlab"]).status(0);
}

/// A host that is without a site for a while: what is started meanwhile is not ended when it has one again.
#[test]
fn what_was_started_without_etcd_goes_on_with_it() {
    needs_etcd!();
    let etcd = Etcd::shared();
    let settings = etcd.settings(&Etcd::prefix(), super::LASTING);
    let mut host = Host::new("lab1", &seats(1, "on_lost = \"stop\""), &settings);
    eventually("it is there", || (status(&host)["site"]["connected"] == true).then_some(()));
    host.dies_after_contact_at(1);
    host.restart_with("version = 1\n");
    let mut running = host.test().args(["run", "--", "matlab"]).spawn();
    host.restart_with(&settings);
    eventually("it is there again", || (status(&host)["site"]["connected"] == true).then_some(()));
    assert!(running.answers(), "it was ended");
}
