//! The functions that planted faults call. `tests/mutants/run` adds this module to the copy that it plants
//! them in; nothing else has it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// More faults are not planted at once.
const MOST: usize = 4096;

/// Whether this process has the fault. The file says which, and each run of tests has its own in this place.
pub(crate) fn planted(fault: u32) -> bool {
    static CHOSEN: OnceLock<Option<u32>> = OnceLock::new();
    static REACHED: [AtomicBool; MOST] = [const { AtomicBool::new(false) }; MOST];
    let chosen = CHOSEN.get_or_init(|| {
        let text = std::fs::read_to_string("SCRATCH/fault").unwrap_or_default();
        if text == "reached" { Some(u32::MAX) } else { text.parse().ok() }
    });
    if *chosen == Some(u32::MAX) && !REACHED[fault as usize].swap(true, Relaxed) {
        drop(std::fs::File::create_new(format!("SCRATCH/reached/{fault}")));
    }
    *chosen == Some(fault)
}

/// `min` and `max`, each of which becomes the other.
pub(crate) trait OrderFault: Ord + Sized {
    fn min_of(self, fault: u32, other: Self) -> Self {
        if planted(fault) { self.max(other) } else { self.min(other) }
    }
    fn max_of(self, fault: u32, other: Self) -> Self {
        if planted(fault) { self.min(other) } else { self.max(other) }
    }
}

impl<T: Ord> OrderFault for T {}

/// The same for what an iterator gives, and for `any` and `all`.
pub(crate) trait IteratorFault: Iterator + Sized {
    fn least(self, fault: u32) -> Option<Self::Item>
    where
        Self::Item: Ord,
    {
        if planted(fault) { self.max() } else { self.min() }
    }
    fn greatest(self, fault: u32) -> Option<Self::Item>
    where
        Self::Item: Ord,
    {
        if planted(fault) { self.min() } else { self.max() }
    }
    fn any_of(&mut self, fault: u32, is: impl FnMut(Self::Item) -> bool) -> bool {
        if planted(fault) { self.all(is) } else { self.any(is) }
    }
    fn all_of(&mut self, fault: u32, is: impl FnMut(Self::Item) -> bool) -> bool {
        if planted(fault) { self.any(is) } else { self.all(is) }
    }
}

impl<I: Iterator> IteratorFault for I {}

/// Nothing is, and is not, what is asked for.
pub(crate) trait OptionFault<T>: Sized {
    fn some_and(self, fault: u32, is: impl FnOnce(T) -> bool) -> bool;
    fn none_or(self, fault: u32, is: impl FnOnce(T) -> bool) -> bool;
}

impl<T> OptionFault<T> for Option<T> {
    fn some_and(self, fault: u32, is: impl FnOnce(T) -> bool) -> bool {
        if planted(fault) { self.is_none_or(is) } else { self.is_some_and(is) }
    }
    fn none_or(self, fault: u32, is: impl FnOnce(T) -> bool) -> bool {
        if planted(fault) { self.is_some_and(is) } else { self.is_none_or(is) }
    }
}

/// A constant that is one more than it should be, or a time that is twice as long.
pub(crate) trait ConstantFault {
    fn off(self, fault: u32) -> Self;
}

impl ConstantFault for Duration {
    fn off(self, fault: u32) -> Self {
        if planted(fault) { self * 2 } else { self }
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl ConstantFault for $number {
            fn off(self, fault: u32) -> Self {
                if planted(fault) { self + 1 } else { self }
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 usize i32 i64);
