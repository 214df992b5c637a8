//! Nobody is overtaken: a number is good for one start, and a place in the queue for somebody who takes what
//! comes up.

use std::io::Write;
use std::os::unix::net::UnixStream;

use nix::sys::signal::Signal;
use rungate::judge::terms::claim::ExpireKill;
use rungate::keeper::agent::{
    frame::Inbox,
    message::{Answer, Evict, Request, Take, WaitState, Which},
};

use super::hostility::{LONG, answer, request};
use super::{held, seats, waiter, waiting};
use crate::support::{Running, Site, eventually, needs_root};

/// A conversation of the test's own process.
pub(crate) struct Caller(UnixStream, Inbox);

impl Caller {
    pub(crate) fn new(site: &Site) -> Self {
        let connection = UnixStream::connect(site.agent_socket()).expect("the agent accepts");
        connection.set_read_timeout(Some(LONG)).expect("a time");
        let mut caller = Self(connection, Inbox::default());
        // From then on it is heard in the order in which it speaks.
        caller.says(&Request::About);
        assert!(matches!(caller.hears(), Answer::About(_)));
        caller
    }

    pub(crate) fn says(&mut self, request: &Request) {
        self.0.write_all(&request.frame().expect("it is short")).expect("the agent reads");
    }

    /// Asks for a seat.
    pub(crate) fn takes(&mut self, is_again: bool) {
        self.says(&Request::Take(Take { is_again, ..request("matlab", LONG * 10) }));
    }

    #[track_caller]
    pub(crate) fn hears(&mut self) -> Answer {
        answer(&mut self.0, &mut self.1)
    }

    #[track_caller]
    pub(super) fn is_granted(&mut self) {
        let answer = self.hears();
        assert!(matches!(answer, Answer::Granted(_)), "{answer:?}");
    }

    /// It gives back its seat, which this one gets, asks again, and finds this number of waiters ahead.
    #[track_caller]
    fn comes_again(&mut self, next: &mut Running, ahead: u32) {
        self.says(&Request::GiveBack(false));
        assert_eq!(self.hears(), Answer::Done(true));
        assert_eq!(next.read_line(), "it runs\n");
        self.takes(false);
        assert_eq!(self.hears(), Answer::Anew);
        let answer = self.hears();
        let is_there = matches!(answer, Answer::Waits(WaitState { ahead: there, .. }) if there == ahead);
        assert!(is_there, "{ahead}: {answer:?}");
    }

    /// It is not away, however long it has said nothing.
    #[track_caller]
    pub(super) fn beats(&mut self) {
        self.says(&Request::Beat);
        self.waits();
    }

    #[track_caller]
    pub(super) fn waits(&mut self) {
        let answer = self.hears();
        assert!(matches!(answer, Answer::Waits(_)), "{answer:?}");
    }
}

/// Two seats, both taken; the caller waits in the queue, and behind it somebody else. Then the caller gets
/// one.
fn served_first(more: &str) -> (Site, Running, Caller, Running, Running) {
    let (site, agent) = seats(2, more);
    let of_first = site.test().args(["run", "--", "matlab"]).spawn();
    let of_second = site.test().args(["run", "--", "matlab"]).spawn();
    let mut caller = Caller::new(&site);
    caller.takes(false);
    caller.waits();
    let behind = waiter(&site, "games", 2);
    caller.beats();
    of_first.kill();
    caller.is_granted();
    (site, agent, caller, behind, of_second)
}

/// Stops it once it has nothing left to do: what is said then it hears in that order.
pub(super) fn stop(agent: &Running) {
    eventually("it rests", || (agent.state() == 'S').then_some(()));
    agent.signal(Signal::SIGSTOP);
    eventually("it is stopped", || (agent.state() == 'T').then_some(()));
}

/// The next seat is for whoever stood behind.
#[track_caller]
fn comes_next(site: &Site, mut behind: Running, holder: Running) {
    holder.kill();
    assert_eq!(behind.read_line(), "it runs\n");
    eventually("it has a seat", || {
        held(site).iter().any(|(_, pid)| *pid == i64::from(behind.pid())).then_some(())
    });
}

#[test]
fn who_has_used_a_number_gets_another_one() {
    needs_root!();
    let (site, _agent, mut caller, behind, holder) = served_first("");
    caller.says(&Request::Started);
    caller.takes(false);
    assert_eq!(caller.hears(), Answer::Anew);
    caller.waits();
    comes_next(&site, behind, holder);
}

/// Whoever has not used a number has it again, also if it dropped the descriptor that keeps its slots, or
/// never got it: no launch behind it gets them meanwhile. From the start on the descriptor alone keeps them.
#[test]
fn who_has_not_used_a_number_has_it_again() {
    needs_root!();
    for hold in ["process", "descriptor"] {
        let (site, agent, mut caller, mut behind, holder) = served_first(&format!("hold = \"{hold}\""));
        // It has read the answer without the descriptor.
        caller.takes(false);
        assert_eq!(caller.hears(), Answer::Anew, "{hold}");
        caller.is_granted();
        agent.kill();
        let _agent = site.agent();
        let mut caller = Caller::new(&site);
        caller.takes(true);
        caller.is_granted();
        caller.says(&Request::Started);
        if hold == "descriptor" {
            assert_eq!(behind.read_line(), "it runs\n");
        } else {
            comes_next(&site, behind, holder);
        }
    }
}

/// A launch whose conversation broke off has its number in the next one, and in no other.
#[test]
fn no_number_is_used_in_two_conversations() {
    needs_root!();
    let (site, _agent, mut caller, behind, holder) = served_first("");
    let mut other = Caller::new(&site);
    other.takes(true);
    other.is_granted();
    other.says(&Request::Started);
    caller.takes(false);
    assert_eq!(caller.hears(), Answer::Anew);
    caller.waits();
    comes_next(&site, behind, holder);
}

/// Not even at the same moment.
#[test]
fn no_number_is_used_in_two_conversations_at_once() {
    needs_root!();
    let (site, agent, _caller, behind, holder) = served_first("");
    let mut others = [Caller::new(&site), Caller::new(&site)];
    stop(&agent);
    for other in &mut others {
        other.takes(true);
    }
    agent.signal(Signal::SIGCONT);
    // Who asks last has it, and the other one comes last.
    let answers = others.each_mut().map(Caller::hears);
    let granted = answers.iter().position(|answer| matches!(answer, Answer::Granted(_))).expect("a seat");
    assert!(matches!(answers[1 - granted], Answer::Waits(_)), "{answers:?}");
    others[granted].says(&Request::Started);
    comes_next(&site, behind, holder);
}

/// What goes back because it is asked for again is not used any more: its number would be, twice.
#[test]
fn what_is_asked_for_again_is_not_used() {
    needs_root!();
    let (site, agent, mut caller, behind, holder) = served_first("");
    let mut other = Caller::new(&site);
    stop(&agent);
    other.takes(true);
    caller.says(&Request::Started);
    agent.signal(Signal::SIGCONT);
    other.is_granted();
    other.says(&Request::Started);
    assert_eq!(held(&site).len(), 2);
    comes_next(&site, behind, holder);
}

/// Who says something that is not for somebody in the queue stands there no longer: nobody behind it would
/// get what it does not take.
#[test]
fn who_does_something_else_than_to_wait_keeps_no_place() {
    needs_root!();
    let which = Which::Overdue(LONG);
    let evict = Evict { table: "seats".to_owned(), which, grace: LONG, kill: ExpireKill::Process };
    for instead in [Request::GiveBack(false), Request::Evict(evict)] {
        let (site, _agent) = seats(1, "");
        let holder = site.test().args(["run", "--", "matlab"]).spawn();
        let mut caller = Caller::new(&site);
        caller.takes(false);
        caller.waits();
        let mut behind = waiter(&site, "games", 2);
        caller.says(&instead);
        let answer = caller.hears();
        assert!(matches!(answer, Answer::Done(_)), "{answer:?}");
        assert_eq!(waiting(&site), 1);
        holder.kill();
        assert_eq!(behind.read_line(), "it runs\n");
    }
}

/// A launch that waits for a lock file gives its slots back, and keeps its number once. So a client that
/// takes and gives back all the time precedes the launches of others once more, and then it comes last.
#[test]
fn who_gives_back_all_the_time_keeps_its_number_once() {
    needs_root!();
    for is_taken_again in [false, true] {
        let (site, _agent, mut caller, mut first, _holder) = served_first("");
        let [mut second, mut third] = [2, 3].map(|place| waiter(&site, "games", place));
        if is_taken_again {
            // As if the answer were lost: so it has its number once more already.
            caller = Caller::new(&site);
            caller.takes(true);
            caller.is_granted();
            caller.comes_again(&mut first, 2);
            continue;
        }
        caller.comes_again(&mut first, 0);
        caller.beats();
        first.kill();
        caller.is_granted();
        caller.comes_again(&mut second, 1);
        second.kill();
        assert_eq!(third.read_line(), "it runs\n");
        caller.beats();
        third.kill();
        caller.is_granted();
    }
}

/// No start counts of a program that could not be started. A later start counts nevertheless.
#[test]
fn who_gives_back_what_was_not_used_takes_no_later_start_back() {
    needs_root!();
    let (site, _agent) = seats(2, "if_elapsed = \"1h\"");
    let mut caller = Caller::new(&site);
    caller.takes(false);
    caller.is_granted();
    site.test().args(["reset", "seats"]).status(0);
    site.test().user("games").args(["run", "--", "matlab"]).status(0);
    caller.says(&Request::GiveBack(false));
    assert_eq!(caller.hears(), Answer::Done(true));
    let too_soon = "rungate: matlab: too soon: last started by games at [..]\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(too_soon).status(69);
}

/// Nor of a program whose launch had its slots from an agent that died before it could tell.
#[test]
fn no_start_counts_of_who_asks_again() {
    needs_root!();
    let (site, agent) = seats(1, "if_elapsed = \"1h\"");
    let mut caller = Caller::new(&site);
    caller.takes(false);
    caller.is_granted();
    agent.kill();
    let _agent = site.agent();
    let mut caller = Caller::new(&site);
    caller.takes(true);
    caller.is_granted();
}

/// A launch that waits knows how many come before it, also when one of them has left.
#[test]
fn who_waits_is_told_how_many_come_before() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let _holder = site.test().args(["run", "--", "matlab"]).spawn();
    let [mut first, mut second, mut third] = [(); 3].map(|()| Caller::new(&site));
    for (caller, expected) in [(&mut first, 0), (&mut second, 1), (&mut third, 2)] {
        caller.takes(false);
        let answer = caller.hears();
        assert!(matches!(answer, Answer::Waits(WaitState { ahead, .. }) if ahead == expected), "{answer:?}");
    }
    first.says(&Request::Leave);
    assert_eq!(first.hears(), Answer::Done(true));
    third.says(&Request::Beat);
    let answer = third.hears();
    assert!(matches!(answer, Answer::Waits(WaitState { ahead: 1, .. })), "{answer:?}");
}

/// A process that keeps its slot itself gives nothing back over another connection.
#[test]
fn who_keeps_a_slot_itself_gives_nothing_back_elsewhere() {
    needs_root!();
    let (site, _agent) = seats(1, "");
    let mut caller = Caller::new(&site);
    caller.takes(false);
    caller.is_granted();
    caller.says(&Request::Started);
    let mut other = Caller::new(&site);
    other.says(&Request::GiveBack(true));
    assert_eq!(other.hears(), Answer::Done(false));
    assert_eq!(held(&site), [(1, std::process::id().into())]);
}

/// Asks what is in a file, says of which kind the answer is, and keeps the connection.
const ASKS: &str = "import socket, sys
c = socket.socket(socket.AF_UNIX)
c.connect('/run/rungate-agent/socket')
c.sendall(open(sys.argv[1], 'rb').read())
print(c.recv(65536)[5], flush=True)
sys.stdin.read()
";

/// A launch whose answer was lost gives up its own slots, and not those of another process that has started no
/// program yet.
#[test]
fn who_asks_again_gives_up_no_slots_of_others() {
    needs_root!();
    let (site, _agent) = seats(2, "");
    let question = site.path("question");
    let frame = Request::Take(request("matlab", LONG)).frame().expect("it is short");
    std::fs::write(&question, frame).expect("write what is asked");
    let asks = site.test().program("/usr/bin/python3").args(["-c", ASKS]).args([question]);
    let mut other = asks.background();
    assert_eq!(other.read_line(), "1\n", "it is granted");
    let mut caller = Caller::new(&site);
    caller.takes(true);
    caller.is_granted();
    assert_eq!(held(&site), [(1, other.pid().into()), (2, std::process::id().into())]);
}

/// A process may have slots over several connections. They are released only for a request that says that the
/// answer to an earlier one was lost.
#[test]
fn each_connection_has_its_own_slots_until_an_answer_was_lost() {
    needs_root!();
    let (site, _agent) = seats(2, "");
    let mut callers = [Caller::new(&site), Caller::new(&site)];
    for caller in &mut callers {
        caller.takes(false);
        caller.is_granted();
    }
    assert_eq!(held(&site).len(), 2);
    let mut again = Caller::new(&site);
    again.takes(true);
    again.is_granted();
    assert_eq!(held(&site).len(), 1);
}
