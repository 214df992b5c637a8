//! Hosts over whose ways to etcd a test has power.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{LASTING, seats, status};
use crate::support::{Etcd, Host, Ways, eventually};

/// Hosts that go to etcd each by a way of its own; all of their agents have this fault.
pub(super) struct Scene {
    pub(super) etcd: Etcd,
    pub(super) prefix: String,
    policy: String,
    ttl: &'static str,
    fault: Option<&'static str>,
}

impl Scene {
    pub(super) fn new(more: &str, fault: Option<&'static str>) -> Self {
        Self::at(Etcd::shared(), more, fault)
    }

    pub(super) fn at(etcd: Etcd, more: &str, fault: Option<&'static str>) -> Self {
        Self { etcd, prefix: Etcd::prefix(), policy: seats(1, more), ttl: LASTING, fault }
    }

    /// With so many seats.
    pub(super) fn of(self, limit: u32) -> Self {
        Self { policy: self.policy.replacen("limit = 1", &format!("limit = {limit}"), 1), ..self }
    }

    /// Where each launch also needs the only bench of its host, which `bench` needs alone.
    pub(super) fn with_a_bench(self) -> Self {
        let bench = "[repository.bench]\nkeeper = \"agent\"\nlimit = 1\n[[rule]]\n\
                     commands = [\"matlab\", \"bench\"]\nacquire = [\"bench\"]\n";
        Self { policy: self.policy + bench, ..self }
    }

    /// Where `sleeper` needs a seat, too.
    pub(super) fn with_sleepers(self) -> Self {
        Self { policy: self.policy.replace("\"matlab\"", "\"matlab\", \"sleeper\""), ..self }
    }

    /// Where the agents that come from now on have a fault.
    pub(super) fn with_fault(self, fault: Option<&'static str>) -> Self {
        Self { fault, ..self }
    }

    /// With this ttl.
    pub(super) fn with(self, ttl: &'static str) -> Self {
        Self { ttl, ..self }
    }

    pub(super) fn host(&self, name: &str) -> (Host, Ways) {
        self.host_at(name, self.ttl)
    }

    /// With a ttl of its own.
    pub(super) fn host_at(&self, name: &str, ttl: &str) -> (Host, Ways) {
        let ways = Ways::to(&self.etcd);
        let settings = ways.settings(&self.prefix, ttl);
        (Host::with_fault(name, &self.policy, &settings, self.fault), ways)
    }

    /// Returns when each of them knows all of them.
    pub(super) fn meet(hosts: &[&Host]) {
        eventually("all hosts know each other", || {
            hosts.iter().all(|host| known(host) == hosts.len()).then_some(())
        });
    }

    /// How a question about the first slot names it.
    pub(super) fn first_slot(&self) -> String {
        self.slot(1)
    }

    /// How a question about any slot names it.
    pub(super) fn any_slot(&self) -> String {
        let prefix = format!("{}s/seats/", self.prefix);
        STANDARD.encode(&prefix[..prefix.len() / 3 * 3])
    }

    /// The revision of the key of a host.
    pub(super) fn revision_of(&self, host: &str) -> u64 {
        let key = format!("{}h/{host}", self.prefix);
        let told = eventually("the key is told", || self.etcd.control(&["get", &key, "-w", "json"]));
        let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        told["kvs"][0]["mod_revision"].as_u64().expect("a revision")
    }

    /// How watches name this one.
    pub(super) fn slot(&self, number: u64) -> String {
        STANDARD.encode(format!("{}s/seats/{number:07}", self.prefix))
    }

    /// What etcd says of the slots, at this revision or now.
    pub(super) fn told(&self, revision: u64) -> serde_json::Value {
        let (prefix, revision) = (format!("{}s/", self.prefix), format!("--rev={revision}"));
        let told = self.etcd.control(&["get", "--prefix", &prefix, &revision, "-w", "json"]);
        serde_json::from_str(&told.expect("the keys")).expect("JSON")
    }

    pub(super) fn revision(&self) -> u64 {
        self.told(0)["header"]["revision"].as_u64().expect("a revision")
    }

    /// How often slots were taken after this revision.
    pub(super) fn taken_since(&self, revision: u64) -> usize {
        let is_new = |at: u64| {
            let told = self.told(at);
            told["kvs"].as_array().is_some_and(|keys| keys.iter().any(|key| key["mod_revision"] == at))
        };
        (revision + 1..=self.revision()).filter(|at| is_new(*at)).count()
    }

    /// Whether there is one slot, the one of this revision: in one answer, since an agent that lost its slot
    /// takes it once more between two.
    pub(super) fn has_the_slot_of(&self, revision: u64) -> bool {
        let told = self.told(0);
        let keys = told["kvs"].as_array().map_or(&[][..], Vec::as_slice);
        matches!(keys, [key] if key["mod_revision"].as_u64().is_some_and(|at| at <= revision))
    }

    /// On which host the slot is that was taken after this revision, and when that was.
    pub(super) fn slot_after(&self, revision: u64) -> (String, u64) {
        let (key, at) = eventually("the slot is taken", || {
            let keys = self.told(0)["kvs"].as_array().cloned().unwrap_or_default();
            let mut keys = keys.into_iter().filter_map(|key| Some((key["mod_revision"].as_u64()?, key)));
            keys.find(|(at, _)| *at > revision).map(|(at, key)| (key, at))
        });
        (value(&key)["host"].as_str().expect("a host").to_owned(), at)
    }

    /// Who waits in the queue in etcd itself, at this revision or now: each key, with the revision at which
    /// it was made.
    pub(super) fn tickets(&self, revision: u64) -> Vec<(String, u64)> {
        let (prefix, revision) = (format!("{}w/", self.prefix), format!("--rev={revision}"));
        let told = self.etcd.control(&["get", "--prefix", &prefix, &revision, "-w", "json"]);
        let told = told.expect("the keys");
        let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        let keys = told["kvs"].as_array().map_or(&[][..], Vec::as_slice);
        let name = |key: &serde_json::Value| String::from_utf8(decoded(&key["key"])).expect("a plain name");
        keys.iter().map(|key| (name(key), key["create_revision"].as_u64().expect("a revision"))).collect()
    }

    /// Whether it ever stood in this ticket, which is there, that its launch does not answer.
    pub(super) fn was_away(&self, ticket: &str) -> bool {
        let mut revision = 0;
        loop {
            let at = format!("--rev={revision}");
            let told = self.etcd.control(&["get", ticket, &at, "-w", "json"]).expect("the key");
            let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
            let Some(key) = told["kvs"].get(0) else { return false };
            if value(key)["is_away"] == true {
                return true;
            }
            revision = key["mod_revision"].as_u64().expect("a revision") - 1;
        }
    }

    /// How many slots there are in etcd itself.
    pub(super) fn slots(&self) -> usize {
        let prefix = format!("{}s/", self.prefix);
        let listed = self.etcd.control(&["get", "--prefix", "--keys-only", &prefix]).expect("the keys");
        listed.lines().filter(|line| !line.is_empty()).count()
    }
}

fn decoded(text: &serde_json::Value) -> Vec<u8> {
    STANDARD.decode(text.as_str().expect("text")).expect("base64")
}

pub(super) fn value(key: &serde_json::Value) -> serde_json::Value {
    serde_json::from_slice(&decoded(&key["value"])).expect("JSON")
}

fn known(host: &Host) -> usize {
    status(host)["site"]["hosts"].as_array().map_or(0, Vec::len)
}
