//! Distinguishes a lock file from any other file by its content.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use crate::keeper::file::layout::slot_byte;

/// How rungate's header begins.
pub(super) const MAGIC: [u8; 8] = *b"rungate\n";

/// Where it is.
pub(super) const HEADER_INDEX: usize = 4096;

/// How many bytes of content, from the start to the end of the header, are enough to recognize the file.
pub(super) const TELLING: usize = HEADER_INDEX + 40;

/// Whether a file is empty, or was written by rungate or by exectimes. exectimes writes eight bytes with the
/// offset of a lock, which no program writes by accident. A killed launch may have left more, but nothing
/// between these bytes and the header.
pub(super) fn looks_like_a_lock_file(content: &[u8]) -> bool {
    let is_ours = content.get(HEADER_INDEX..).is_some_and(|own| own.starts_with(&MAGIC));
    let Some((hint, rest)) = content.split_first_chunk::<8>() else { return content.is_empty() };
    let is_theirs =
        u64::from_ne_bytes(*hint) <= slot_byte(u64::from(u32::MAX)) && rest.iter().all(|byte| *byte == 0);
    is_ours || is_theirs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other content may begin with zeros, as that of a disk image does, or with a small number.
    #[test]
    fn a_file_is_known_by_all_of_its_first_bytes() {
        let with_hint = |byte: u64, rest: &[u8]| [&byte.to_ne_bytes()[..], rest].concat();
        let zeros = [0_u8; HEADER_INDEX];
        let highest = with_hint(slot_byte(u64::from(u32::MAX)), &[]);
        for content in [Vec::new(), with_hint(0, &[]), with_hint(8, &[]), with_hint(9, &zeros), highest] {
            assert!(looks_like_a_lock_file(&content), "{} bytes", content.len());
        }
        assert!(looks_like_a_lock_file(&[&[b'x'; HEADER_INDEX][..], &MAGIC].concat()), "it has a header");
        let image = [&zeros[8..], b"CD001"].concat();
        let far = with_hint(slot_byte(u64::from(u32::MAX)) + 1, &[]);
        for content in [b"text".to_vec(), vec![0; 7], with_hint(0, &image), with_hint(8, &image), far] {
            assert!(!looks_like_a_lock_file(&content), "{} bytes", content.len());
        }
    }
}
