//! Small files of `/proc`, read in one piece: their size is not known beforehand, and asking for it, as the
//! standard library does, costs more than the reading.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{fs::File, io::Read, path::Path};

/// What fits of the file into 4096 bytes, as text; none when it cannot be read.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    read_within::<4096>(path)
}

/// What fits into so many bytes, for a file that is known to be short: what is read into has to be cleared
/// first.
pub(crate) fn read_within<const BYTES: usize>(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = [0; BYTES];
    let length = File::open(path).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(bytes.get(..length)?).into_owned())
}
