//! The native protocol of systemd's journal: one datagram with `NAME=value` lines
//! (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>). Values are escaped, so that none has a newline.

use std::{io, os::unix::net::UnixDatagram};

use super::event::Event;
use crate::text::escape::Show;

const SOCKET: &str = "/run/systemd/journal/socket";

/// The priority of `warning` for refusals and of `info` for the rest, as syslog(3) numbers them.
pub(super) fn priority(event: &Event) -> u8 {
    if event.event.is_refusal() { 4 } else { 6 }
}

pub(super) fn send(event: &Event) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // A journal that does not read must not hold up a launch.
    socket.set_nonblocking(true)?;
    socket.send_to(datagram(event).as_bytes(), SOCKET).map(drop)
}

fn datagram(event: &Event) -> String {
    let mut text =
        format!("MESSAGE={}\nPRIORITY={}\nSYSLOG_IDENTIFIER=rungate\n", event.line(), priority(event));
    for (name, value) in event.fields() {
        text.push_str(&format!("RUNGATE_{name}={}\n", value.shown()));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use crate::launch::log::event::Kind;
    use crate::launch::log::journal::*;

    #[test]
    fn a_value_is_one_line() {
        let text = datagram(&Event::now(Kind::Refused, "a\nb\u{9b}2J\u{202e}", 7, OsStr::new("ws17")));
        assert!(text.contains("PRIORITY=4\nSYSLOG_IDENTIFIER=rungate\nRUNGATE_EVENT=refused\n"), "{text}");
        assert!(text.contains("\nRUNGATE_COMMAND=a\\nb\\u{9b}2J\\u{202e}\nRUNGATE_UID=7\n"), "{text}");
    }
}
