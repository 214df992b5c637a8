//! Reading and writing at an offset, whole: short reads end at the end of the file, short writes are gone on with. A write
//! beyond the process's file-size limit is refused here, because the kernel would answer it with a deadly `SIGXFSZ`.

use std::os::fd::BorrowedFd;

use nix::{
    errno::Errno,
    sys::resource::{Resource, getrlimit},
};

/// Fills `buffer` from `offset` on, as far as the file goes. Says how many bytes there were.
pub fn read_at(descriptor: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
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

/// Writes all of `bytes` at `offset`.
pub fn write_at(descriptor: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<(), Errno> {
    let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
    if offset + bytes.len() as u64 > limit {
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
