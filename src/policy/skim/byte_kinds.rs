//! What somebody may want to know of a byte without looking at it again.

/// In bare keys.
pub(super) const OF_KEYS: u8 = 1;
/// What no string without escapes goes over: control characters and backslashes; quotes are looked at apart.
pub(super) const ENDS_STRING: u8 = 2;
/// What makes a pattern of a text beside stars and question marks, or names a part of it.
pub(super) const SPECIAL: u8 = 4;
pub(super) const SLASH: u8 = 8;
/// What no comment goes over.
pub(super) const ENDS_COMMENT: u8 = 16;

/// What a claim says beside the name of a repository: no byte is of this kind.
pub(super) const LOWERS: u8 = 32;

pub(super) static KINDS: [u8; 256] = kinds();

const fn kinds() -> [u8; 256] {
    let mut kinds = [0; 256];
    let mut byte = 0u8;
    loop {
        let mut kind = 0;
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
            kind |= OF_KEYS;
        }
        if byte.is_ascii_control() && byte != b'\t' {
            kind |= ENDS_STRING | ENDS_COMMENT;
        }
        match byte {
            b'\\' => kind |= ENDS_STRING | SPECIAL,
            b'[' | b']' | b'{' | b'}' => kind |= SPECIAL,
            b'/' => kind |= SLASH,
            _ => {}
        }
        kinds[byte as usize] = kind;
        if byte == u8::MAX {
            return kinds;
        }
        byte += 1;
    }
}
