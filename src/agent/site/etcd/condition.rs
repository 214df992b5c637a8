//! How etcd itself is: how much it has of what it may have, and whether it ever forgets what has changed.

use serde::{Deserialize, Serialize};

use super::{
    Client, Range, Trouble,
    message::{Long, RangeRequest, RangeResponse},
    trouble::Kind,
};

/// What the members say of themselves.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::agent::site) struct Condition {
    /// How large the largest of their databases is, in bytes.
    pub(in crate::agent::site) size: u64,
    /// How large it may be, where that is told.
    pub(in crate::agent::site) quota: Option<u64>,
    /// Whether it takes nothing that is new, because some member is full.
    pub(in crate::agent::site) is_full: bool,
    /// How many changes there were since it began, where all of them are kept.
    pub(in crate::agent::site) uncompacted: Option<u64>,
}

/// Nothing is asked in particular.
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
    /// Looks how it is.
    pub(in crate::agent::site) fn condition(&self, range: &Range) -> Result<Condition, Trouble> {
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
            Err(Trouble { kind: Kind::Compacted, .. }) => None,
            Err(trouble) => return Err(trouble),
        };
        let quota = self.metrics().and_then(|text| quota(&text));
        Ok(Condition {
            size: u64::try_from(size).unwrap_or_default(),
            quota,
            is_full: errors.any(|error| error.contains("NOSPACE")),
            uncompacted,
        })
    }
}

/// The quota, which stands there as `2.147483648e+09`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a file")]
fn quota(metrics: &str) -> Option<u64> {
    let value = metrics.lines().find_map(|line| line.strip_prefix(QUOTA))?;
    value.trim().parse().ok().filter(|quota: &f64| *quota > 0.0).map(|quota: f64| quota as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quota_is_read_among_others() {
        let text = "# TYPE etcd_server_quota_backend_bytes gauge\netcd_server_quota_backend_bytes 2.147483648e+09\nx 1\n";
        assert_eq!(quota(text), Some(2_147_483_648));
        assert_eq!(quota("etcd_server_quota_backend_bytes_more 1\n"), None);
    }
}
