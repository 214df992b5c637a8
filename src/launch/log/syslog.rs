//! The system's log daemon, by its socket: one datagram `<PRIORITY>rungate[PID]: text`, facility
//! `daemon` (RFC 3164, as local daemons take it).

use std::{io, os::unix::net::UnixDatagram};

use super::{event::Event, journal::priority};

const SOCKET: &str = "/dev/log";

/// The facility `daemon`.
const DAEMON: u8 = 3;

pub(super) fn send(event: &Event) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to(datagram(event).as_bytes(), SOCKET).map(drop)
}

fn datagram(event: &Event) -> String {
    format!("<{}>rungate[{}]: {}", DAEMON * 8 + priority(event), event.pid, event.line())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use crate::launch::log::event::Kind;
    use crate::launch::log::syslog::*;

    #[test]
    fn a_datagram_has_facility_and_severity_in_one_number() {
        let mut event = Event::now(Kind::Started, "sync", 0, OsStr::new("ws17"));
        event.pid = 12;
        assert_eq!(
            datagram(&event),
            "<30>rungate[12]: event=started command=sync uid=0 pid=12 host=ws17 format=1"
        );
    }
}
