//! Detects that etcd was restored from a backup or replaced: then its cluster id is different, or its
//! revision decreases. Each time a new generation begins, and everything that was read before becomes
//! invalid.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::{
    Client, EtcdError, Range,
    etcd_error::Kind,
    message::{Header, Long, RangeRequest, RangeResponse},
};

/// What is known about the etcd that answers.
#[derive(Debug, Default)]
pub(super) struct Generations(Mutex<Known>);

#[derive(Clone, Debug, Default)]
struct Known {
    generation: u64,
    cluster: Option<String>,
    /// The highest known revision.
    revision: i64,
}

/// The state when a request was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    generation: u64,
    revision: i64,
}

impl Generations {
    /// A request is about to be sent.
    pub(super) fn ask(&self) -> Asked {
        let known = self.known();
        Asked { generation: known.generation, revision: known.revision }
    }

    /// It was answered linearizably. Returns the generation of the answer.
    pub(super) fn answered(&self, asked: Asked, header: &Header) -> u64 {
        let mut known = self.known();
        let is_another = known.cluster.as_ref().is_some_and(|cluster| *cluster != header.cluster_id);
        // Answers of an earlier generation mean nothing for this one.
        let went_back = asked.generation == known.generation && header.revision.0 < asked.revision;
        if is_another || went_back {
            *known = Known { generation: known.generation + 1, cluster: None, revision: 0 };
        }
        known.cluster.get_or_insert_with(|| header.cluster_id.clone());
        known.revision = known.revision.max(header.revision.0);
        known.generation
    }

    /// A change was received, at this revision.
    pub(super) fn heard(&self, generation: u64, revision: i64) {
        let mut known = self.known();
        if known.generation == generation {
            known.revision = known.revision.max(revision);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// The state of etcd itself: its size and quota, and whether it ever compacts.

/// What the members report about themselves.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::agent::site) struct ClusterStatus {
    /// How large the largest of their databases is, in bytes.
    pub(in crate::agent::site) size: u64,
    /// Its quota, if reported.
    pub(in crate::agent::site) quota: Option<u64>,
    /// Whether it accepts no writes, because a member is full.
    pub(in crate::agent::site) is_full: bool,
    /// The number of changes since it began, if it keeps all of them.
    pub(in crate::agent::site) uncompacted: Option<u64>,
}

/// A request without parameters.
#[derive(Serialize)]
struct StatusRequest {}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusResponse {
    #[serde(rename = "dbSize")]
    size: Long,
    errors: Vec<String>,
}

/// Its name among the metrics: no call tells it before etcd 3.6.
const QUOTA: &str = "etcd_server_quota_backend_bytes ";

impl Client {
    /// Reads its state.
    pub(in crate::agent::site) fn condition(&self, range: &Range) -> Result<ClusterStatus, EtcdError> {
        let members: Vec<StatusResponse> = self.ask_each("/v3/maintenance/status", &StatusRequest {});
        let size = members.iter().map(|member| member.size.0).max().unwrap_or_default();
        let mut errors = members.iter().flat_map(|member| &member.errors);
        let oldest = RangeRequest {
            key: range.key_bytes(),
            range_end: None,
            limit: Some(Long(1)),
            revision: Some(Long(1)),
            min_mod_revision: None,
            sort_order: None,
            sort_target: None,
            keys_only: true,
        };
        let uncompacted = match self.ask::<_, RangeResponse>("/v3/kv/range", &oldest, true) {
            Ok(answer) => u64::try_from(answer.header.revision.0).ok(),
            Err(EtcdError { kind: Kind::Compacted, .. }) => None,
            Err(trouble) => return Err(trouble),
        };
        let quota = self.metrics().and_then(|text| quota(&text));
        Ok(ClusterStatus {
            size: u64::try_from(size).unwrap_or_default(),
            quota,
            is_full: errors.any(|error| error.contains("NOSPACE")),
            uncompacted,
        })
    }
}

/// The quota, which is written as `2.147483648e+09`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a file")]
fn quota(metrics: &str) -> Option<u64> {
    let value = metrics.lines().find_map(|line| line.strip_prefix(QUOTA))?;
    value.trim().parse().ok().filter(|quota: &f64| *quota > 0.0).map(|quota: f64| quota as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::site::etcd::message::Long;

    fn header(cluster: &str, revision: i64) -> Header {
        Header { cluster_id: cluster.to_owned(), revision: Long(revision) }
    }

    #[test]
    fn another_cluster_and_a_revision_that_goes_back_begin_a_generation() {
        let known = Generations::default();
        let (early, later) = (known.ask(), known.ask());
        assert_eq!(known.answered(early, &header("1", 7)), 0);
        // The request was sent before this was known.
        assert_eq!(known.answered(later, &header("1", 6)), 0);
        let (asked, beside) = (known.ask(), known.ask());
        assert_eq!(known.answered(asked, &header("1", 6)), 1);
        assert_eq!(known.answered(beside, &header("1", 6)), 1);
        assert_eq!(known.answered(known.ask(), &header("1", 6)), 1);
        known.heard(1, 9);
        known.heard(0, 99);
        assert_eq!(known.answered(known.ask(), &header("1", 9)), 1);
        assert_eq!(known.answered(known.ask(), &header("2", 100)), 2);
    }

    #[test]
    fn the_quota_is_read_among_others() {
        let text = "# TYPE etcd_server_quota_backend_bytes gauge\netcd_server_quota_backend_bytes 2.147483648e+09\nx 1\n";
        assert_eq!(quota(text), Some(2_147_483_648));
        assert_eq!(quota("etcd_server_quota_backend_bytes_more 1\n"), None);
    }
}
