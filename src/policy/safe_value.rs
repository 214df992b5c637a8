//! Values of unknown origin as parts of file names. What a user types must neither leave the directory nor
//! meet another user's file: every byte that may not stand in a name is written as `%` with two digits, as
//! URLs do, so that different values always give different names, and a name can be read back.

use std::fmt::Write;

/// How long the hash of a shortened name is, with the dash before it.
pub(super) const HASH_LENGTH: usize = 17;

/// The longest name, so that what others append to it still fits into the 255 bytes of a file system.
pub(super) const LONGEST_NAME: usize = 200;

/// A value that is empty. No digit of a byte follows the `%`.
const EMPTY: &str = "%_";

/// What stands behind a value where nothing else tells where it ends.
pub(super) const END_OF_VALUE: &str = "%.";

/// Whether a byte may stand in a file name as it is.
pub(super) fn is_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// The value as it stands in a file name, `reserved` being the characters that must not occur because they
/// separate it from its neighbour.
pub(super) fn encoded(value: &[u8], reserved: &[u8]) -> String {
    if value.is_empty() {
        return EMPTY.to_owned();
    }
    let mut name = String::with_capacity(value.len());
    for (index, byte) in value.iter().enumerate() {
        let is_leading_dot = index == 0 && *byte == b'.';
        if is_safe(*byte) && !reserved.contains(byte) && !is_leading_dot {
            name.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name
}

/// The value of which a part of a name was made; none where it was not made by [`encoded`].
pub(super) fn decoded(text: &str) -> Option<Vec<u8>> {
    if text == EMPTY {
        return Some(Vec::new());
    }
    let mut value = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(byte) = rest.bytes().next() {
        let length = first_length(rest);
        let (one, behind) = rest.split_at_checked(length)?;
        value.push(match byte {
            b'%' => u8::from_str_radix(one.get(1..)?, 16).ok()?,
            _ => byte,
        });
        rest = behind;
    }
    Some(value)
}

/// Where `end` first stands in a text and not within what stands for one byte of a value.
pub(super) fn find(text: &str, end: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with(end) {
            return Some(at);
        }
        if rest.is_empty() {
            return None;
        }
        at += first_length(rest);
    }
}

/// How long the first byte of a value is in a name.
fn first_length(text: &str) -> usize {
    if text.starts_with(EMPTY) || text.starts_with(END_OF_VALUE) {
        return EMPTY.len();
    }
    if text.starts_with('%') { 3 } else { text.chars().next().map_or(1, char::len_utf8) }
}

/// What takes the place of what a name is too long for: a hash of the values, each told apart. By FNV-1a with
/// 64 bits, and not by the standard library's hasher, whose result may change from one version to the next:
/// these names must outlive an update.
pub(super) fn hash_suffix<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut feed = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for value in values {
        value.iter().copied().for_each(&mut feed);
        // No value holds a NUL: the system passes none.
        feed(0);
    }
    format!("-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for value in ["ann", "R2024a", "node-17.example_b", "x..y", "a-0123456789abcdef"] {
            assert_eq!(encoded(value.as_bytes(), b""), value);
        }
    }

    #[test]
    fn what_could_lead_elsewhere_or_be_taken_for_another_is_written_in_digits() {
        let cases: [(&[u8], &str); 8] = [
            (b"", "%_"),
            (b".", "%2E"),
            (b"..", "%2E."),
            (b"a/b", "a%2Fb"),
            (b"a b", "a%20b"),
            (b"50%", "50%25"),
            ("ü".as_bytes(), "%C3%BC"),
            (b"a\nb\xff", "a%0Ab%FF"),
        ];
        for (value, name) in cases {
            assert_eq!(encoded(value, b""), name);
            assert_eq!(decoded(name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(encoded(b"a.b", b"."), "a%2Eb");
    }

    #[test]
    fn a_byte_in_digits_is_not_looked_into() {
        assert_eq!(find("%2Fopt-2F", "2F"), Some(7));
        assert_eq!(find("%_.lock", ".lock"), Some(2));
        assert_eq!(find("a%.b", "%."), Some(1));
        assert_eq!(find("%25.%.b", "%."), Some(4));
        assert_eq!(find("abc", "x"), None);
    }

    #[test]
    fn what_no_value_gives_is_not_read() {
        for name in ["%", "%2", "%zz", "%.", "a%_"] {
            assert_eq!(decoded(name), None, "{name}");
        }
    }

    #[test]
    fn the_hash_is_the_same_for_ever() {
        assert_eq!(hash_suffix([]), "-cbf29ce484222325");
        assert_eq!(hash_suffix([b"a".as_slice()]), "-089be207b544f1e4");
        assert_eq!(hash_suffix([]).len(), HASH_LENGTH);
    }
}
