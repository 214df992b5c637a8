//! Values of unknown origin as parts of file names. What a user types must neither leave the directory nor
//! meet another user's file by accident: whatever is changed to be safe gets a hash of what it was, and what
//! looks as if it had such a hash is changed, so that different values always give different names.

use std::fmt::Write;

/// The digits of a hash in a file name.
const HASH_DIGITS: usize = 16;

/// How long a hash is with the dash before it.
pub(super) const HASH_LENGTH: usize = HASH_DIGITS + 1;

/// The longest name, so that what others append to it still fits into the 255 bytes of a file system.
pub(super) const LONGEST_NAME: usize = 200;

/// Whether a byte may stand in a file name as it is.
pub(super) fn is_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// Whether a value can be used as it is, `reserved` being the characters that must not occur because they
/// separate it from its neighbour.
pub(super) fn is_plain(value: &[u8], reserved: &[u8]) -> bool {
    !value.is_empty()
        && value[0] != b'.'
        && value.iter().all(|byte| is_safe(*byte) && !reserved.contains(byte))
        && !ends_in_hash(value)
}

/// The value with every character that may not stand in a file name replaced. Not yet unique: a hash goes
/// with it.
pub(super) fn sanitized(value: &[u8], reserved: &[u8]) -> String {
    let safe = |(index, byte): (usize, &u8)| {
        let leading_dot = index == 0 && *byte == b'.';
        if is_safe(*byte) && !reserved.contains(byte) && !leading_dot { char::from(*byte) } else { '_' }
    };
    value.iter().enumerate().map(safe).collect()
}

/// What is appended to a name that was changed: a hash of the original, the parts told apart.
pub(super) fn hash_suffix<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut suffix = String::with_capacity(HASH_LENGTH);
    // Writing to a string cannot fail.
    let _ = write!(suffix, "-{:016x}", hash(parts));
    suffix
}

/// The hash of nothing, by FNV-1a with 64 bits. Its own few lines rather than the standard library's hasher,
/// whose result may change from one version to the next: these names must outlive an update.
const NOTHING_FED: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The hash with one byte more.
pub(super) fn fed(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(PRIME)
}

/// The hash without its last byte.
pub(super) fn unfed(hash: u64, byte: u8) -> u64 {
    // What undoes a product with the prime, modulo 2^64.
    const INVERSE: u64 = 0xce96_5057_aff6_957b;
    const { assert!(PRIME.wrapping_mul(INVERSE) == 1) };
    hash.wrapping_mul(INVERSE) ^ u64::from(byte)
}

/// The hash itself.
pub(super) fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hash = NOTHING_FED;
    let mut feed = |byte: u8| hash = fed(hash, byte);
    for part in parts {
        part.iter().copied().for_each(&mut feed);
        // No value holds a NUL: the system passes none.
        feed(0);
    }
    hash
}

/// The hash that was appended.
pub(super) fn hash_in(suffix: &str) -> Option<u64> {
    u64::from_str_radix(suffix.strip_prefix('-')?, 16).ok()
}

/// Whether a name looks as if a value had been changed for it.
pub(super) fn is_changed(name: &str) -> bool {
    ends_in_hash(name.as_bytes())
}

fn ends_in_hash(value: &[u8]) -> bool {
    let Some(dash) = value.len().checked_sub(HASH_LENGTH) else { return false };
    value[dash] == b'-' && value[dash + 1..].iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for value in ["ann", "R2024a", "node-17.example_b", "x..y", "a-0123456789abcde"] {
            assert!(is_plain(value.as_bytes(), b""), "{value}");
        }
    }

    #[test]
    fn what_could_lead_elsewhere_or_pose_as_another_is_changed() {
        for value in
            ["", ".", "..", ".ssh", "a/b", "a b", "ü", "a\nb", "ann-0123456789abcdef", "-0123456789abcdef"]
        {
            assert!(!is_plain(value.as_bytes(), b""), "{value}");
        }
        assert!(!is_plain(b"a.b", b"."));
    }

    #[test]
    fn changed_values_hold_only_safe_characters() {
        assert_eq!(sanitized(b"../a b\xff", b""), "_._a_b_");
        assert_eq!(sanitized(b"a.b", b"."), "a_b");
        assert_eq!(hash_suffix([b"".as_slice()]).len(), HASH_LENGTH);
        assert!(ends_in_hash(format!("ann{}", hash_suffix([b"x".as_slice()])).as_bytes()));
    }

    #[test]
    fn a_hash_tells_where_one_part_ends() {
        let split = |left: &str, right: &str| hash_suffix([left.as_bytes(), right.as_bytes()]);
        assert_ne!(split("a", "bc"), split("ab", "c"));
    }

    #[test]
    fn the_hash_is_the_same_for_ever() {
        assert_eq!(hash_suffix([]), "-cbf29ce484222325");
        assert_eq!(hash_suffix([b"a".as_slice()]), "-089be207b544f1e4");
    }
}
