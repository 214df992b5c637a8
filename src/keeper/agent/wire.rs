//! Values as bytes. Numbers have a fixed size, least byte first; texts, paths, lists and structures begin
//! with their length in four bytes. A reader allocates only for bytes that have arrived. A newer version adds
//! fields at the end of a structure, as `Option`: an older reader ignores them, and in an older structure
//! they are absent.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::judge::terms::{ExpireKill, Hold, Keyword, Wait};
use crate::keeper::Number;

/// What can be sent.
pub(super) trait Wire: Sized {
    /// Adds its bytes.
    fn put(&self, bytes: &mut Vec<u8>);

    /// Reads a value from the start of the remaining bytes; none if they are something else.
    fn take(left: &mut &[u8]) -> Option<Self>;
}

/// Takes this many bytes.
pub(super) fn split<'b>(left: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (first, rest) = left.split_at_checked(count)?;
    *left = rest;
    Some(first)
}

macro_rules! numbers {
    ($($number:ty),+) => { $(impl Wire for $number {
        fn put(&self, bytes: &mut Vec<u8>) {
            bytes.extend(self.to_le_bytes());
        }

        fn take(left: &mut &[u8]) -> Option<Self> {
            Some(Self::from_le_bytes(split(left, size_of::<Self>())?.try_into().ok()?))
        }
    })+ };
}
numbers!(u8, u16, u32, u64, u128, i32);

impl Wire for bool {
    fn put(&self, bytes: &mut Vec<u8>) {
        u8::from(*self).put(bytes);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        match u8::take(left)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

fn put_bytes(text: &[u8], bytes: &mut Vec<u8>) {
    u32::try_from(text.len()).unwrap_or(u32::MAX).put(bytes);
    bytes.extend(text);
}

fn take_bytes(left: &mut &[u8]) -> Option<Vec<u8>> {
    let count = usize::try_from(u32::take(left)?).ok()?;
    split(left, count).map(<[u8]>::to_vec)
}

impl Wire for String {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), bytes);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        String::from_utf8(take_bytes(left)?).ok()
    }
}

impl Wire for OsString {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), bytes);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        take_bytes(left).map(OsString::from_vec)
    }
}

impl Wire for Arc<str> {
    fn put(&self, bytes: &mut Vec<u8>) {
        put_bytes(self.as_bytes(), bytes);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        String::take(left).map(Into::into)
    }
}

impl Wire for Number {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        u64::take(left).map(Self)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.is_some().put(bytes);
        if let Some(value) = self {
            value.put(bytes);
        }
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        if left.is_empty() {
            return Some(None);
        }
        if bool::take(left)? { T::take(left).map(Some) } else { Some(None) }
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, bytes: &mut Vec<u8>) {
        u32::try_from(self.len()).unwrap_or(u32::MAX).put(bytes);
        for value in self {
            value.put(bytes);
        }
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        let mut values = Vec::new();
        for _ in 0..u32::take(left)? {
            values.push(T::take(left)?);
        }
        Some(values)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.0.put(bytes);
        self.1.put(bytes);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        Some((A::take(left)?, B::take(left)?))
    }
}

/// In nanoseconds.
impl Wire for Duration {
    fn put(&self, bytes: &mut Vec<u8>) {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX).put(bytes);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        u64::take(left).map(Duration::from_nanos)
    }
}

impl Wire for Wait {
    fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Forever => None,
            Self::For(longest) => Some(*longest),
        }
        .put(bytes);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        let longest = <Option<Duration> as Wire>::take(left)?;
        Some(longest.map_or(Self::Forever, Self::For))
    }
}

/// As the time since 1970.
impl Wire for SystemTime {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.duration_since(UNIX_EPOCH).unwrap_or_default().put(bytes);
    }

    fn take(left: &mut &[u8]) -> Option<Self> {
        UNIX_EPOCH.checked_add(Duration::take(left)?)
    }
}

/// By their words.
macro_rules! choices {
    ($($choice:ty),+) => { $(impl Wire for $choice {
        fn put(&self, bytes: &mut Vec<u8>) {
            self.word().to_owned().put(bytes);
        }

        fn take(left: &mut &[u8]) -> Option<Self> {
            <$choice>::of(&String::take(left)?)
        }
    })+ };
}
choices!(Hold, ExpireKill);

/// Writes the number of bytes after the four that are reserved for it.
pub(super) fn close(bytes: &mut [u8], start: usize) {
    if let Some((length, since)) = bytes.get_mut(start..).and_then(<[u8]>::split_first_chunk_mut::<4>) {
        *length = u32::try_from(since.len()).unwrap_or(u32::MAX).to_le_bytes();
    }
}

/// Sends a structure field by field, after its length.
macro_rules! fields {
    ($name:ident { $($field:ident),+ }) => {
        impl Wire for $name {
            fn put(&self, bytes: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                let start = bytes.len();
                0_u32.put(bytes);
                $($field.put(bytes);)+
                crate::keeper::agent::wire::close(bytes, start);
            }

            fn take(left: &mut &[u8]) -> Option<Self> {
                let count = usize::try_from(u32::take(left)?).ok()?;
                let mut fields = crate::keeper::agent::wire::split(left, count)?;
                Some(Self { $($field: Wire::take(&mut fields)?),+ })
            }
        }
    };
}
pub(super) use fields;

/// Makes structures and enums that can be sent: an enum after the number of its variant.
macro_rules! wire {
    ($(#[$about:meta])* struct $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub struct $name { $($(#[$doc])* pub $field: $type,)+ }

        $crate::keeper::agent::wire::fields!($name { $($field),+ });
    };
    ($(#[$about:meta])* enum $name:ident { $($(#[$doc:meta])* $variant:ident $(($type:ty))? = $number:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub enum $name { $($(#[$doc])* $variant $(($type))?,)+ }

        impl Wire for $name {
            fn put(&self, bytes: &mut Vec<u8>) {
                match self {
                    $($name::$variant $((wire!(@value value, $type)))? => {
                        let number: u8 = $number;
                        number.put(bytes);
                        $(wire!(@put value bytes, $type);)?
                    })+
                }
            }

            fn take(left: &mut &[u8]) -> Option<Self> {
                match u8::take(left)? {
                    $($number => Some($name::$variant $((<$type as Wire>::take(left)?))?),)+
                    _ => None,
                }
            }
        }
    };
    (@value $value:ident, $type:ty) => { $value };
    (@put $value:ident $bytes:ident, $type:ty) => { $value.put($bytes) };
}
pub(super) use wire;
