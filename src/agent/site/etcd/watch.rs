//! A watch: one streaming answer with every change of a range from a revision on. It ends after some time,
//! and the listener starts another. So a dead connection that is never closed has no effect.

use std::{
    io::{BufRead, BufReader},
    time::Duration,
};

use ureq::BodyReader;

use super::{
    Client, EtcdError, Pair, Range,
    etcd_error::Kind,
    message::{Bytes, Failure, Long, Streamed, WatchCreateRequest, WatchRequest, WatchResponse},
};

/// An event of a watch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::agent::site) enum Heard {
    /// It has begun; the revision of the whole etcd then.
    Begun(i64),
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
    /// Waits for the next event; none if its time is over.
    pub(in crate::agent::site) fn next(&mut self) -> Result<Option<Heard>, EtcdError> {
        loop {
            let mut line = Vec::new();
            match self.lines.read_until(b'\n', &mut line) {
                Ok(0) => return Ok(None),
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
            return Ok(Some(Heard::Begun(result.header.revision.0)));
        }
        if result.events.is_empty() {
            return Ok(None);
        }
        let change = |event: super::message::WireEvent| {
            let is_there = event.kind != "DELETE";
            (Pair::from(event.kv), is_there)
        };
        Ok(Some(Heard::Changes(result.events.into_iter().map(change).collect())))
    }
}
