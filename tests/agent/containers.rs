//! Containers: peers from other PID and user namespaces are who the host says they are.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{REFUSED, held, is_held_by, older_kernel::older_agent, seats};
use crate::support::{Running, Site, Test, eventually, needs_root, state_of};

/// A launch as this user, under the first number of a PID namespace of its own.
fn contained(site: &Site, user: &str) -> Test {
    let account = site.user(user);
    site.test()
        .through(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "setpriv", "--init-groups"])
        .through([format!("--reuid={}", account.uid), format!("--regid={}", account.gid)])
        .args(["run", "--", "matlab"])
}

/// What the host calls the first process of a container.
#[track_caller]
fn number_on_host(container: &Running) -> i32 {
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", container.pid()));
    children.expect("a running process").trim().parse().expect("one child")
}

/// What the kernel says of the peer is in the host's numbers, and so is what `list` shows.
#[test]
fn a_launch_from_a_container_holds_for_its_number_on_the_host() {
    needs_root!();
    for is_older in [false, true] {
        for hold in ["process", "descriptor", "supervisor", "tree"] {
            let (site, mut agent) = seats(2, &format!("hold = \"{hold}\""));
            if is_older {
                agent.kill();
                agent = older_agent(&site);
            }
            let first = contained(&site, "games").spawn();
            let second = contained(&site, "nobody").spawn();
            let numbers = [&first, &second].map(number_on_host);
            assert_eq!(held(&site), [(1, numbers[0].into()), (2, numbers[1].into())], "{hold}");
            let listed = site.test().args(["list"]).outcome().stdout;
            for (user, number) in ["games", "nobody"].into_iter().zip(numbers) {
                let is_of_user = |line: &str| line.contains(&format!(" {number} {user} "));
                assert!(listed.lines().any(is_of_user), "{user} {number}: {listed}");
            }
            contained(&site, "games").stderr(REFUSED).status(75);
            // Also who comes back finds them by the host's numbers.
            agent.kill();
            let _agent = if is_older { older_agent(&site) } else { site.agent() };
            site.test().args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
            // The end of the first process of a PID namespace is the end of all.
            kill(Pid::from_raw(numbers[0]), Signal::SIGKILL).expect("it lives");
            eventually("the slot is free", || (held(&site).len() == 1).then_some(()));
            assert_eq!(held(&site), [(2, numbers[1].into())], "{hold}");
            let next = site.test().user("games").args(["run", "--", "matlab"]).spawn();
            drop(second);
            eventually("one slot is left", || is_held_by(&site, &[&next]).then_some(()));
            drop((first, next));
            eventually("all slots are free", || held(&site).is_empty().then_some(()));
        }
    }
}

/// A container may have another name than its host. The agent judges by the host's: that a rule does not apply
/// there is no reason to start without its slot.
#[test]
fn a_container_of_another_name_starts_nothing_without_a_slot() {
    needs_root!();
    let rule = "[[rule]]\ncommands = [\"matlab\"]\nhosts = [\"ship\"]\nacquire = [\"seats\"]\n";
    let policy = format!("[repository.seats]\nlimit = 1\nkeeper = \"agent\"\n{rule}");
    let (site, _agent) = Site::with_agent(&policy);
    site.program("matlab");
    let named = |name: &str| {
        let words = ["unshare", "--uts", "sh", "-c", "echo $0 >/proc/sys/kernel/hostname; exec \"$@\"", name];
        site.test().through(words).args(["run", "--", "matlab"])
    };
    let refused =
        "rungate: matlab: not started: the agent uses another policy: it acquires nothing in seats\n[..]\n";
    named("ship").stderr(refused).status(74);
    let mut other = named("boat").spawn();
    other.wait_for_echo();
    assert_eq!(held(&site), []);
}

/// Whoever waits in the queue from within a container, too.
#[test]
fn a_launch_from_a_container_waits_and_is_passed_over_like_any_other() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let holder = site.test().args(["run", "--", "matlab"]).spawn();
    let account = site.user("games");
    let through = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "setpriv", "--init-groups"];
    let waits = site.test().through(through);
    let waits = waits.through([format!("--reuid={}", account.uid), format!("--regid={}", account.gid)]);
    let mut waits = waits.args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    waits.write_line("it runs");
    eventually("it stands in line", || (super::waiting(&site) == 1).then_some(()));
    let inside = number_on_host(&waits);
    kill(Pid::from_raw(inside), Signal::SIGSTOP).expect("it lives");
    eventually("it is stopped", || (state_of(inside) == Some('T')).then_some(()));
    let mut other = super::waiter(&site, "nobody", 2);
    holder.kill();
    assert_eq!(other.read_line(), "it runs\n");
    kill(Pid::from_raw(inside), Signal::SIGCONT).expect("it lives");
    other.kill();
    assert_eq!(waits.read_line(), "it runs\n");
    assert_eq!(held(&site), [(1, inside.into())]);
}

/// A launcher in such a namespace sees root as 65534: it says so, and believes no policy.
#[test]
fn a_users_own_user_namespace_is_refused_by_the_launcher() {
    needs_root!();
    let (site, _agent) = seats(1, "unreachable = \"start\"");
    for map in ["--map-root-user", "--map-current-user"] {
        site.test()
            .user("games")
            .through(["unshare", "--user", map])
            .args(["run", "--", "matlab"])
            .stderr("...\n[..]not mapped into this user namespace[..]\n...\n")
            .status(78);
    }
    assert_eq!(held(&site), []);
}

/// An agent that does not see who asks says so: it is there, so that `unreachable = "start"` starts nothing.
#[test]
fn an_agent_that_does_not_see_who_asks_refuses() {
    needs_root!();
    let (site, agent) = seats(1, "unreachable = \"start\"");
    agent.kill();
    let _agent = site.agent_through(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    let why = "it cannot see the calling process: the agent has to run in the PID namespace of the host";
    let refused = format!("rungate: matlab: not started: the agent refuses: {why}\n...\n");
    site.test().args(["run", "--", "matlab"]).stderr(&refused).status(74);
}
