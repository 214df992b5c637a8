//! The JSON of the gateway: keys and values in base64, large numbers as text, defaults left out. The gateway
//! ignores a field with a wrong name, so every name is written here and nowhere else.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(D::Error::custom)
    }
}

/// A number of 64 bits: text, because those of JavaScript have 53.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Long(pub(super) i64);

impl Serialize for Long {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for Long {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

/// At the start of every answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Header {
    /// Too large for a [`Long`].
    pub(super) cluster_id: String,
    pub(super) revision: Long,
}

/// A key with its value.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub(super) struct WirePair {
    pub(super) key: Bytes,
    pub(super) value: Bytes,
    pub(super) mod_revision: Long,
    pub(super) lease: Long,
}

/// A key with its value, as etcd has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::agent::site) struct Pair {
    pub(in crate::agent::site) key: String,
    pub(in crate::agent::site) value: Vec<u8>,
    /// The revision of the last change of the key.
    pub(in crate::agent::site) revision: i64,
    /// Its lease; 0 if there is none.
    pub(in crate::agent::site) lease: i64,
}

impl From<WirePair> for Pair {
    fn from(WirePair { key, value, mod_revision, lease }: WirePair) -> Self {
        // Keys of other programs below the prefix may not be text; they mean nothing here. Two such keys are
        // still two.
        let key = String::from_utf8(key.0).unwrap_or_else(|error| STANDARD.encode(error.as_bytes()));
        Self { key, value: value.0, revision: mod_revision.0, lease: lease.0 }
    }
}

#[derive(Serialize)]
pub(super) struct RangeRequest {
    pub(super) key: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) range_end: Option<Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<Long>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revision: Option<Long>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min_mod_revision: Option<Long>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sort_order: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sort_target: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) keys_only: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RangeResponse {
    pub(super) header: Header,
    pub(super) kvs: Vec<WirePair>,
    pub(super) more: bool,
    pub(super) count: Long,
}

#[derive(Serialize)]
pub(super) struct WireCompare {
    pub(super) key: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) range_end: Option<Bytes>,
    pub(super) target: &'static str,
    pub(super) result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) create_revision: Option<Long>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mod_revision: Option<Long>,
}

#[derive(Serialize)]
pub(super) struct PutRequest {
    pub(super) key: Bytes,
    pub(super) value: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lease: Option<Long>,
}

#[derive(Serialize)]
pub(super) struct DeleteRequest {
    pub(super) key: Bytes,
}

#[derive(Serialize)]
pub(super) enum WireOperation {
    #[serde(rename = "request_put")]
    Put(PutRequest),
    #[serde(rename = "request_delete_range")]
    Delete(DeleteRequest),
}

#[derive(Serialize)]
pub(super) struct TransactionRequest {
    pub(super) compare: Vec<WireCompare>,
    pub(super) success: Vec<WireOperation>,
    pub(super) failure: Vec<WireOperation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TransactionResponse {
    pub(super) header: Header,
    pub(super) succeeded: bool,
}

#[derive(Serialize)]
pub(super) struct LeaseGrantRequest {
    #[serde(rename = "TTL")]
    pub(super) ttl: Long,
}

#[derive(Serialize)]
pub(super) struct LeaseRequest {
    #[serde(rename = "ID")]
    pub(super) id: Long,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LeaseResponse {
    #[serde(rename = "ID")]
    pub(super) id: Long,
    /// Omitted if the lease is dead.
    #[serde(rename = "TTL")]
    pub(super) ttl: Long,
    pub(super) error: String,
}

/// Each part of a streaming answer.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(super) struct Streamed<T> {
    pub(super) result: Option<T>,
    pub(super) error: Option<Failure>,
}

/// The answer for an error. In a stream the text is only in `message`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Failure {
    pub(super) error: String,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn text(self) -> String {
        if self.error.is_empty() { self.message } else { self.error }
    }
}

#[derive(Serialize)]
pub(super) struct AuthenticateRequest<'a> {
    pub(super) name: &'a str,
    pub(super) password: &'a str,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AuthenticateResponse {
    pub(super) token: String,
}

#[derive(Serialize)]
pub(super) struct WatchRequest {
    pub(super) create_request: WatchCreateRequest,
}

#[derive(Serialize)]
pub(super) struct WatchCreateRequest {
    pub(super) key: Bytes,
    pub(super) range_end: Bytes,
    pub(super) start_revision: Long,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WatchResponse {
    pub(super) created: bool,
    pub(super) canceled: bool,
    pub(super) compact_revision: Long,
    pub(super) cancel_reason: String,
    pub(super) events: Vec<WireEvent>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireEvent {
    /// `DELETE`, or omitted.
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) kv: WirePair,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "A keepalive of a dead lease answers 200 *without* a TTL."
    #[test]
    fn what_is_left_out_has_its_default() {
        let text = r#"{"result":{"header":{"revision":"7","raft_term":"2"},"ID":"3"}}"#;
        let answer: Streamed<LeaseResponse> = serde_json::from_str(text).expect("an answer");
        let lease = answer.result.expect("a lease");
        assert_eq!((lease.id, lease.ttl), (Long(3), Long(0)));
    }

    #[test]
    fn numbers_and_bytes_are_text() {
        let put = WireOperation::Put(PutRequest {
            key: Bytes(b"/k".to_vec()),
            value: Bytes(vec![0, 255]),
            lease: Some(Long(i64::MAX)),
        });
        let text = serde_json::to_string(&put).expect("text");
        assert_eq!(text, r#"{"request_put":{"key":"L2s=","value":"AP8=","lease":"9223372036854775807"}}"#);
    }
}
