//! Messages on the wire: the length, the version of the sender, the message. A message that is too long, of a
//! version too far away, or malformed ends the conversation.
//!
//! Versions that differ by one understand each other. The newer one may add fields at the end of structures,
//! which the older one ignores, and questions, which the older one refuses. In an older structure the added
//! fields are absent (`wire`).

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

use super::{
    Wire,
    message::{Answer, Request},
};

/// The version of this program.
const VERSION: u8 = 1;

/// The longest request that is ever sent. Most agents take shorter ones only.
pub const LONGEST_REQUEST: usize = 8 * 1024 * 1024;

/// The longest answer: that is all tables with all holders, and comes from root.
pub const LONGEST_ANSWER: usize = 64 * 1024 * 1024;

/// How many bytes come before the version.
const LENGTH: usize = 4;

/// Why a conversation ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Garbage {
    /// A message is longer than it may be.
    TooLong,
    /// The other end speaks a version that is more than one away, or says what only its newer version knows.
    OtherVersion(u8),
    /// It is no message.
    Senseless,
}

impl Request {
    /// Its frame; none if it is too long.
    pub fn frame(&self) -> Option<Vec<u8>> {
        Some(frame(self)).filter(|frame| frame.len() <= LONGEST_REQUEST)
    }
}

impl Answer {
    pub fn frame(&self) -> Vec<u8> {
        frame(self)
    }
}

fn frame(message: &impl Wire) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH];
    VERSION.put(&mut bytes);
    message.put(&mut bytes);
    let length = u32::try_from(bytes.len().saturating_sub(LENGTH)).unwrap_or(u32::MAX);
    if let Some(first) = bytes.first_chunk_mut::<LENGTH>() {
        *first = length.to_le_bytes();
    }
    bytes
}

/// Received bytes, until they are a whole message. It grows with received bytes, not with the announced
/// length.
#[derive(Debug, Default)]
pub struct Inbox(Vec<u8>);

impl Inbox {
    /// Takes in bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there are enough bytes for a message, or to see that they are not one.
    pub fn has_message(&self) -> bool {
        let Some(length) = self.0.first_chunk::<LENGTH>() else { return false };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        self.0.len() >= length.saturating_add(LENGTH)
    }

    /// The next request, if all of it has come; none may be longer than this.
    pub fn request(&mut self, longest: usize) -> Result<Option<Request>, Garbage> {
        self.next(longest)
    }

    /// The next answer, if all of it has come.
    pub fn answer(&mut self) -> Result<Option<Answer>, Garbage> {
        self.next(LONGEST_ANSWER)
    }

    fn next<M: Wire>(&mut self, longest: usize) -> Result<Option<M>, Garbage> {
        let Some(length) = self.0.first_chunk::<LENGTH>() else { return Ok(None) };
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| Garbage::TooLong)?;
        let end = length.saturating_add(LENGTH);
        if end > longest {
            return Err(Garbage::TooLong);
        }
        // Later bytes belong to another message.
        if length == 0 {
            return Err(Garbage::Senseless);
        }
        // Another version is reported at once, because the rest of its message may never come.
        let version = match self.0.get(LENGTH) {
            Some(&version) if version.abs_diff(VERSION) <= 1 => version,
            Some(&version) => return Err(Garbage::OtherVersion(version)),
            None => return Ok(None),
        };
        let Some(mut left) = self.0.get(LENGTH.saturating_add(1)..end) else { return Ok(None) };
        // A message that only a newer version knows is not invalid.
        let unknown = || match version {
            newer if newer > VERSION => Garbage::OtherVersion(newer),
            _ => Garbage::Senseless,
        };
        let message = M::take(&mut left).filter(|_| left.is_empty()).ok_or_else(unknown)?;
        self.0.drain(..end);
        // An idle conversation keeps no memory.
        self.0.shrink_to_fit();
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        judge::terms::{Hold, Wait},
        keeper::agent::message::Take,
    };

    const LONG: usize = 1024;

    fn take() -> Request {
        Request::Take(Take {
            typed: "matlab".into(),
            path: "/usr/bin/matlab".into(),
            canonical: "/opt/matlab".into(),
            directory: "/home/ann".into(),
            arguments: vec!["-r".into(), "x".into()],
            environment: vec![("A".to_owned(), None), ("B".to_owned(), Some("b".into()))],
            held: "seats=1".into(),
            hold: Hold::Tree,
            wait: Some(Wait::For(Duration::from_secs(7))),
            may_end: true,
            is_again: true,
            opened: Some(7),
            through: Some(9),
        })
    }

    #[test]
    fn a_message_reads_back_as_it_was_however_it_is_cut() {
        let frame = take().frame().expect("it is short");
        for at in 0..frame.len() {
            let mut inbox = Inbox::default();
            inbox.add(&frame[..at]);
            assert_eq!((inbox.has_message(), inbox.request(LONG)), (false, Ok(None)), "cut at {at}");
            inbox.add(&frame[at..]);
            assert!(inbox.has_message());
            inbox.add(&Request::Beat.frame().expect("it is short"));
            assert_eq!(inbox.request(LONG), Ok(Some(take())));
            assert_eq!(inbox.request(LONG), Ok(Some(Request::Beat)));
            assert_eq!((inbox.request(LONG), inbox.is_empty()), (Ok(None), true));
        }
    }

    #[test]
    fn a_message_begins_with_its_length_and_the_version() {
        assert_eq!(Request::Beat.frame(), Some(vec![2, 0, 0, 0, 1, 4]));
        assert_eq!(Answer::Done(true).frame(), [3, 0, 0, 0, 1, 5, 1]);
    }

    /// A field that an older version does not send is absent.
    #[test]
    fn a_field_that_is_missing_at_the_end_is_absent() {
        for (bytes, expected) in
            [(&[][..], Some(None)), (&[0], Some(None)), (&[1, 7], Some(Some(7))), (&[1], None)]
        {
            let mut left = bytes;
            assert_eq!(<Option<u8> as Wire>::take(&mut left), expected, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_message_ends_the_conversation() {
        let mut inbox = Inbox::default();
        inbox.add(&u32::MAX.to_le_bytes());
        assert_eq!(inbox.request(LONG), Err(Garbage::TooLong));
        for (bytes, garbage) in [
            (&[0, 0, 0, 0][..], Garbage::Senseless),
            (&[0, 0, 0, 0, 7], Garbage::Senseless),
            (&[9, 0, 0, 0, 3], Garbage::OtherVersion(3)),
            (&[2, 0, 0, 0, 1, 99], Garbage::Senseless),
            (&[2, 0, 0, 0, 0, 99], Garbage::Senseless),
            // Only a newer version may know it.
            (&[2, 0, 0, 0, 2, 99], Garbage::OtherVersion(2)),
            (&[3, 0, 0, 0, 1, 2, 0], Garbage::Senseless),
            (&[6, 0, 0, 0, 1, 6, 255, 255, 255, 255], Garbage::Senseless),
        ] {
            let mut inbox = Inbox::default();
            inbox.add(bytes);
            assert_eq!(inbox.request(LONG), Err(garbage), "{bytes:?}");
        }
    }

    /// A request that is as long as the limit is read, and no longer one.
    #[test]
    fn a_request_may_be_as_long_as_the_limit() {
        let frame = take().frame().expect("it is short");
        let read = |longest| {
            let mut inbox = Inbox::default();
            inbox.add(&frame);
            inbox.request(longest)
        };
        assert_eq!(read(frame.len()), Ok(Some(take())));
        assert_eq!(read(frame.len() - 1), Err(Garbage::TooLong));
    }

    #[test]
    fn a_request_that_is_too_long_is_not_made() {
        let frame = |length: usize| Request::Look(vec!["x".repeat(length)]).frame();
        let longest = LONGEST_REQUEST - frame(0).expect("it is short").len();
        assert_eq!(frame(longest).map(|frame| frame.len()), Some(LONGEST_REQUEST));
        assert_eq!(frame(longest + 1), None);
    }
}
