//! The way of one host to the members of an etcd: a relay for each. It can be cut as a network is, so that
//! nothing is refused and nothing comes through; watches can become silent, or tell what is not so; and
//! single questions can be lost on their way, or their answers.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::etcd::Etcd;

/// The relays of one host. They end with it.
pub(crate) struct Ways {
    ports: Vec<u16>,
    weather: Arc<Weather>,
}

/// What becomes of one question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mishap {
    /// Nothing: it is only known that it was asked.
    Asked,
    /// It is asked, and the answer does not come back.
    Unanswered,
    /// It is asked, and the connection ends where the answer should come.
    Broken,
    /// It is asked when the way is told to, and that is too late for the answer.
    Late,
}

#[derive(Default)]
struct Weather {
    is_cut: AtomicBool,
    is_deaf: AtomicBool,
    is_over: AtomicBool,
    /// What the next question that has these bytes in it meets with, and then the next one.
    next: Mutex<VecDeque<(Vec<u8>, Mishap)>>,
    /// Whether late questions go on their way.
    is_late_over: AtomicBool,
    /// Whether one of them was answered.
    is_late_answered: AtomicBool,
    /// What is told over watches as something else, once; of the same length.
    misquoted: Mutex<Option<(Vec<u8>, Vec<u8>)>>,
}

/// One connection.
#[derive(Default)]
struct Talk {
    watches: AtomicBool,
    comes_late: AtomicBool,
    stays_unanswered: AtomicBool,
    breaks: AtomicBool,
}

impl Ways {
    /// To all members of this etcd.
    pub(crate) fn to(etcd: &Etcd) -> Self {
        let weather = Arc::new(Weather::default());
        let relay = |member: u16| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = listener.local_addr().expect("an address").port();
            let weather = Arc::clone(&weather);
            thread::spawn(move || relay(&listener, member, &weather));
            port
        };
        Self { ports: etcd.ports().map(relay).collect(), weather }
    }

    /// `[site]` of agent.toml for the host whose ways these are.
    pub(crate) fn settings(&self, prefix: &str, ttl: &str) -> String {
        let endpoints: Vec<String> =
            self.ports.iter().map(|port| format!("\"http://127.0.0.1:{port}\"")).collect();
        let endpoints = endpoints.join(", ");
        format!("version = 1\n[site]\nendpoints = [{endpoints}]\nprefix = \"{prefix}\"\nttl = \"{ttl}\"\n")
    }

    /// Nothing comes through, until it is said otherwise.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.weather.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// Nothing is told over watches, until it is said otherwise.
    pub(crate) fn deafen(&self, is_deaf: bool) {
        self.weather.is_deaf.store(is_deaf, Ordering::SeqCst);
    }

    /// The next time that one of these is told over a watch the other is told, which is as long.
    pub(crate) fn misquote(&self, said: &str, heard: &str) {
        assert_eq!(said.len(), heard.len());
        *self.weather.misquoted() = Some((said.as_bytes().to_vec(), heard.as_bytes().to_vec()));
    }

    /// Whether that was told.
    pub(crate) fn has_misquoted(&self) -> bool {
        self.weather.misquoted().is_none()
    }

    /// This happens to the next question that has these bytes in it, and nothing else.
    pub(crate) fn befall(&self, question: impl Into<Vec<u8>>, mishap: Mishap) {
        self.befall_each(question, [mishap]);
    }

    /// The same, one after the other, to the next ones.
    pub(crate) fn befall_each(
        &self,
        question: impl Into<Vec<u8>>,
        mishaps: impl IntoIterator<Item = Mishap>,
    ) {
        let question = question.into();
        *self.weather.next() = mishaps.into_iter().map(|mishap| (question.clone(), mishap)).collect();
    }

    /// Whether that has happened.
    pub(crate) fn has_befallen(&self) -> bool {
        self.is_to_befall() == 0
    }

    /// How much of it is still to happen.
    pub(crate) fn is_to_befall(&self) -> usize {
        self.weather.next().len()
    }

    /// Late questions are asked now.
    pub(crate) fn ask_late(&self) {
        self.weather.is_late_over.store(true, Ordering::SeqCst);
    }

    /// Whether a late question was answered, be it to nobody.
    pub(crate) fn has_been_asked_late(&self) -> bool {
        self.weather.is_late_answered.load(Ordering::SeqCst)
    }
}

impl Drop for Ways {
    fn drop(&mut self) {
        self.weather.is_over.store(true, Ordering::SeqCst);
        for port in &self.ports {
            // Wakes who listens there.
            drop(TcpStream::connect(("127.0.0.1", *port)));
        }
    }
}

fn relay(listener: &TcpListener, member: u16, weather: &Arc<Weather>) {
    while let Ok((host, _)) = listener.accept() {
        if weather.is_over.load(Ordering::SeqCst) {
            return;
        }
        let weather = Arc::clone(weather);
        thread::spawn(move || connect(&host, member, &weather));
    }
}

fn connect(host: &TcpStream, member: u16, weather: &Arc<Weather>) {
    let Ok(member) = TcpStream::connect(("127.0.0.1", member)) else { return };
    let talk = Arc::new(Talk::default());
    let (Ok(from), Ok(to)) = (host.try_clone(), member.try_clone()) else { return };
    let questions = {
        let (talk, weather) = (Arc::clone(&talk), Arc::clone(weather));
        thread::spawn(move || ask(&from, &to, &talk, &weather))
    };
    answer(&member, host, &talk, weather);
    let _ = (host.shutdown(Shutdown::Both), member.shutdown(Shutdown::Both));
    let _ = questions.join();
}

fn ask(mut host: &TcpStream, mut member: &TcpStream, talk: &Talk, weather: &Weather) {
    let mut bytes = vec![0; 64 * 1024];
    while let Some(count) = host.read(&mut bytes).ok().filter(|count| *count > 0) {
        weather.see(&bytes[..count], talk);
        let is_late =
            || talk.comes_late.load(Ordering::SeqCst) && !weather.is_late_over.load(Ordering::SeqCst);
        weather.wait_while(|| weather.is_cut.load(Ordering::SeqCst) || is_late());
        if member.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // One that waits no longer for its answer was asked nevertheless.
    if !talk.comes_late.load(Ordering::SeqCst) {
        let _ = member.shutdown(Shutdown::Both);
    }
}

fn answer(mut member: &TcpStream, mut host: &TcpStream, talk: &Talk, weather: &Weather) {
    let mut bytes = vec![0; 64 * 1024];
    while let Some(count) = member.read(&mut bytes).ok().filter(|count| *count > 0) {
        if talk.comes_late.load(Ordering::SeqCst) {
            weather.is_late_answered.store(true, Ordering::SeqCst);
        }
        let is_silent = || talk.watches.load(Ordering::SeqCst) && weather.is_deaf.load(Ordering::SeqCst);
        weather.wait_while(|| weather.is_cut.load(Ordering::SeqCst) || is_silent());
        if talk.breaks.load(Ordering::SeqCst) {
            return;
        }
        if talk.stays_unanswered.load(Ordering::SeqCst) {
            continue;
        }
        if talk.watches.load(Ordering::SeqCst) {
            weather.misquote(&mut bytes[..count]);
        }
        if host.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

impl Weather {
    /// Looks at a question that passes.
    fn see(&self, question: &[u8], talk: &Talk) {
        let has = |part: &[u8]| question.windows(part.len()).any(|window| window == part);
        if has(b"POST ") {
            talk.watches.store(has(b"/v3/watch"), Ordering::SeqCst);
        }
        let mut next = self.next();
        let is_met = next.front().is_some_and(|(part, _)| has(part));
        match if is_met { next.pop_front() } else { None } {
            Some((_, Mishap::Broken)) => talk.breaks.store(true, Ordering::SeqCst),
            Some((_, Mishap::Unanswered)) => talk.stays_unanswered.store(true, Ordering::SeqCst),
            Some((_, Mishap::Late)) => talk.comes_late.store(true, Ordering::SeqCst),
            Some((_, Mishap::Asked)) | None => {}
        }
    }

    fn next(&self) -> MutexGuard<'_, VecDeque<(Vec<u8>, Mishap)>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn misquoted(&self) -> MutexGuard<'_, Option<(Vec<u8>, Vec<u8>)>> {
        self.misquoted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on what is told, or something else.
    fn misquote(&self, told: &mut [u8]) {
        let mut misquoted = self.misquoted();
        let Some((said, heard)) = misquoted.as_ref() else { return };
        let Some(at) = told.windows(said.len()).position(|window| window == said) else { return };
        told[at..at + heard.len()].copy_from_slice(heard);
        *misquoted = None;
    }

    fn wait_while(&self, is_held_up: impl Fn() -> bool) {
        while is_held_up() && !self.is_over.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(2));
        }
    }
}
