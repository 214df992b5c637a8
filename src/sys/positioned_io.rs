//! Reading and writing at an offset, whole: short reads end at the end of the file, short writes are gone on
//! with. A write beyond the process's file-size limit is refused here, because the kernel would answer it
//! with a deadly `SIGXFSZ`.

use std::{os::fd::BorrowedFd, sync::OnceLock};

use nix::{
    errno::Errno,
    sys::resource::{Resource, getrlimit},
};

/// Fills `buffer` from `offset` on, as far as the file goes. Says how many bytes there were.
pub(crate) fn read_at(descriptor: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::pread(descriptor, &mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Errno::from_raw(error.raw_os_error())),
        }
    }
    Ok(filled)
}

/// Reads so many bytes from `offset` on, as far as the file goes, into memory that is not cleared before.
pub(crate) fn read(descriptor: BorrowedFd<'_>, length: usize, offset: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::with_capacity(length);
    loop {
        let from = offset + bytes.len() as u64;
        match rustix::io::pread(descriptor, rustix::buffer::spare_capacity(&mut bytes), from) {
            Ok(0) => return Ok(bytes),
            Ok(_) if bytes.len() >= length => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Errno::from_raw(error.raw_os_error())),
        }
    }
}

/// The process's file-size limit, looked up once: under a mutex there is better to do.
fn longest_file() -> Result<u64, Errno> {
    static LONGEST: OnceLock<u64> = OnceLock::new();
    if let Some(longest) = LONGEST.get() {
        return Ok(*longest);
    }
    let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
    Ok(*LONGEST.get_or_init(|| limit))
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_at(descriptor: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<(), Errno> {
    if offset + bytes.len() as u64 > longest_file()? {
        return Err(Errno::EFBIG);
    }
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::pwrite(descriptor, &bytes[written..], offset + written as u64) {
            Ok(0) => return Err(Errno::EIO),
            Ok(count) => written += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Errno::from_raw(error.raw_os_error())),
        }
    }
    Ok(())
}
