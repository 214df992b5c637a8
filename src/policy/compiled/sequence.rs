//! A list that stays as it was read, and is taken apart one element at a time: an index can be long, and of most of it a
//! launch wants to know only that it does not matter.

use std::{borrow::Cow, marker::PhantomData};

use serde::{Deserialize, Serialize};

/// Encoded elements, one after the other.
#[derive(Deserialize, Serialize)]
pub(super) struct Sequence<'a, T> {
    #[serde(borrow)]
    encoded: Cow<'a, [u8]>,
    #[serde(skip)]
    element: PhantomData<T>,
}

impl<T: Serialize> Sequence<'_, T> {
    /// Encodes the elements.
    pub(super) fn of(elements: impl IntoIterator<Item = T>) -> Result<Self, postcard::Error> {
        let add = |encoded, element: T| postcard::to_extend(&element, encoded);
        let encoded = elements.into_iter().try_fold(Vec::new(), add)?;
        Ok(Sequence { encoded: Cow::Owned(encoded), element: PhantomData })
    }
}

impl<'s, T: Deserialize<'s>> Sequence<'_, T> {
    /// The elements; what is no element ends them with `None`.
    pub(super) fn iter(&'s self) -> impl Iterator<Item = Option<T>> + use<'s, T> {
        let mut left = &*self.encoded;
        std::iter::from_fn(move || {
            if left.is_empty() {
                return None;
            }
            let taken = postcard::take_from_bytes(left).ok();
            left = taken.as_ref().map_or(&[], |(_, rest)| rest);
            Some(taken.map(|(element, _)| element))
        })
    }
}
