//! etcd, as far as a site needs it: transactions, reads, leases and a watch, over the JSON gateway that every
//! member has at its client port. Nothing here knows what the keys mean. An open outcome is a value
//! ([`EtcdError::is_definite`]): a transaction without an answer may have been committed, and may still be.

mod client;
mod connector;
mod etcd_error;
mod message;

use self::{
    etcd_error::Kind,
    message::{
        AuthenticateRequest, AuthenticateResponse, Failure, Header, LeaseGrantRequest, LeaseRequest,
        LeaseResponse, Long, RangeRequest, RangeResponse, Streamed, TransactionResponse,
    },
};

use std::{
    io::{BufRead, BufReader},
    time::Duration,
};

use self::message::{
    Bytes, DeleteRequest, PutRequest, TransactionRequest, WatchCreateRequest, WatchRequest, WatchResponse,
    WireCompare, WireOperation,
};
pub(super) use self::{
    client::{Client, ClusterStatus, Inventory, Snapshot},
    connector::Access,
    etcd_error::EtcdError,
    message::Pair,
};
use ureq::BodyReader;

// Transactions: conditions that must all hold, and changes that are then made in one step. Each key may be
// written once.

/// Keys: one, or all from one up to another, exclusive.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Range {
    pub(in crate::agent::site) from: String,
    pub(in crate::agent::site) to: Option<String>,
}

impl Range {
    pub(in crate::agent::site) fn key(key: impl Into<String>) -> Self {
        Self { from: key.into(), to: None }
    }

    /// All keys with this prefix.
    pub(in crate::agent::site) fn below(prefix: impl Into<String>) -> Self {
        let from = prefix.into();
        let mut to = from.clone().into_bytes();
        // Prefixes end in a slash, so that the last byte can be one higher and is still text.
        if let Some(last) = to.last_mut() {
            *last = last.saturating_add(1);
        }
        let to = String::from_utf8(to).unwrap_or_else(|_| from.clone());
        Self { from, to: Some(to) }
    }

    /// Whether a key is in it.
    #[cfg(test)]
    pub(in crate::agent::site) fn contains(&self, key: &str) -> bool {
        match &self.to {
            None => key == self.from,
            Some(to) => self.from.as_str() <= key && key < to.as_str(),
        }
    }

    fn key_bytes(&self) -> Bytes {
        Bytes(self.from.clone().into_bytes())
    }

    fn end_bytes(&self) -> Option<Bytes> {
        self.to.clone().map(|to| Bytes(to.into_bytes()))
    }
}

/// A condition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Compare {
    /// There is no such key.
    Absent(String),
    /// The key was last changed at this revision; 0 if there is none.
    ChangedAt(String, i64),
    /// No key of these was changed after this revision. This is true if there are none, and does not notice
    /// deletions.
    UnchangedSince(Range, i64),
}

/// What is done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Operation {
    /// A key is written.
    Put(String, Vec<u8>),
    /// A key is written that is deleted with the lease.
    PutUnderLease(String, Vec<u8>, i64),
    /// A key goes.
    Delete(String),
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Transaction {
    pub(in crate::agent::site) compares: Vec<Compare>,
    pub(in crate::agent::site) operations: Vec<Operation>,
}

/// The result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Done {
    /// Whether all conditions held, and it was done.
    pub(in crate::agent::site) holds: bool,
    /// The revision of the whole etcd then.
    pub(in crate::agent::site) revision: i64,
    /// The generation of the etcd that answered.
    pub(in crate::agent::site) generation: u64,
}

impl Compare {
    fn wire(&self) -> WireCompare {
        let of = |range: &Range, target, result| WireCompare {
            key: range.key_bytes(),
            range_end: range.end_bytes(),
            target,
            result,
            create_revision: None,
            mod_revision: None,
        };
        match self {
            Self::Absent(key) => {
                WireCompare { create_revision: Some(Long(0)), ..of(&Range::key(key), "CREATE", "EQUAL") }
            }
            Self::ChangedAt(key, revision) => {
                WireCompare { mod_revision: Some(Long(*revision)), ..of(&Range::key(key), "MOD", "EQUAL") }
            }
            Self::UnchangedSince(range, revision) => {
                let after = revision.saturating_add(1);
                WireCompare { mod_revision: Some(Long(after)), ..of(range, "MOD", "LESS") }
            }
        }
    }
}

impl Operation {
    fn wire(&self) -> WireOperation {
        let bytes = |key: &str| Bytes(key.as_bytes().to_vec());
        let put = |key: &str, value: &[u8], lease| {
            WireOperation::Put(PutRequest { key: bytes(key), value: Bytes(value.to_vec()), lease })
        };
        match self {
            Self::Put(key, value) => put(key, value, None),
            Self::PutUnderLease(key, value, lease) => put(key, value, Some(Long(*lease))),
            Self::Delete(key) => WireOperation::Delete(DeleteRequest { key: bytes(key) }),
        }
    }
}

impl Transaction {
    fn wire(&self) -> TransactionRequest {
        TransactionRequest {
            compare: self.compares.iter().map(Compare::wire).collect(),
            success: self.operations.iter().map(Operation::wire).collect(),
            failure: Vec::new(),
        }
    }
}

// A watch: one streaming answer with every change of a range from a revision on. It ends after some time,
// and the listener starts another. So a dead connection that is never closed has no effect.

/// What is wrong if an answer ends that should not.
const ENDED: &str = "it ended the watch";

/// An event of a watch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Heard {
    /// It has begun.
    Begun,
    /// Changes, in their order: each key as it is now, or its deletion, with its revision.
    Changes(Vec<(Pair, bool)>),
    /// Its first revision was compacted.
    Compacted,
}

/// An open watch.
pub(in crate::agent::site) struct Watch {
    endpoint: String,
    longest: Duration,
    lines: BufReader<BodyReader<'static>>,
}

impl Client {
    /// Begins to listen to changes from this revision on, for this long.
    pub(in crate::agent::site) fn watch(
        &self,
        range: &Range,
        from: i64,
        longest: Duration,
    ) -> Result<Watch, EtcdError> {
        let question = WatchRequest {
            create_request: WatchCreateRequest {
                key: range.key_bytes(),
                range_end: range.end_bytes().unwrap_or_else(|| Bytes(vec![0])),
                start_revision: Long(from),
            },
        };
        let (endpoint, response) = self.call("/v3/watch", &question, true, Some(longest))?;
        Ok(Watch { endpoint, longest, lines: BufReader::new(response.into_body().into_reader()) })
    }
}

impl Watch {
    /// Waits for the next event; none if its time is over. A member does not end its answer before that
    /// without a reason, but a proxy may, and would do so again at once.
    pub(in crate::agent::site) fn next(&mut self) -> Result<Option<Heard>, EtcdError> {
        loop {
            let mut line = Vec::new();
            match self.lines.read_until(b'\n', &mut line) {
                Ok(0) => return Err(self.trouble(Kind::Broken(ENDED.to_owned()))),
                Ok(_) => {}
                Err(error) => return self.ended(&error),
            }
            if let Some(heard) = self.heard(&line)? {
                return Ok(Some(heard));
            }
        }
    }

    fn ended(&self, error: &std::io::Error) -> Result<Option<Heard>, EtcdError> {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>());
        match inner {
            Some(ureq::Error::Timeout(_)) => Ok(None),
            Some(inner) => Err(EtcdError::of(&self.endpoint, self.longest, inner)),
            None => Err(self.trouble(Kind::Broken(error.to_string()))),
        }
    }

    fn trouble(&self, kind: Kind) -> EtcdError {
        EtcdError { endpoint: self.endpoint.clone(), kind }
    }

    fn heard(&self, line: &[u8]) -> Result<Option<Heard>, EtcdError> {
        let answer: Streamed<WatchResponse> =
            serde_json::from_slice(line).map_err(|error| self.trouble(Kind::Senseless(error.to_string())))?;
        if let Some(failure) = answer.error {
            return Err(self.trouble(Kind::NotNow(Failure::text(failure))));
        }
        let Some(result) = answer.result else { return Ok(None) };
        if result.compact_revision.0 > 0 {
            return Ok(Some(Heard::Compacted));
        }
        if result.canceled {
            return Err(EtcdError::said(&self.endpoint, 400, &result.cancel_reason));
        }
        if result.created {
            return Ok(Some(Heard::Begun));
        }
        if result.events.is_empty() {
            return Ok(None);
        }
        let change = |event: message::WireEvent| {
            let is_there = event.kind != "DELETE";
            (Pair::from(event.kv), is_there)
        };
        Ok(Some(Heard::Changes(result.events.into_iter().map(change).collect())))
    }
}

#[cfg(test)]
pub(super) mod tests;
