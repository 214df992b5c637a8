//! The thread that feeds the mirror: one complete read, then every change since. If changes were compacted
//! before they were received, or on request, it starts over with a complete read. Every few seconds the watch
//! is restarted, after a check whether it is behind. A dead connection, or a member that hangs, looks like
//! one on which nothing happens. Every third of the ttl it also checks whether the received changes are
//! complete and correct.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    Heard, Key, Keys, Level, Report, Reporter, Site,
    etcd::{Client, ClusterStatus, EtcdError},
    log,
};
use crate::{
    judge::terms::{name_on_site, table_of_site},
    keeper::agent::message::{AboutHost, AboutSite, AboutStore, AboutTrouble, UnreadableSlot},
    sys::process,
    text::Show,
};

/// How long it rests after an error.
const REST: Duration = Duration::from_millis(200);

/// How long a watch lasts at most. One of a member that hangs reports nothing, so no transaction of this host
/// is known to be complete meanwhile.
const LONGEST: Duration = Duration::from_secs(5);

/// Up to this many keys are all compared each time.
const FEW: i64 = 1000;

/// Of more keys, the changed ones are compared, and all of them after this many times.
const ALL_EVERY: u32 = 10;

/// The revision up to which everything was reported, and the etcd.
#[derive(Clone, Copy, Debug)]
struct Known {
    revision: i64,
    generation: u64,
    /// The revision up to which keys were compared, and how often since all were compared.
    compared: i64,
    times: u32,
    /// When that was; none if a watch has ended with an error since: another etcd may answer now.
    listed: Option<Instant>,
}

/// Its settings.
pub(super) struct Watcher {
    pub(super) client: Client,
    pub(super) keys: Keys,
    /// How often keys are compared.
    pub(super) interval: Duration,
    pub(super) reporter: Reporter,
    /// Set to request a complete read.
    pub(super) is_doubted: Arc<AtomicBool>,
}

impl Watcher {
    /// Runs while its reports are received.
    pub(super) fn start(self) {
        thread::spawn(move || self.run());
    }

    fn run(self) {
        let mut known: Option<Known> = None;
        loop {
            match self.advance(&mut known) {
                Ok(true) => {}
                Ok(false) => return,
                Err(trouble) => {
                    if !self.reporter.tell(Report::Deaf(trouble)) {
                        return;
                    }
                    if let Some(known) = &mut known {
                        known.listed = None;
                    }
                    self.client.turn_to_next();
                    thread::sleep(REST);
                }
            }
        }
    }

    /// One watch, to its end. Returns whether there is a receiver.
    fn advance(&self, known: &mut Option<Known>) -> Result<bool, EtcdError> {
        if self.is_doubted.swap(false, Ordering::Relaxed) {
            *known = None;
        }
        let is_fresh = known.is_none();
        let now = match *known {
            Some(known) => known,
            None => {
                let snapshot = self.client.read(&self.keys.all())?;
                let (revision, generation) = (snapshot.revision, snapshot.generation);
                if !self.reporter.tell(Report::Fresh(snapshot)) {
                    return Ok(false);
                }
                Known { revision, generation, compared: revision, times: 0, listed: Some(Instant::now()) }
            }
        };
        let now = known.insert(now);
        if is_fresh || now.listed.is_none_or(|listed| listed.elapsed() >= self.interval) {
            // Whether a change is missing: then this watch does not report it any more.
            let sent = process::since_boot().unwrap_or_default();
            let summary = self.client.summary(&self.keys.all())?;
            self.reporter.tell(Report::Compared { sent, revision: summary.last_change });
            // Another etcd has answered, or one whose data were restored.
            if summary.generation != now.generation {
                *known = None;
                return Ok(true);
            }
            // A member that has just joined was observed to omit changes.
            if !is_fresh && !self.list(now, summary.count)? {
                *known = None;
                return Ok(true);
            }
        }
        let mut watch = self.client.watch(&self.keys.all(), now.revision + 1, self.interval.min(LONGEST))?;
        while let Some(heard) = watch.next()? {
            match heard {
                // A doubt that came before it is noticed below.
                Heard::Begun => {}
                Heard::Compacted => {
                    *known = None;
                    return Ok(true);
                }
                Heard::Changes(changes) => {
                    if let Some((pair, _)) = changes.last() {
                        now.revision = pair.revision;
                        self.client.has_heard(now.generation, pair.revision);
                    }
                    if !self.reporter.tell(Report::Changes(changes)) {
                        return Ok(false);
                    }
                }
            }
            if self.is_doubted.load(Ordering::Relaxed) {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Reports the keys at the revision up to which everything was reported; `count` is about their present
    /// number. Returns whether it is still the same etcd.
    fn list(&self, known: &mut Known, count: i64) -> Result<bool, EtcdError> {
        known.times = (known.times + 1) % ALL_EVERY;
        let since = if count <= FEW || known.times == 0 { 0 } else { known.compared };
        // Changes that were compacted since cannot be reported any more, and there would be more the next
        // time.
        let inventory = self.client.inventory(&self.keys.all(), known.revision, since)?;
        known.listed = Some(Instant::now());
        let Some(inventory) = inventory else { return Ok(true) };
        known.compared = known.revision;
        if inventory.generation != known.generation {
            return Ok(false);
        }
        self.reporter.tell(Report::Listed(inventory));
        Ok(true)
    }
}

// The agent's report on the site.

/// How many slots without a readable value are reported one by one.
const MOST_UNREADABLE: usize = 64;

impl Site {
    /// How it stands.
    pub(in crate::agent) fn about(&self) -> AboutSite {
        let now = process::since_boot().unwrap_or_default();
        let seen = self.presence.confirmed().map(|confirmed| now.saturating_sub(confirmed));
        AboutSite {
            host: self.host.clone(),
            endpoints: self.endpoints.clone(),
            prefix: self.keys.prefix().to_owned(),
            ttl: self.ttl,
            is_open: self.is_open(),
            seen,
            left: self.presence.deadline().map(|deadline| deadline.saturating_sub(now)),
            lag: self.mirror.lag(self.ttl),
            leases_lost: self.presence.leases_lost(),
            trouble: self.about_trouble(),
            store: self.condition.map(|ClusterStatus { size, quota, is_full, uncompacted }| AboutStore {
                size,
                quota,
                is_full,
                uncompacted,
            }),
            hosts: self.about_hosts(now),
            unreadable: self.unreadable_slots().collect(),
            requests: Some(self.client.latency()),
        }
    }

    fn about_trouble(&self) -> Option<AboutTrouble> {
        if let Some((text, since)) = self.presence.twin() {
            let advice = "give each host its own name, and restart its agent".to_owned();
            return Some(AboutTrouble {
                text: text.to_owned(),
                advice: Some(advice),
                lasts: since.elapsed(),
            });
        }
        if let (Some(text), Some((lasts, _))) = (self.why_held_back(), self.is_held_back()) {
            return Some(AboutTrouble { text, advice: None, lasts });
        }
        let Some((trouble, since)) = self.presence.trouble() else { return self.about_unreadable_slots() };
        let advice = trouble.advice().map(str::to_owned);
        Some(AboutTrouble { text: trouble.to_string(), advice, lasts: since.elapsed() })
    }

    /// A slot without a readable value stays in use for ever: no host recognizes it as its own.
    fn about_unreadable_slots(&self) -> Option<AboutTrouble> {
        let (since, slots) = &self.unreadable;
        let first = self.unreadable_slots().next()?;
        let text = match slots.len() {
            1 => first.text(),
            count => format!(
                "{count} slots have no readable holder: the values of {} and others were not written by an agent",
                first.key.shown()
            ),
        };
        let advice = first.advice();
        Some(AboutTrouble { text, advice: Some(advice), lasts: since.elapsed() })
    }

    /// Finds these slots.
    pub(super) fn look_for_unreadable_slots(&mut self) {
        let slots = self.mirror.tables().flat_map(|(table, of)| of.slots.iter().map(move |at| (table, at)));
        let unreadable = slots.filter(|(_, (_, at))| at.record.is_none());
        let slots: BTreeSet<(String, u64)> =
            unreadable.map(|(table, (slot, _))| (table.clone(), *slot)).collect();
        let (since, before) = std::mem::replace(&mut self.unreadable, (Instant::now(), slots));
        if !before.is_empty() {
            self.unreadable.0 = since;
        }
        for found in self.unreadable_slots() {
            let of_site = name_on_site(&found.table).unwrap_or_default().to_owned();
            if before.contains(&(of_site, found.slot)) {
                continue;
            }
            log(Level::Warning, &format!("{}; {}", found.text(), found.advice()));
        }
    }

    /// The first of them, with their keys.
    fn unreadable_slots(&self) -> impl Iterator<Item = UnreadableSlot> {
        self.unreadable.1.iter().take(MOST_UNREADABLE).map(|(table, slot)| UnreadableSlot {
            table: table_of_site(table),
            slot: *slot,
            key: self.keys.name(&Key::Slot(table.clone(), *slot)),
        })
    }

    fn about_hosts(&self, now: Duration) -> Vec<AboutHost> {
        let (mut held, mut waiting) = (self.mirror.held_by_host(), self.mirror.waiting_by_host());
        let about = |name: String| {
            let here = self.mirror.host(&name);
            let record = here.or(self.mirror.last_of(&name).0);
            let absent = self.absences.since(&name).map(|since| {
                let absent = now.saturating_sub(since);
                (absent, self.mirror.ttl_of(&name, self.ttl).saturating_sub(absent))
            });
            AboutHost {
                version: record.map(|record| record.version.clone()),
                lease: here.and_then(|of| u64::try_from(of.lease).ok()),
                absent,
                waiting: waiting.remove(&name).unwrap_or_default(),
                held: held.remove(&name).unwrap_or_default().into_iter().collect(),
                repositories: here
                    .map(|record| record.repositories.clone().into_iter().collect())
                    .unwrap_or_default(),
                name,
            }
        };
        self.mirror.hosts().into_iter().map(about).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, channel},
        thread::JoinHandle,
    };

    use serde_json::{Value, json};

    use super::*;
    use crate::{
        agent::site::etcd::tests::{found, member, refused, unfinished},
        sys::Bell,
    };

    const INTERVAL: Duration = Duration::from_secs(60);

    const BEGUN: &str = "{\"result\":{\"created\":true}}\n";

    /// A key that was written at revision 5, as etcd shows it at this revision.
    fn one_key(now: i64) -> String {
        found(now, "/test/a", b"x", Some(5))
    }

    fn watcher(answers: &[String]) -> (Watcher, Receiver<Report>, JoinHandle<Vec<Value>>) {
        let (client, member) = member(answers);
        let (reports, heard) = channel();
        let watcher = Watcher {
            client,
            keys: Keys::below("/test/"),
            interval: INTERVAL,
            reporter: Reporter { reports, bell: Arc::new(Bell::new().expect("a bell")) },
            is_doubted: Arc::default(),
        };
        (watcher, heard, member)
    }

    /// One watch, which lasts until the member ends its answer. That is an error.
    fn watches(watcher: &Watcher, known: &mut Option<Known>) {
        let ended = watcher.advance(known).expect_err("the answer has ended");
        assert!(ended.to_string().ends_with(": it ended the watch"), "{ended}");
    }

    /// Its keys were compared so long ago that this is due.
    fn known(revision: i64, generation: u64, compared: i64, times: u32) -> Known {
        let listed = Some(Instant::now().checked_sub(INTERVAL).expect("a moment"));
        Known { revision, generation, compared, times, listed }
    }

    fn words(reports: &Receiver<Report>) -> Vec<&'static str> {
        let word = |report| match report {
            Report::Fresh(_) => "fresh",
            Report::Compared { .. } => "compared",
            Report::Listed(_) => "listed",
            Report::Changes(_) => "changes",
            _ => "something else",
        };
        reports.try_iter().map(word).collect()
    }

    /// One complete read, then every change since: each watch begins with the revision after the last one.
    #[test]
    fn a_watch_begins_after_what_was_reported() {
        let change =
            json!({ "result": { "events": [{ "kv": { "key": "L3Rlc3QvYQ==", "mod_revision": "9" } }] } });
        let answers =
            [one_key(7), one_key(7), format!("{BEGUN}{change}\n"), one_key(9), one_key(9), BEGUN.to_owned()];
        let (watcher, reports, member) = watcher(&answers);
        let mut known = None;
        watches(&watcher, &mut known);
        assert_eq!(words(&reports), ["fresh", "compared", "changes"]);
        let reported = known.as_mut().expect("all was read");
        assert_eq!(reported.revision, 9);
        reported.listed = self::known(9, 0, 7, 0).listed;
        watches(&watcher, &mut known);
        assert_eq!(words(&reports), ["compared", "listed"]);
        let asked = member.join().expect("six requests");
        let begins = |watch: usize| &asked[watch]["create_request"]["start_revision"];
        assert_eq!((begins(2), begins(5)), (&"8".into(), &"10".into()));
        assert_eq!(asked[4]["revision"], "9", "what was reported is compared");
    }

    /// An etcd that is at an earlier revision than a reported change was restored: everything is read again.
    #[test]
    fn a_restore_behind_a_reported_change_is_noticed() {
        let change = json!({ "result": { "events": [{ "kv": { "mod_revision": "9" } }] } });
        let answers = [one_key(7), one_key(7), format!("{BEGUN}{change}\n"), one_key(8)];
        let (watcher, reports, _member) = watcher(&answers);
        let mut known = None;
        watches(&watcher, &mut known);
        assert_eq!((words(&reports), known.is_some()), (vec!["fresh", "compared", "changes"], true));
        known.as_mut().expect("all was read").listed = self::known(9, 0, 7, 0).listed;
        assert_eq!(watcher.advance(&mut known), Ok(true));
        assert_eq!((words(&reports), known.is_some()), (vec!["compared"], false));
    }

    /// Few keys are all compared each time. Of many, those that were changed since the last time are
    /// compared, and all of them every tenth time.
    #[test]
    fn all_keys_are_compared_every_tenth_time() {
        for (times, count, are_all) in
            [(0, 1000, true), (0, 1001, false), (8, 1001, false), (9, 1001, true), (8, 1000, true)]
        {
            let (watcher, reports, member) = watcher(&[one_key(9)]);
            let mut known = known(9, 0, 5, times);
            assert_eq!(watcher.list(&mut known, count), Ok(true));
            assert_eq!((words(&reports), known.compared), (vec!["listed"], 9));
            let asked = member.join().expect("a request");
            let since = if are_all { Value::Null } else { "6".into() };
            assert_eq!(asked[0]["min_mod_revision"], since, "{times} {count}");
        }
    }

    /// A watch that is restarted before keys have to be compared again reads nothing. If keys are compared,
    /// the time begins again.
    #[test]
    fn a_watch_is_restarted_more_often_than_keys_are_compared() {
        let answers = [one_key(7), one_key(7), BEGUN.to_owned(), BEGUN.to_owned()];
        let (watcher, reports, member) = watcher(&answers);
        let mut known = Some(known(7, 0, 7, 0));
        watches(&watcher, &mut known);
        assert_eq!(words(&reports), ["compared", "listed"]);
        watches(&watcher, &mut known);
        assert_eq!(words(&reports), [""; 0]);
        let asked = member.join().expect("four requests");
        assert_eq!(asked[3]["create_request"]["start_revision"], "8");
    }

    /// A member that hangs closes no connection, and reports no changes. So the watch is restarted soon,
    /// however long the ttl is.
    #[test]
    fn a_watch_of_a_member_that_hangs_ends_soon() {
        let (watcher, reports, _member) = watcher(&[one_key(7), one_key(7), unfinished(BEGUN)]);
        let (begun, mut known) = (Instant::now(), None);
        assert_eq!(watcher.advance(&mut known), Ok(true));
        assert!(begun.elapsed() < INTERVAL, "{} s", begun.elapsed().as_secs());
        assert_eq!((words(&reports), known.is_some()), (vec!["fresh", "compared"], true));
    }

    /// A watch that ends without an event is restarted after a rest, and the error is reported. A proxy that
    /// ends each of them is not asked all the time.
    #[test]
    fn a_watch_that_has_no_answer_is_an_error() {
        let (watcher, reports, member) = watcher(&[one_key(7), one_key(7), String::new()]);
        let mut known = None;
        watches(&watcher, &mut known);
        assert_eq!((words(&reports), known.is_some()), (vec!["fresh", "compared"], true));
        member.join().expect("three requests");
    }

    /// Keys at a revision that was compacted cannot be compared any more. The watch continues, and later ones
    /// are compared.
    #[test]
    fn what_was_compacted_is_not_compared() {
        let compacted = refused("etcdserver: mvcc: required revision has been compacted");
        let (watcher, reports, _member) = watcher(&[compacted, one_key(9)]);
        let mut known = known(9, 0, 5, 0);
        assert_eq!(watcher.list(&mut known, 1), Ok(true));
        assert_eq!((words(&reports), known.compared), (vec![], 5));
        assert_eq!(watcher.list(&mut known, 1), Ok(true));
        assert_eq!((words(&reports), known.compared), (vec!["listed"], 9));
        // Every other error ends the watch.
        let (watcher, reports, _member) = self::watcher(&[refused("etcdserver: no leader")]);
        assert!(watcher.list(&mut known, 1).is_err());
        assert_eq!(words(&reports), [""; 0]);
    }

    /// On request, and when another etcd answers or changes were compacted, everything is read again.
    #[test]
    fn a_watch_that_may_have_missed_changes_starts_over() {
        let known_in = |generation| Some(known(7, generation, 7, 0));
        let (watcher, reports, _member) = watcher(&[one_key(7), one_key(7), BEGUN.to_owned()]);
        watcher.is_doubted.store(true, Ordering::Relaxed);
        let mut known = known_in(0);
        watches(&watcher, &mut known);
        assert_eq!((words(&reports), known.is_some()), (vec!["fresh", "compared"], true));
        let (watcher, reports, _member) = self::watcher(&[one_key(7)]);
        let mut known = known_in(1);
        assert_eq!(watcher.advance(&mut known), Ok(true));
        assert_eq!((words(&reports), known.is_some()), (vec!["compared"], false));
        let (watcher, reports, _member) = self::watcher(&[one_key(7)]);
        let mut known = self::known(7, 1, 7, 0);
        assert_eq!((watcher.list(&mut known, 1), words(&reports)), (Ok(false), vec![]));
        // A watch that etcd ends for another reason is an error.
        let canceled = "{\"result\":{\"canceled\":true,\"cancel_reason\":\"no\"}}\n".to_owned();
        let (watcher, _reports, _member) = self::watcher(&[one_key(7), one_key(7), canceled]);
        assert!(watcher.advance(&mut known_in(0)).is_err());
        let compacted = "{\"result\":{\"canceled\":true,\"compact_revision\":\"9\"}}\n".to_owned();
        let (watcher, reports, _member) = self::watcher(&[one_key(7), one_key(7), compacted]);
        let mut known = known_in(0);
        assert_eq!(watcher.advance(&mut known), Ok(true));
        assert_eq!((words(&reports), known.is_some()), (vec!["compared", "listed"], false));
    }
}
