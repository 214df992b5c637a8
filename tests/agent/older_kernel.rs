//! On older kernels: `pidfd_open`, then a nonce whose answer comes with `SCM_CREDENTIALS` of that very PID,
//! the pidfd still alive. The agent runs under a filter that has the kernel forget `SO_PEERPIDFD`.

use std::io::Write;
use std::os::unix::net::UnixStream;

use nix::sys::signal::Signal;
use rungate::keeper::agent::{
    frame::Inbox,
    message::{Answer, Request},
};

use super::hostility::{LONG, answer, take};
use super::{REFUSED, held, is_held_by, seats, waiter, waiting};
use crate::support::{LOOK, Running, Site, eventually, is_alive, needs_root};

/// The seats, under a kernel before Linux 6.5.
fn older_seats(limit: u32, more: &str) -> (Site, Running) {
    let (site, agent) = seats(limit, more);
    agent.kill();
    let agent = older_agent(&site);
    (site, agent)
}

/// The agent under such a kernel.
pub(super) fn older_agent(site: &Site) -> Running {
    let filter = site.helper("older_kernel");
    site.agent_through([filter.as_os_str(), "start".as_ref()])
}

/// A conversation that has been challenged, with the number.
#[track_caller]
fn challenged(site: &Site) -> (UnixStream, Inbox, u128) {
    let mut connection = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
    connection.set_read_timeout(Some(LONG)).expect("a time");
    let mut inbox = Inbox::default();
    let Answer::Challenge(number) = answer(&mut connection, &mut inbox) else { panic!("no challenge") };
    (connection, inbox, number)
}

#[test]
fn launches_are_served_and_their_ends_seen() {
    needs_root!();
    for hold in ["process", "descriptor", "supervisor", "tree"] {
        let (site, agent) = older_seats(1, &format!("hold = \"{hold}\""));
        challenged(&site);
        let mut running = site.test().user("games").args(["run", "--", "matlab"]).spawn();
        assert!(is_held_by(&site, &[&running]), "{hold}");
        site.test().user("nobody").args(["run", "--", "matlab"]).stderr(REFUSED).status(75);
        let mut next = waiter(&site, "nobody", 1);
        agent.kill();
        let _agent = older_agent(&site);
        eventually("it stands in line again", || (waiting(&site) == 1).then_some(()));
        running.close_stdin();
        running.end();
        assert_eq!(next.read_line(), "it runs\n", "{hold}");
        assert!(is_held_by(&site, &[&next]), "{hold}");
    }
}

/// A command line of any length: what is said before it is certain who says it comes in pieces too.
#[test]
fn a_long_question_waits_until_it_is_certain_who_asks() {
    needs_root!();
    let (site, _agent) = older_seats(1, "");
    site.script("matlab", "#!/bin/sh\necho ${#1}\n");
    let long = "x".repeat(100_000);
    site.test().user("games").args(["run", "--", "matlab", &long]).stdout("100000\n").status(0);
}

/// A peer whose PID was reused while a child of his kept the socket made the agent take somebody else for
/// the holder: tried.
#[test]
fn who_has_the_number_of_whoever_connected_holds_nothing() {
    needs_root!();
    let (site, agent) = older_seats(1, "");
    // Nobody is answered until the number is somebody else's.
    agent.signal(Signal::SIGSTOP);
    eventually("it is stopped", || (agent.state() == 'T').then_some(()));
    let frame: String = take(std::time::Duration::ZERO).iter().map(|byte| format!("{byte:02x}")).collect();
    let uid = site.user("games").uid.to_string();
    let socket = site.agent_socket();
    let inherit = site.test().program(site.helper("older_kernel")).args(["inherit"]).args([socket]);
    let mut attack = inherit.args([&frame, &uid]).background();
    let heir: i32 = attack.read_line().trim().parse().expect("the number of the heir");
    agent.signal(Signal::SIGCONT);
    attack.write_line("go on");
    let told = attack.read_line();
    assert!(told.contains("is not the one that connected"), "{told}");
    assert_eq!(held(&site), []);
    assert!(is_alive(heir), "the heir lives");
    attack.write_line("end");
    attack.end();
    let _next = site.test().user("games").args(["run", "--", "matlab"]).spawn();
}

/// Nothing is answered before, and nothing after a wrong number.
#[test]
fn who_does_not_say_the_number_is_told_nothing() {
    needs_root!();
    let (site, _agent) = older_seats(1, "");
    let is_told =
        |(connection, mut inbox, _): (UnixStream, Inbox, u128), messages: &[Vec<u8>], what: &str| {
            let mut connection = connection;
            for message in messages {
                connection.write_all(message).expect("the agent reads");
            }
            match answer(&mut connection, &mut inbox) {
                Answer::Failed(why) => assert!(why.contains(what), "{why}"),
                other => panic!("{other:?}"),
            }
        };
    let response = |number: u128| Request::Response(number).frame().expect("it is short");
    let asked = challenged(&site);
    let wrong = response(asked.2 ^ 1);
    is_told(asked, &[LOOK.to_vec(), wrong], "is not the one that connected");
    is_told(challenged(&site), &[LOOK.to_vec(), LOOK.to_vec()], "is invalid");
    let (mut connection, mut inbox, number) = challenged(&site);
    connection.write_all(&LOOK).expect("the agent reads");
    connection.write_all(&response(number)).expect("the agent reads");
    assert!(matches!(answer(&mut connection, &mut inbox), Answer::Tables(_)));
    // Once is enough.
    is_told((connection, inbox, number), &[response(number)], "is invalid");
}
