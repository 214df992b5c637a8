//! Distinguishes a lock file from any other file by its content.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use crate::keeper::file::layout::slot_byte;

/// How rungate's header begins.
pub(super) const MAGIC: [u8; 8] = *b"rungate\n";

/// Where it is.
pub(super) const HEADER_INDEX: usize = 4096;

/// How much content, from the start of a file to the end of the header, tells what it is.
pub(super) const TELLING: usize = HEADER_INDEX + 40;

/// Whether a file holds nothing, what rungate wrote, or what exectimes did: eight bytes with the offset of a
/// lock, which no program writes by accident. A launch that was killed may have left more, but nothing
/// between there and the header.
pub(super) fn looks_like_a_lock_file(content: &[u8]) -> bool {
    let is_ours = content.get(HEADER_INDEX..).is_some_and(|own| own.starts_with(&MAGIC));
    let Some((hint, rest)) = content.split_first_chunk::<8>() else { return content.is_empty() };
    let is_theirs =
        u64::from_ne_bytes(*hint) <= slot_byte(u64::from(u32::MAX)) && rest.iter().all(|byte| *byte == 0);
    is_ours || is_theirs
}
