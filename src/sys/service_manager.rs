//! The service manager that started this process, and the messages to it (`sd_notify(3)`): the process is
//! ready, and regularly that it still works.

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
    /// How often it gets the message that the process works, and when next; none if it does not watch.
    watchdog: Option<(Duration, Instant)>,
}

impl ServiceManager {
    /// The service manager that waits for messages of this process, if any.
    pub(crate) fn of_this_process() -> Option<Self> {
        let socket = UnixDatagram::unbound().ok()?;
        socket.connect_addr(&address(&env::var_os("NOTIFY_SOCKET")?)?).ok()?;
        // A message to the manager must never block.
        socket.set_nonblocking(true).ok()?;
        let watched = env::var("WATCHDOG_PID").ok();
        let is_own = watched.is_none_or(|pid| pid.parse() == Ok(process::own_pid()));
        let longest = env::var("WATCHDOG_USEC").ok().filter(|_| is_own);
        let longest = longest.and_then(|longest| longest.parse().ok()).filter(|longest| *longest > 0);
        // Twice as often as necessary, so that one delay does no harm.
        let watchdog = longest.map(|longest| (Duration::from_micros(longest) / 2, Instant::now()));
        Some(Self { socket, watchdog })
    }

    /// The process serves from now on.
    pub(crate) fn is_ready(&self) {
        self.tell("READY=1");
    }

    /// The process works. Returns when the next message is due, if the manager watches.
    pub(crate) fn report_alive(&mut self) -> Option<Instant> {
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

/// The address in the variable: a path, or a name in the abstract namespace after an `@`.
fn address(text: &OsStr) -> Option<SocketAddr> {
    let address = match text.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(text),
    };
    address.ok()
}
