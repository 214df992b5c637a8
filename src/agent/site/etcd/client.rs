//! The client: it asks one member after the other until one answers, with a token if etcd requires one. It
//! never repeats a call that may have been carried out.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    AuthenticateRequest, AuthenticateResponse, Done, EtcdError, Failure, Header, Kind, LeaseGrantRequest,
    LeaseRequest, LeaseResponse, Long, Pair, Range, RangeRequest, RangeResponse, Streamed, Transaction,
    TransactionResponse,
    connector::{Access, Connector},
};
use crate::{
    agent::{Level, Topic, log::log},
    keeper::agent::message::Latency,
    text::visible,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use ureq::{Body, http::Response};

/// A longer answer is not read to its end.
const LONGEST_ANSWER: u64 = 256 * 1024 * 1024;

const LONGEST_METRICS: u64 = 4 * 1024 * 1024;

/// Several threads may call at once.
#[derive(Clone, Debug)]
pub(in crate::agent::site) struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    access: Access,
    connector: Mutex<Connector>,
    /// The member that answered last.
    current: AtomicUsize,
    token: Mutex<Option<String>>,
    generations: Generations,
    latency: Mutex<Latency>,
}

impl Client {
    /// Reads the certificates, or says what is wrong with them.
    pub(in crate::agent::site) fn new(access: Access) -> Result<Self, String> {
        let connector = Mutex::new(Connector::new(&access)?);
        Ok(Self(Arc::new(Inner {
            access,
            connector,
            current: AtomicUsize::new(0),
            token: Mutex::new(None),
            generations: Generations::default(),
            latency: Mutex::default(),
        })))
    }

    /// How long its answers took.
    pub(in crate::agent::site) fn latency(&self) -> Latency {
        self.0.latency.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The etcd that answers.
    pub(super) fn generations(&self) -> &Generations {
        &self.0.generations
    }

    /// A change was received at this revision.
    pub(in crate::agent::site) fn has_heard(&self, generation: u64, revision: i64) {
        self.generations().heard(generation, revision);
    }

    /// Switches to the next member, because the current one may be wrong.
    pub(in crate::agent::site) fn turn_to_next(&self) {
        self.0.current.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls, and waits for the whole answer. Tries another member if the previous one certainly did nothing,
    /// or if a repetition does no harm.
    pub(super) fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        path: &str,
        question: &Q,
        is_harmless: bool,
    ) -> Result<A, EtcdError> {
        let (patience, asked) = (self.0.access.patience, Instant::now());
        let (endpoint, response) = self.call(path, question, is_harmless, Some(patience))?;
        let trouble = |kind| EtcdError { endpoint: endpoint.clone(), kind };
        let mut text = Vec::new();
        response
            .into_body()
            .into_reader()
            .take(LONGEST_ANSWER)
            .read_to_end(&mut text)
            .map_err(|error| trouble(Kind::Broken(error.to_string())))?;
        self.0.latency.lock().unwrap_or_else(PoisonError::into_inner).add(asked.elapsed());
        serde_json::from_slice(&text).map_err(|error| trouble(Kind::Senseless(error.to_string())))
    }

    /// Calls, and returns the unread answer; within `longest` if given.
    pub(super) fn call<Q: Serialize>(
        &self,
        path: &str,
        question: &Q,
        is_harmless: bool,
        longest: Option<Duration>,
    ) -> Result<(String, Response<Body>), EtcdError> {
        let question = serde_json::to_vec(question).unwrap_or_default();
        let mut renewed = false;
        let mut tried = 0;
        loop {
            let at = self.0.current.load(Ordering::Relaxed);
            let endpoint = self.endpoint(at);
            let trouble = match self.call_one(&endpoint, path, &question, longest) {
                Ok(response) => return Ok((endpoint, response)),
                Err(trouble) => trouble,
            };
            if self.has_no_token(&trouble) && !renewed {
                renewed = true;
                *self.token() = None;
                continue;
            }
            if !trouble.is_of_member() {
                return Err(trouble);
            }
            let _ =
                self.0.current.compare_exchange(at, at.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed);
            tried += 1;
            if tried >= self.0.access.endpoints.len() || !(trouble.is_definite() || is_harmless) {
                return Err(trouble);
            }
        }
    }

    /// Whether a new token could help: the old one has expired, or none was required before.
    fn has_no_token(&self, trouble: &EtcdError) -> bool {
        match &trouble.kind {
            Kind::TokenExpired => true,
            Kind::Refused(why) => self.0.access.user.is_some() && why.contains("user name is empty"),
            _ => false,
        }
    }

    fn endpoint(&self, at: usize) -> String {
        let endpoints = &self.0.access.endpoints;
        let at = at.checked_rem(endpoints.len()).unwrap_or(0);
        endpoints.get(at).cloned().unwrap_or_default()
    }

    fn call_one(
        &self,
        endpoint: &str,
        path: &str,
        question: &[u8],
        longest: Option<Duration>,
    ) -> Result<Response<Body>, EtcdError> {
        let token = self.token_for(endpoint)?;
        self.post(endpoint, path, question, token.as_deref(), longest)
    }

    fn post(
        &self,
        endpoint: &str,
        path: &str,
        question: &[u8],
        token: Option<&str>,
        longest: Option<Duration>,
    ) -> Result<Response<Body>, EtcdError> {
        let agent = self.connector().agent();
        let mut request = agent
            .post(format!("{}{path}", endpoint.trim_end_matches('/')))
            .config()
            .timeout_recv_body(longest)
            .build()
            .content_type("application/json")
            // Makes a member without a leader refuse at once; otherwise it would never answer.
            .header("Grpc-Metadata-hasleader", "true");
        if let Some(token) = token {
            request = request.header("Authorization", token);
        }
        let patience = self.0.access.patience;
        let response = request.send(question).map_err(|error| {
            let trouble = EtcdError::of(endpoint, patience, &error);
            if trouble.may_be_of_certificates() {
                // The next attempt uses them.
                let renewed = self.connector().renew(&self.0.access);
                if let Err(why) = renewed {
                    log(
                        Level::Warning,
                        Topic::Site,
                        &format!("the renewed certificates cannot be used: {why}"),
                    );
                }
            }
            trouble
        })?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let mut text = Vec::new();
        // If the body cannot be read, the status decides.
        let _ = response.into_body().into_reader().take(64 * 1024).read_to_end(&mut text);
        let text = match serde_json::from_slice::<Failure>(&text) {
            Ok(failure) => failure.text(),
            Err(_) => String::from_utf8_lossy(&text).trim().to_owned(),
        };
        Err(EtcdError::said(endpoint, status, &text))
    }

    /// Calls each member, and collects the answers.
    pub(super) fn ask_each<Q: Serialize, A: DeserializeOwned>(&self, path: &str, question: &Q) -> Vec<A> {
        let Access { endpoints, patience, .. } = &self.0.access;
        let question = serde_json::to_vec(question).unwrap_or_default();
        let ask = |endpoint: &String| {
            let response = self.call_one(endpoint, path, &question, Some(*patience)).ok()?;
            serde_json::from_reader(response.into_body().into_reader().take(64 * 1024)).ok()
        };
        endpoints.iter().filter_map(ask).collect()
    }

    /// The metrics of the member that answers, if it has them.
    pub(super) fn metrics(&self) -> Option<String> {
        let endpoint = self.endpoint(self.0.current.load(Ordering::Relaxed));
        let request = self.connector().agent().get(format!("{}/metrics", endpoint.trim_end_matches('/')));
        let request = request.config().timeout_recv_body(Some(self.0.access.patience)).build();
        let response = request.call().ok().filter(|response| response.status().is_success())?;
        let mut text = String::new();
        response.into_body().into_reader().take(LONGEST_METRICS).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn connector(&self) -> MutexGuard<'_, Connector> {
        self.0.connector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn token(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.0.token.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token, if one is needed; a new one if there is none.
    fn token_for(&self, endpoint: &str) -> Result<Option<String>, EtcdError> {
        let Access { user: Some(user), password_file, patience, .. } = &self.0.access else {
            return Ok(None);
        };
        if let Some(token) = self.token().clone() {
            return Ok(Some(token).filter(|token| !token.is_empty()));
        }
        let trouble = |kind| EtcdError { endpoint: endpoint.to_owned(), kind };
        // Read each time, so that a changed password needs no restart.
        let password = match password_file {
            Some(path) => fs::read_to_string(path).map_err(|error| {
                trouble(Kind::Refused(format!("cannot read the password in {}: {error}", visible(path))))
            })?,
            None => String::new(),
        };
        let password = password.strip_suffix('\n').unwrap_or(&password);
        let question = serde_json::to_vec(&AuthenticateRequest { name: user, password }).unwrap_or_default();
        let response = self.post(endpoint, "/v3/auth/authenticate", &question, None, Some(*patience));
        let response = match response {
            // Without authentication no token is needed, and none is requested again.
            Err(EtcdError { kind: Kind::Refused(why), .. })
                if why.contains("authentication is not enabled") =>
            {
                *self.token() = Some(String::new());
                return Ok(None);
            }
            // A request for a token changes nothing in etcd, so it may be repeated.
            Err(EtcdError { endpoint, kind }) => {
                let kind = match kind {
                    Kind::Unclear(why) | Kind::Senseless(why) | Kind::Broken(why) | Kind::HungUp(why) => {
                        Kind::NotNow(why)
                    }
                    Kind::Silent(_) => Kind::NotReached("no answer".to_owned()),
                    kind => kind,
                };
                return Err(EtcdError { endpoint, kind });
            }
            Ok(response) => response,
        };
        let answer: Result<AuthenticateResponse, _> =
            serde_json::from_reader(response.into_body().into_reader().take(64 * 1024));
        let answer = answer.map_err(|error| trouble(Kind::NotNow(error.to_string())))?;
        *self.token() = Some(answer.token.clone());
        Ok(Some(answer.token))
    }
}

// The calls, each with its path, and what their answers mean.

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
    /// Only keys that were changed after this revision; 0 for all.
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

// Detects that etcd was restored from a backup or replaced: then its cluster id is different, or its
// revision decreases. Each time a new generation begins, and everything that was read before becomes
// invalid.

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
pub(super) struct StateAtSend {
    generation: u64,
    revision: i64,
}

impl Generations {
    /// A request is about to be sent.
    pub(super) fn ask(&self) -> StateAtSend {
        let known = self.known();
        StateAtSend { generation: known.generation, revision: known.revision }
    }

    /// It was answered linearizably. Returns the generation of the answer.
    pub(super) fn answered(&self, asked: StateAtSend, header: &Header) -> u64 {
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
    use serde_json::Value;

    use super::*;
    use crate::agent::site::etcd::{
        Compare, Long,
        tests::{committed, member, member_with, refused, unclear},
    };

    const FIRST: &str = r#"{"header":{"cluster_id":"1","revision":"7"},"kvs":[{"key":"L2E=","mod_revision":"5"}],"more":true,"count":"2"}"#;

    /// A site may have more keys than one answer. All pages have the revision of the first one.
    #[test]
    fn a_range_of_several_pages_is_read_to_its_end() {
        let second = r#"{"header":{"cluster_id":"1","revision":"9"},"kvs":[{"key":"L2I=","mod_revision":"6"}],"count":"2"}"#;
        let (client, member) = member(&[FIRST, second]);
        let read = client.read(&Range::below("/")).expect("two pages");
        let keys: Vec<(&str, i64)> =
            read.pairs.iter().map(|pair| (pair.key.as_str(), pair.revision)).collect();
        assert_eq!((read.revision, keys.as_slice()), (7, [("/a", 5), ("/b", 6)].as_slice()));
        let asked = member.join().expect("two requests");
        assert_eq!((&asked[0]["key"], &asked[0]["revision"]), (&"Lw==".into(), &Value::Null));
        assert_eq!(asked[0]["limit"], "5000");
        // The next key after the last one.
        assert_eq!((&asked[1]["key"], &asked[1]["revision"]), (&"L2EA".into(), &"7".into()));
    }

    /// Pages of two etcds are no snapshot.
    #[test]
    fn another_etcd_between_two_pages_is_an_error() {
        let second = r#"{"header":{"cluster_id":"2","revision":"9"},"count":"2"}"#;
        let (client, _member) = member(&[FIRST, second]);
        assert_eq!(client.read(&Range::below("/")), Err(EtcdError::replaced()));
    }

    /// "A keepalive of a dead lease answers 200 *without* a TTL."
    #[test]
    fn a_lease_without_a_time_is_gone() {
        let (client, _member) = member(&[
            r#"{"result":{"ID":"3","TTL":"1"}}"#,
            r#"{"result":{"ID":"3"}}"#,
            r#"{"error":{"message":"etcdserver: requested lease not found"}}"#,
        ]);
        assert_eq!(client.keep_alive(3), Ok(()));
        for _ in 0..2 {
            assert!(client.keep_alive(3).is_err_and(|trouble| trouble.is_lease_gone()));
        }
    }

    /// Each condition of a transaction has its form for etcd: a key that does not exist, one that was changed
    /// at this revision, and keys that were not changed after one.
    #[test]
    fn conditions_are_written_as_etcd_reads_them() {
        let (client, member) = member(&[committed(8)]);
        let compares = vec![
            Compare::Absent("/a".to_owned()),
            Compare::ChangedAt("/a".to_owned(), 5),
            Compare::UnchangedSince(Range::below("/a/"), 7),
        ];
        let transaction = Transaction { compares, operations: Vec::new() };
        assert!(client.carry_out(&transaction).is_ok());
        assert_ne!(client.latency(), Latency::default(), "its time is counted");
        let asked = member.join().expect("a request");
        let one = |index: usize, of: &str| asked[0]["compare"][index][of].clone();
        for (index, target, result, revision, at) in [
            (0, "CREATE", "EQUAL", "create_revision", "0"),
            (1, "MOD", "EQUAL", "mod_revision", "5"),
            (2, "MOD", "LESS", "mod_revision", "8"),
        ] {
            let found = [one(index, "target"), one(index, "result"), one(index, revision)];
            assert_eq!(found, [target, result, at], "condition {index}");
        }
        // Up to the first key that does not begin with the prefix.
        assert_eq!((one(1, "range_end"), one(2, "range_end")), (Value::Null, Value::from("L2Ew")));
    }

    /// A client that has a password asks once for a token. If etcd needs none, it uses none.
    #[test]
    fn a_password_is_not_used_if_etcd_needs_none() {
        let answers = [refused("etcdserver: authentication is not enabled"), committed(8), committed(9)];
        let access = Access { user: Some("rungate".to_owned()), ..Access::default() };
        let (client, member) = member_with(&answers, access);
        for revision in [8, 9] {
            let done = client.carry_out(&Transaction::default()).expect("it is carried out");
            assert_eq!((done.holds, done.revision), (true, revision));
        }
        let asked = member.join().expect("three requests");
        assert_eq!((&asked[0]["name"], asked.len()), (&"rungate".into(), 3));
    }

    /// Without a token no request is sent to an etcd that needs one: the wrong password is the error.
    #[test]
    fn a_wrong_password_is_an_error() {
        let wrong = refused("etcdserver: authentication failed, invalid user ID or password");
        let access = Access { user: Some("rungate".to_owned()), ..Access::default() };
        let (client, _member) = member_with(&[wrong], access);
        let error = client.carry_out(&Transaction::default()).expect_err("it has no token");
        assert!(error.to_string().contains("authentication failed"), "{error}");
    }

    /// A new token is asked for once. If etcd does not accept that one either, that is the error.
    #[test]
    fn a_token_is_renewed_once() {
        let token = r#"{"token":"x"}"#.to_owned();
        let invalid = refused("etcdserver: invalid auth token");
        let access = Access { user: Some("rungate".to_owned()), ..Access::default() };
        let (client, member) = member_with(&[token.clone(), invalid.clone(), token, invalid], access);
        let error = client.carry_out(&Transaction::default()).expect_err("no token is accepted");
        assert_eq!((error.kind, member.join().expect("four requests").len()), (Kind::TokenExpired, 4));
    }

    /// A client of members with these addresses.
    fn client_of(endpoints: Vec<String>) -> Client {
        let patience = Duration::from_secs(60);
        Client::new(Access { endpoints, patience, ..Access::default() }).expect("a client")
    }

    #[test]
    fn the_next_member_is_asked_if_one_cannot_be_reached() {
        let (other, _member) = member(&[committed(8)]);
        let client = client_of(vec!["http://127.0.0.1:1".to_owned(), other.endpoint(0)]);
        let done = client.carry_out(&Transaction::default());
        assert_eq!(done.map(|done| done.revision), Ok(8));
    }

    /// A client turns to the next member when it hears that one may be wrong.
    #[test]
    fn a_client_turns_to_the_next_member() {
        let ((first, _first), (second, _second)) = (member(&[committed(7)]), member(&[committed(8)]));
        let client = client_of(vec![first.endpoint(0), second.endpoint(0)]);
        client.turn_to_next();
        let done = client.carry_out(&Transaction::default());
        assert_eq!(done.map(|done| done.revision), Ok(8));
    }

    /// A transaction that may have been carried out is not repeated. A read is.
    #[test]
    fn what_may_have_been_done_is_not_repeated() {
        let late = unclear("etcdserver: request timed out");
        for is_harmless in [false, true] {
            let (first, _first) = member(&[&late]);
            let (second, _second) = member(&[FIRST.replace("true", "false")]);
            let client = client_of(vec![first.endpoint(0), second.endpoint(0)]);
            let is_done = if is_harmless {
                client.read(&Range::below("/")).is_ok()
            } else {
                client.carry_out(&Transaction::default()).is_ok()
            };
            assert_eq!(is_done, is_harmless);
        }
    }

    /// What one member refuses is not asked of another one.
    #[test]
    fn what_is_refused_is_not_asked_again() {
        let (first, _first) = member(&[refused("etcdserver: permission denied")]);
        let (second, _second) = member(&[committed(8)]);
        let client = client_of(vec![first.endpoint(0), second.endpoint(0)]);
        assert!(client.carry_out(&Transaction::default()).is_err());
    }

    /// An answer without a lease is an error.
    #[test]
    fn a_lease_has_a_number() {
        let (client, _member) = member(&["{}", r#"{"ID":"1"}"#]);
        assert!(client.grant_lease(1).is_err());
        assert_eq!(client.grant_lease(1), Ok(1));
    }

    /// What a watch reports counts too: an etcd that is at an earlier revision later was restored.
    #[test]
    fn an_etcd_before_a_change_that_was_heard_of_is_another_one() {
        let (client, _member) = member(&[committed(8), committed(8)]);
        let generation = || client.carry_out(&Transaction::default()).map(|done| done.generation);
        assert_eq!(generation(), Ok(0));
        client.has_heard(0, 9);
        assert_eq!(generation(), Ok(1));
    }

    /// The state of etcd is that of all members: the largest of their databases counts, and one that is full.
    /// The number of changes is of interest only if none was compacted.
    #[test]
    fn the_state_of_etcd_is_that_of_all_members() {
        let status = |size: u64, errors: &str| format!(r#"{{"dbSize":"{size}","errors":[{errors}]}}"#);
        let all = r#"{"header":{"cluster_id":"1","revision":"9"}}"#.to_owned();
        let compacted = refused("etcdserver: mvcc: required revision has been compacted");
        for (answer, errors, uncompacted) in
            [(all, "", Some(9)), (compacted, r#""memberID:1 alarm:NOSPACE ""#, None)]
        {
            let (first, _first) = member(&[status(30, ""), answer, format!("{QUOTA}2e+09\n")]);
            let (second, _second) = member(&[status(20, errors)]);
            let client = client_of(vec![first.endpoint(0), second.endpoint(0)]);
            let found = client.condition(&Range::below("/"));
            let (quota, is_full) = (Some(2_000_000_000), uncompacted.is_none());
            assert_eq!(found, Ok(ClusterStatus { size: 30, quota, is_full, uncompacted }));
        }
    }

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
        let asked = known.ask();
        known.heard(1, 12);
        assert_eq!(known.answered(asked, &header("1", 10)), 1, "it was sent before");
        assert_eq!(known.answered(known.ask(), &header("1", 11)), 2, "a change was heard of before");
        assert_eq!(known.answered(known.ask(), &header("2", 100)), 3);
    }

    /// The quota of etcd is found among other metrics. It is unknown if there is none, or if it is not
    /// positive.
    #[test]
    fn the_quota_is_read_among_others() {
        let text = "# TYPE etcd_server_quota_backend_bytes gauge\netcd_server_quota_backend_bytes 2.147483648e+09\nx 1\n";
        assert_eq!(quota(text), Some(2_147_483_648));
        for text in ["_more 1", " 0", " -1", " none"] {
            assert_eq!(quota(&format!("etcd_server_quota_backend_bytes{text}\n")), None);
        }
    }
}
