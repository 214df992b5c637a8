//! The calls, each with its path, and what their answers mean.

use std::collections::BTreeMap;

use super::{
    Client, Done, EtcdError, Pair, Range, Transaction,
    etcd_error::Kind,
    message::{
        LeaseGrantRequest, LeaseRequest, LeaseResponse, Long, RangeRequest, RangeResponse, Streamed,
        TransactionResponse,
    },
};

/// How many keys are read at once.
const PAGE: i64 = 5000;

/// Keys, all at one revision.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::agent::site) struct Snapshot {
    pub(in crate::agent::site) revision: i64,
    /// The generation of the etcd that answered, and its cluster id.
    pub(in crate::agent::site) generation: u64,
    pub(in crate::agent::site) cluster: String,
    pub(in crate::agent::site) pairs: Vec<Pair>,
}

/// The keys at a revision, without their values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::agent::site) struct Inventory {
    pub(in crate::agent::site) revision: i64,
    pub(in crate::agent::site) generation: u64,
    /// How many.
    pub(in crate::agent::site) count: i64,
    /// The keys below were changed after this revision; 0 for all of them.
    pub(in crate::agent::site) since: i64,
    /// Each with the revision of its last change.
    pub(in crate::agent::site) keys: BTreeMap<String, i64>,
}

/// The size of a range, without its content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::agent::site) struct Summary {
    pub(in crate::agent::site) generation: u64,
    pub(in crate::agent::site) count: i64,
    /// The last change of an existing key; 0 if there is none.
    pub(in crate::agent::site) last_change: i64,
}

impl Client {
    /// Commits a transaction, if its conditions hold. An indefinite error leaves open whether it was
    /// committed.
    pub(in crate::agent::site) fn carry_out(&self, transaction: &Transaction) -> Result<Done, EtcdError> {
        let asked = self.generations().ask();
        let answer: TransactionResponse = self.ask("/v3/kv/txn", &transaction.wire(), false)?;
        let generation = self.generations().answered(asked, &answer.header);
        Ok(Done { holds: answer.succeeded, revision: answer.header.revision.0, generation })
    }

    /// Reads keys, in pages, all at one revision, linearizably.
    pub(in crate::agent::site) fn read(&self, range: &Range) -> Result<Snapshot, EtcdError> {
        let (snapshot, _) = self.read_pages(question(range))?;
        Ok(snapshot)
    }

    /// The keys at a revision that were changed after another one, and the number of all keys; none if that
    /// was compacted.
    pub(in crate::agent::site) fn inventory(
        &self,
        range: &Range,
        revision: i64,
        since: i64,
    ) -> Result<Option<Inventory>, EtcdError> {
        let min_mod_revision = (since > 0).then(|| Long(since.saturating_add(1)));
        let at = Some(Long(revision));
        let question = RangeRequest { revision: at, min_mod_revision, keys_only: true, ..question(range) };
        match self.read_pages(question) {
            Ok((Snapshot { generation, pairs, .. }, count)) => {
                let keys = pairs.into_iter().map(|pair| (pair.key, pair.revision)).collect();
                Ok(Some(Inventory { revision, generation, count, since, keys }))
            }
            Err(trouble) if trouble.is_compacted() => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// All pages, at the requested revision or else at that of the first answer; and the number of all keys
    /// in the range.
    fn read_pages(&self, mut question: RangeRequest) -> Result<(Snapshot, i64), EtcdError> {
        let mut first: Option<(Snapshot, i64)> = None;
        question.limit = Some(Long(PAGE));
        loop {
            let asked = self.generations().ask();
            let answer: RangeResponse = self.ask("/v3/kv/range", &question, true)?;
            let generation = self.generations().answered(asked, &answer.header);
            let revision = answer.header.revision;
            let cluster = answer.header.cluster_id;
            let (found, count) = first.get_or_insert_with(|| {
                let pairs = Vec::new();
                (Snapshot { revision: revision.0, generation, cluster, pairs }, answer.count.0)
            });
            if found.generation != generation {
                return Err(EtcdError::replaced());
            }
            let last = answer.kvs.last().map(|pair| pair.key.clone());
            found.pairs.extend(answer.kvs.into_iter().map(Pair::from));
            match last {
                Some(mut last) if answer.more => {
                    last.0.push(0);
                    question.key = last;
                    question.revision.get_or_insert(Long(found.revision));
                }
                _ => return Ok((std::mem::take(found), *count)),
            }
        }
    }

    /// The number of keys, and their last change.
    pub(in crate::agent::site) fn summary(&self, range: &Range) -> Result<Summary, EtcdError> {
        let question = RangeRequest {
            limit: Some(Long(1)),
            sort_order: Some("DESCEND"),
            sort_target: Some("MOD"),
            keys_only: true,
            ..question(range)
        };
        let asked = self.generations().ask();
        let answer: RangeResponse = self.ask("/v3/kv/range", &question, true)?;
        Ok(Summary {
            generation: self.generations().answered(asked, &answer.header),
            count: answer.count.0,
            last_change: answer.kvs.first().map_or(0, |pair| pair.mod_revision.0),
        })
    }

    /// A new lease of this many seconds.
    pub(in crate::agent::site) fn grant_lease(&self, seconds: i64) -> Result<i64, EtcdError> {
        let question = LeaseGrantRequest { ttl: Long(seconds) };
        // A superfluous lease expires by itself.
        let answer: LeaseResponse = self.ask("/v3/lease/grant", &question, true)?;
        if answer.id.0 == 0 {
            return Err(EtcdError { endpoint: String::new(), kind: Kind::Senseless(answer.error) });
        }
        Ok(answer.id.0)
    }

    /// Renews a lease. An answer without a time means that the lease is dead.
    pub(in crate::agent::site) fn keep_alive(&self, lease: i64) -> Result<(), EtcdError> {
        let question = LeaseRequest { id: Long(lease) };
        let answer: Streamed<LeaseResponse> = self.ask("/v3/lease/keepalive", &question, true)?;
        let trouble = |kind| EtcdError { endpoint: String::new(), kind };
        match (answer.result, answer.error) {
            (Some(lease), None) if lease.ttl.0 > 0 => Ok(()),
            (_, Some(failure)) => Err(EtcdError::said("", 500, &failure.text())),
            _ => Err(trouble(Kind::LeaseGone)),
        }
    }
}

fn question(range: &Range) -> RangeRequest {
    RangeRequest {
        key: range.key_bytes(),
        range_end: range.end_bytes(),
        limit: None,
        revision: None,
        min_mod_revision: None,
        sort_order: None,
        sort_target: None,
        keys_only: false,
    }
}
