//! The journal of systemd: its native protocol, one datagram with fields
//! (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>), and whether standard error leads there.

use std::{
    env,
    io::{self, stderr},
    os::unix::net::UnixDatagram,
};

use nix::sys::stat::fstat;

const SOCKET: &str = "/run/systemd/journal/socket";

/// Whether standard error is the stream that the journal has opened for this process: `JOURNAL_STREAM` names
/// its device and inode (`systemd.exec(5)`). A process with another standard error may inherit the variable.
pub(crate) fn has_standard_error() -> bool {
    let stream = env::var("JOURNAL_STREAM").ok();
    let stream = stream.as_deref().and_then(|stream| stream.split_once(':'));
    let found = stream.and_then(|(device, inode)| {
        let (device, inode): (u64, u64) = (device.parse().ok()?, inode.parse().ok()?);
        let stat = fstat(stderr()).ok()?;
        Some((stat.st_dev, stat.st_ino) == (device, inode))
    });
    found.unwrap_or(false)
}

/// Sends an entry. A journal that does not read must not hold up its writer.
pub(crate) fn send(fields: &[(&str, &str)]) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.send_to(&datagram(fields), SOCKET).map(drop)
}

/// `NAME=value` for each field; a value of several lines has its length before it.
fn datagram(fields: &[(&str, &str)]) -> Vec<u8> {
    fields.iter().fold(Vec::new(), |mut bytes, (name, value)| {
        bytes.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            bytes.push(b'\n');
            bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            bytes.push(b'=');
        }
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(b'\n');
        bytes
    })
}

#[cfg(test)]
mod tests {
    use crate::sys::journal::*;

    #[test]
    fn a_value_of_several_lines_has_its_length_before_it() {
        let bytes = datagram(&[("A", "one"), ("MESSAGE", "one\ntwo"), ("B", "")]);
        assert_eq!(bytes, b"A=one\nMESSAGE\n\x07\0\0\0\0\0\0\0one\ntwo\nB=\n");
    }
}
