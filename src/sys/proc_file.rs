//! Small files of `/proc`, read in one piece: their size is not known beforehand, and asking for it, as the standard library
//! does, costs more than the reading.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{fs::File, io::Read, path::Path};

/// What fits of the file into 4096 bytes, as text; none when it cannot be read.
pub fn read(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = [0; 4096];
    let length = File::open(path).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(bytes.get(..length)?).into_owned())
}
