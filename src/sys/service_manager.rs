//! The service manager that started this process, and what it wants to hear (`sd_notify(3)`): that the
//! process is ready, and again and again that it still works.

use std::{
    env,
    ffi::OsStr,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    time::{Duration, Instant},
};

use super::process;

/// The socket of the service manager, where it listens for messages of this process.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    socket: UnixDatagram,
    /// How often it is told that the process works, and when next; none if it does not watch.
    watchdog: Option<(Duration, Instant)>,
}

impl ServiceManager {
    /// The one that waits to hear from this process; none if nobody does.
    pub(crate) fn of_this_process() -> Option<Self> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.connect_addr(&address(&env::var_os("NOTIFY_SOCKET")?)?).ok()?;
        // To the manager nothing is worth waiting for.
        socket.set_nonblocking(true).ok()?;
        let watched = env::var("WATCHDOG_PID").ok();
        let is_own = watched.is_none_or(|pid| pid.parse() == Ok(process::own_pid()));
        let longest = env::var("WATCHDOG_USEC").ok().filter(|_| is_own);
        let longest = longest.and_then(|longest| longest.parse().ok()).filter(|longest| *longest > 0);
        // Twice as often as it must be, so that one delay does not look like the end.
        let watchdog = longest.map(|longest| (Duration::from_micros(longest) / 2, Instant::now()));
        Some(Self { socket, watchdog })
    }

    /// The process serves from now on.
    pub(crate) fn is_ready(&self) {
        self.tell("READY=1");
    }

    /// The process works. Says when it has to say so again, if the manager watches it.
    pub(crate) fn is_alive(&mut self) -> Option<Instant> {
        let (every, due) = self.watchdog?;
        let now = Instant::now();
        if now < due {
            return Some(due);
        }
        self.tell("WATCHDOG=1");
        self.watchdog = Some((every, now + every));
        Some(now + every)
    }

    /// The agent continues if the manager does not listen any more.
    fn tell(&self, what: &str) {
        let _ = self.socket.send(what.as_bytes());
    }
}

/// An address as the variable has it: a path, or a name in the abstract namespace after an `@`.
fn address(text: &OsStr) -> Option<SocketAddr> {
    let address = match text.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(text),
    };
    address.ok()
}
