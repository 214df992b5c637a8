//! The native protocol of systemd's journal: one datagram with `NAME=value` lines; a value with a newline gets its length
//! in front instead (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>).

use std::{io, os::unix::net::UnixDatagram};

use crate::log::event::Event;

const SOCKET: &str = "/run/systemd/journal/socket";

/// The priority of `warning` for refusals and of `info` for the rest, as syslog(3) numbers them.
pub(super) fn priority(event: &Event) -> u8 {
    if event.event.is_refusal() { 4 } else { 6 }
}

pub(super) fn send(event: &Event) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // A journal that is stuck must not hold up a launch.
    socket.set_nonblocking(true)?;
    socket.send_to(&datagram(event), SOCKET).map(drop)
}

fn datagram(event: &Event) -> Vec<u8> {
    let mut bytes = Vec::new();
    let priority = priority(event).to_string();
    let mut field = |name: &str, value: &str| {
        bytes.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            bytes.push(b'\n');
            bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            bytes.push(b'=');
        }
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(b'\n');
    };
    field("MESSAGE", &event.line());
    field("PRIORITY", &priority);
    field("SYSLOG_IDENTIFIER", "rungate");
    for (name, value) in event.fields() {
        field(&format!("RUNGATE_{name}"), &value);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::event::Kind;

    #[test]
    fn a_value_with_a_newline_gets_its_length() {
        let bytes = datagram(&Event::now(Kind::Refused, "a\nb", 7));
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("PRIORITY=4\nSYSLOG_IDENTIFIER=rungate\nRUNGATE_EVENT=refused\n"), "{text}");
        assert!(text.contains("RUNGATE_COMMAND\n\u{3}\0\0\0\0\0\0\0a\nb\nRUNGATE_UID=7\n"), "{text}");
    }
}
