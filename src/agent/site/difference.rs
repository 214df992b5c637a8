//! The necessary changes of this host's keys: compares the wanted keys with the present ones. Pure: it knows
//! neither etcd nor the agent.

use super::{AgentId, Key, NoticeRecord, SlotRecord, TicketRecord, record::bytes};
use crate::agent::ledger::state::SavedStamps;

/// The value of a key of this host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Value {
    Slot(SlotRecord),
    Ticket(TicketRecord),
    Notice(NoticeRecord),
    Stamps(SavedStamps),
}

/// A key as it is known to be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Present {
    pub(super) revision: i64,
    /// None if it is unreadable.
    pub(super) value: Option<Value>,
    /// Whether this host has written it; for the last use of a table, whether it must be forgotten.
    pub(super) is_own: bool,
}

/// A change of one key, with the revision of its last write; 0 if it does not exist.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Change {
    pub(super) key: Key,
    pub(super) at: i64,
    /// None if the key is deleted.
    pub(super) value: Option<Value>,
}

/// The changes to make.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Difference {
    /// Keys are written before others are deleted. So the key of a slot in use always exists, and no launch
    /// loses its position to a later one.
    pub(super) changes: Vec<Change>,
    /// Wanted keys that belong to another host.
    pub(super) taken: Vec<Key>,
}

/// The necessary changes of these keys.
pub(super) fn diff<'a>(
    keys: impl IntoIterator<Item = &'a Key>,
    wanted: impl Fn(&Key) -> Option<Value>,
    present: impl Fn(&Key) -> Option<Present>,
) -> Difference {
    let mut difference = Difference::default();
    let mut deletes = Vec::new();
    for key in keys {
        let put = |at, value| Change { key: key.clone(), at, value: Some(value) };
        match (wanted(key), present(key)) {
            (Some(value), None) => difference.changes.push(put(0, value)),
            (Some(value), Some(there)) if value.is_said_by(&there) => {}
            (Some(value), Some(there)) if there.is_own || value.is_of_all() => {
                difference.changes.push(put(there.revision, value));
            }
            (Some(_), Some(_)) => difference.taken.push(key.clone()),
            (None, Some(there)) if there.is_own => {
                deletes.push(Change { key: key.clone(), at: there.revision, value: None });
            }
            (None, _) => {}
        }
    }
    difference.changes.append(&mut deletes);
    difference
}

impl Value {
    /// Whether this host may change a key of another host to this value: a last use of a table, or a notice
    /// that gets the reply of its host.
    fn is_of_all(&self) -> bool {
        matches!(self, Self::Stamps(_) | Self::Notice(_))
    }

    /// Whether a key already has this value; for a slot, whether this process has it.
    fn is_said_by(&self, there: &Present) -> bool {
        match (self, &there.value) {
            (Self::Slot(wanted), Some(Self::Slot(slot))) => {
                wanted.is_same(slot) && wanted.has_ended() == slot.has_ended()
            }
            (wanted, Some(value)) => wanted == value,
            (_, None) => false,
        }
    }

    /// The host that has written it, and its agent; none if any host may have.
    pub(super) fn writer(&self) -> Option<(&str, &AgentId)> {
        match self {
            Self::Slot(record) => Some((&record.host, &record.agent)),
            Self::Ticket(record) => Some((&record.host, &record.agent)),
            Self::Notice(record) => Some((&record.host, &record.agent)),
            Self::Stamps(_) => None,
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Slot(record) => bytes(record),
            Self::Ticket(record) => bytes(record),
            Self::Notice(record) => bytes(record),
            Self::Stamps(stamps) => bytes(stamps),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        time::Duration,
    };

    use proptest::prelude::*;

    use super::*;
    use crate::agent::site::Reply;

    type Table = BTreeMap<Key, Present>;

    fn slot(number: u64) -> Key {
        Key::Slot("a".to_owned(), number)
    }

    fn ticket(number: u64) -> Key {
        Key::Ticket("a".to_owned(), number)
    }

    fn held_by(pid: i32) -> Value {
        let record = r#"{"host":"lab","agent":"x","pid":0,"start":1,"uid":1,"hold":"process","command":"","rule":"","launch":1,"since":1}"#;
        let record: SlotRecord = serde_json::from_str(record).expect("a record");
        Value::Slot(SlotRecord { pid, ..record })
    }

    fn waits(is_away: bool) -> Value {
        let record =
            r#"{"host":"lab","agent":"x","pid":1,"uid":1,"command":"","classes":[],"is_away":false}"#;
        let record: TicketRecord = serde_json::from_str(record).expect("a record");
        Value::Ticket(TicketRecord { is_away, ..record })
    }

    fn there(revision: i64, value: Value, is_own: bool) -> Present {
        Present { revision, value: Some(value), is_own }
    }

    fn diff_of(wanted: &BTreeMap<Key, Value>, table: &Table) -> Difference {
        let keys: BTreeSet<Key> = wanted.keys().chain(table.keys()).cloned().collect();
        diff(&keys, |key| wanted.get(key).cloned(), |key| table.get(key).cloned())
    }

    /// Like etcd, all or nothing.
    fn carry_out(table: &mut Table, changes: &[Change], revision: i64) -> bool {
        let at = |key: &Key| table.get(key).map_or(0, |there| there.revision);
        if !changes.iter().all(|change| at(&change.key) == change.at) {
            return false;
        }
        for Change { key, value, .. } in changes {
            match value {
                Some(value) => drop(table.insert(key.clone(), there(revision, value.clone(), true))),
                None => drop(table.remove(key)),
            }
        }
        true
    }

    /// For a slot, only its holder counts. An unreadable value never counts.
    #[test]
    fn what_is_there_as_it_should_be_is_left_alone() {
        let wanted = BTreeMap::from([(slot(1), held_by(7)), (ticket(1), waits(false))]);
        let other_launch = match held_by(7) {
            Value::Slot(record) => Value::Slot(SlotRecord { launch: 99, rule: "other".to_owned(), ..record }),
            other => other,
        };
        let table = BTreeMap::from([
            (slot(1), there(4, other_launch, true)),
            (ticket(1), there(5, waits(false), true)),
            (slot(2), Present { revision: 6, value: None, is_own: false }),
        ]);
        assert_eq!(diff_of(&wanted, &table), Difference::default());
    }

    /// Other hosts see that the program of a slot has ended.
    #[test]
    fn the_key_of_a_slot_that_lingers_says_so() {
        let ended = match held_by(7) {
            Value::Slot(record) => Value::Slot(SlotRecord { lingers_until: Some(1), ..record }),
            other => other,
        };
        let wanted = BTreeMap::from([(slot(1), ended.clone())]);
        let table = BTreeMap::from([(slot(1), there(4, held_by(7), true))]);
        let change = Change { key: slot(1), at: 4, value: Some(ended) };
        assert_eq!(diff_of(&wanted, &table), Difference { changes: vec![change], taken: Vec::new() });
    }

    /// No launch loses its position to a later one: missing keys are written before superfluous ones are
    /// deleted.
    #[test]
    fn what_is_missing_is_written_before_what_is_left_goes() {
        let wanted = BTreeMap::from([(ticket(9), waits(false))]);
        let table = BTreeMap::from([(slot(1), there(4, held_by(7), true))]);
        let Difference { changes, taken } = diff_of(&wanted, &table);
        let put = Change { key: ticket(9), at: 0, value: Some(waits(false)) };
        assert_eq!(changes, [put, Change { key: slot(1), at: 4, value: None }]);
        assert_eq!(taken, []);
    }

    #[test]
    fn what_others_have_is_neither_written_nor_deleted() {
        let wanted = BTreeMap::from([(slot(1), held_by(7))]);
        let table =
            BTreeMap::from([(slot(1), there(4, held_by(8), false)), (slot(2), there(5, held_by(9), false))]);
        assert_eq!(diff_of(&wanted, &table), Difference { changes: Vec::new(), taken: vec![slot(1)] });
    }

    /// A pause lasts, unless it must be forgotten. Any host may write another last use.
    #[test]
    fn the_last_use_of_a_table_stays_until_it_must_be_forgotten() {
        let used = |second| SavedStamps {
            last_start: None,
            last_end: Some(Duration::from_secs(second)),
            started_by: None,
            longest_pause: Duration::MAX,
        };
        let key = Key::Stamps("a".to_owned());
        for is_reset in [false, true] {
            let table = BTreeMap::from([(key.clone(), there(4, Value::Stamps(used(2)), is_reset))]);
            let gone = Change { key: key.clone(), at: 4, value: None };
            let changes = if is_reset { vec![gone] } else { Vec::new() };
            assert_eq!(diff_of(&BTreeMap::new(), &table), Difference { changes, taken: Vec::new() });
            let later = BTreeMap::from([(key.clone(), Value::Stamps(used(3)))]);
            let put = Change { key: key.clone(), at: 4, value: Some(Value::Stamps(used(3))) };
            assert_eq!(diff_of(&later, &table), Difference { changes: vec![put], taken: Vec::new() });
        }
    }

    /// The host of a holder writes its reply over the notice of another host, and never deletes that.
    #[test]
    fn a_notice_of_another_host_is_replied_to_and_left() {
        let Value::Slot(holder) = held_by(7) else { panic!("a slot") };
        let notice = |reply| {
            let (host, agent) = ("other".to_owned(), AgentId::default());
            Value::Notice(NoticeRecord { host, agent, by: None, holder: holder.clone(), reply })
        };
        let key = Key::Notice("a".to_owned(), 1);
        let table = BTreeMap::from([(key.clone(), there(4, notice(None), false))]);
        let replied = notice(Some(Reply::NotOverdue));
        let wanted = BTreeMap::from([(key.clone(), replied.clone())]);
        let change = Change { key, at: 4, value: Some(replied) };
        assert_eq!(diff_of(&wanted, &table), Difference { changes: vec![change], taken: Vec::new() });
        assert_eq!(diff_of(&BTreeMap::new(), &table), Difference::default());
    }

    fn value() -> impl Strategy<Value = (Key, Value)> {
        prop_oneof![
            (1..9_u64, 1..3).prop_map(|(number, pid)| (slot(number), held_by(pid))),
            (1..9_u64, any::<bool>()).prop_map(|(number, is_away)| (ticket(number), waits(is_away))),
        ]
    }

    proptest! {
        /// For any initial keys, and any number of changes in one transaction: after a few transactions all
        /// wanted keys exist, no keys of others were changed, and no correct key was changed.
        #[test]
        fn some_transactions_make_the_keys_what_they_should_be(
            wanted in proptest::collection::btree_map(value().prop_map(|(key, _)| key), Just(()), 0..12),
            values in proptest::collection::vec(value(), 24),
            own in proptest::collection::vec(any::<bool>(), 24),
            at_once in 1..5_usize,
        ) {
            let of = |key: &Key| values.iter().find(|(other, _)| other == key).map(|(_, value)| value.clone());
            let wanted: BTreeMap<Key, Value> =
                wanted.into_keys().filter_map(|key| Some((key.clone(), of(&key)?))).collect();
            let mut table: Table = values
                .iter()
                .rev()
                .zip(own)
                .enumerate()
                .filter(|(index, _)| index % 2 == 0)
                .map(|(index, ((key, value), is_own))| {
                    (key.clone(), there(i64::try_from(index).expect("a few") + 1, value.clone(), is_own))
                })
                .collect();
            let before = table.clone();
            for round in 0..40 {
                let changes = diff_of(&wanted, &table).changes;
                let first: Vec<Change> = changes.into_iter().take(at_once).collect();
                prop_assert!(first.iter().all(|change| before.get(&change.key).is_none_or(|there| there.is_own)));
                prop_assert!(carry_out(&mut table, &first, 100 + round), "{first:?}");
            }
            let Difference { changes, taken } = diff_of(&wanted, &table);
            prop_assert_eq!(changes, []);
            for (key, value) in &wanted {
                prop_assert!(taken.contains(key) || value.is_said_by(&table[key]));
            }
            for (key, there) in &before {
                let is_right = wanted.get(key).is_some_and(|value| value.is_said_by(there));
                prop_assert!(table.get(key) == Some(there) || !is_right && there.is_own);
            }
            let left = table.iter().filter(|(_, there)| there.is_own);
            prop_assert!(left.into_iter().all(|(key, _)| wanted.contains_key(key)));
        }

        /// The same with a mirror that is behind, lost answers, late transactions, and agents that die. No
        /// slot in use is ever deleted. No released slot is taken again before its key is deleted. In the end
        /// all keys are correct.
        #[test]
        fn late_and_lost_answers_delete_no_slot_that_is_in_use(
            steps in proptest::collection::vec((0..11_u8, 1..4_u64), 0..120),
        ) {
            let mut model = Model::new(true);
            for (step, slot) in steps {
                model.step(step, slot).map_err(TestCaseError::fail)?;
            }
            model.comes_to_rest().map_err(TestCaseError::fail)?;
        }
    }

    /// Shows that the fences are necessary: without them a late transaction deletes a slot that was taken
    /// again.
    #[test]
    fn changes_without_fences_are_found_out() {
        let lost = (0..5_000_u64).any(|seed| {
            let mut model = Model::new(false);
            let mut throw = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (0..60).any(|_| {
                throw = throw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (step, slot) = ((throw >> 33) % 11, (throw >> 50) % 3 + 1);
                model.step(u8::try_from(step).expect("a step"), slot).is_err()
            })
        });
        assert!(lost);
    }

    /// One agent, its keys in etcd, and a mirror that is behind.
    struct Model {
        etcd: Vec<Table>,
        /// The revision of the host's key, in etcd and as the agent has written it.
        host: i64,
        registration: Option<i64>,
        /// The revision of the mirror.
        mirror: usize,
        written: BTreeMap<Key, (i64, Option<Value>)>,
        /// The slots of holdings, and released slots that are still held in memory.
        wanted: BTreeMap<Key, Value>,
        leaving: BTreeSet<Key>,
        sent: Option<(i64, Vec<Change>)>,
        late: Vec<(i64, Vec<Change>)>,
        /// Whether etcd compares the revisions, of the host's key and of each key.
        is_fenced: bool,
    }

    impl Model {
        fn new(is_fenced: bool) -> Self {
            Self {
                etcd: vec![Table::new(), Table::new()],
                host: 1,
                registration: Some(1),
                mirror: 1,
                written: BTreeMap::new(),
                wanted: BTreeMap::new(),
                leaving: BTreeSet::new(),
                sent: None,
                late: Vec::new(),
                is_fenced,
            }
        }

        fn revision(&self) -> i64 {
            i64::try_from(self.etcd.len()).expect("a few")
        }

        fn now(&self) -> &Table {
            self.etcd.last().expect("a table")
        }

        fn has_settled(&self) -> bool {
            let is_seen = |registration| registration <= i64::try_from(self.mirror).expect("a few");
            self.registration.is_some_and(is_seen)
        }

        fn present(&self, key: &Key) -> Option<Present> {
            match self.written.get(key) {
                Some((at, value)) if *at > i64::try_from(self.mirror).expect("a few") => {
                    Some(there(*at, value.clone()?, true))
                }
                _ => self.etcd[self.mirror].get(key).cloned(),
            }
        }

        /// etcd commits a transaction, if its conditions hold.
        fn commit(&mut self, fence: i64, changes: &[Change]) -> Result<bool, String> {
            let (mut table, revision) = (self.now().clone(), self.revision());
            if self.is_fenced && fence != self.host {
                return Ok(false);
            }
            let at = |key: &Key| table.get(key).map_or(0, |there| there.revision);
            let unfenced: Vec<Change> =
                changes.iter().map(|change| Change { at: at(&change.key), ..change.clone() }).collect();
            let changes = if self.is_fenced { changes } else { &unfenced };
            if !carry_out(&mut table, changes, revision) {
                return Ok(false);
            }
            for Change { key, value, .. } in changes {
                if value.is_none() && matches!(key, Key::Slot(..)) && self.wanted.contains_key(key) {
                    return Err(format!("{key:?} was deleted while it is in use"));
                }
            }
            self.etcd.push(table);
            Ok(true)
        }

        fn step(&mut self, step: u8, number: u64) -> Result<(), String> {
            let key = slot(number);
            match step {
                // A proof: the slot is free in etcd, and not promised to a launch of this host.
                0 | 1 if !self.now().contains_key(&key) && !self.leaving.contains(&key) => {
                    let value = held_by(i32::try_from(self.etcd.len()).expect("a few"));
                    let change = Change { key: key.clone(), at: 0, value: Some(value.clone()) };
                    let revision = self.revision();
                    if !self.wanted.contains_key(&key)
                        && let Some(registration) = self.registration
                        && self.commit(registration, &[change])?
                    {
                        self.wanted.insert(key.clone(), value.clone());
                        self.written.insert(key, (revision, Some(value)));
                    }
                }
                2 if self.wanted.remove(&key).is_some() => drop(self.leaving.insert(key)),
                3 | 4 => self.mirror = (self.mirror + 1).min(self.etcd.len() - 1),
                5 => self.send(),
                // The answer arrives, or it is lost; then the transaction may be committed later.
                6 => self.on_answer()?,
                7 | 8 => {
                    if let Some((fence, changes)) = self.sent.take() {
                        self.registration = None;
                        if step == 7 {
                            self.commit(fence, &changes)?;
                        } else {
                            self.late.push((fence, changes));
                        }
                    }
                }
                10 => self.restart(),
                9 if self.registration.is_none() => self.register(),
                9 => {
                    if let Some((fence, changes)) = self.late.pop() {
                        self.commit(fence, &changes)?;
                    }
                }
                _ => {}
            }
            Ok(())
        }

        /// The agent dies, and the next one knows from the saved state which slots are in use. It reads
        /// everything again. Pending transactions may still be committed.
        fn restart(&mut self) {
            self.late.extend(self.sent.take());
            self.registration = None;
            self.written.clear();
            self.leaving.clear();
            self.mirror = self.etcd.len() - 1;
        }

        fn register(&mut self) {
            self.host = self.revision();
            self.registration = Some(self.host);
            self.etcd.push(self.now().clone());
        }

        fn send(&mut self) {
            if !self.has_settled() || self.sent.is_some() {
                return;
            }
            let leaving = std::mem::take(&mut self.leaving);
            self.leaving = leaving.into_iter().filter(|key| self.present(key).is_some()).collect();
            let keys: BTreeSet<Key> = (1..4).map(slot).collect();
            let wanted = |key: &Key| self.wanted.get(key).cloned();
            let changes = diff(&keys, wanted, |key| self.present(key)).changes;
            self.sent = self.registration.map(|registration| (registration, changes));
        }

        fn on_answer(&mut self) -> Result<(), String> {
            if let Some((fence, changes)) = self.sent.take() {
                let revision = self.revision();
                if self.commit(fence, &changes)? {
                    let writes = changes.into_iter().map(|change| (change.key, (revision, change.value)));
                    self.written.extend(writes);
                }
            }
            Ok(())
        }

        fn comes_to_rest(&mut self) -> Result<(), String> {
            for _ in 0..5 {
                self.on_answer()?;
                if self.registration.is_none() {
                    self.register();
                }
                self.mirror = self.etcd.len() - 1;
                self.send();
            }
            let own: Vec<&Key> = self.now().keys().collect();
            let wanted: Vec<&Key> = self.wanted.keys().collect();
            if own == wanted && self.leaving.is_empty() {
                Ok(())
            } else {
                Err(format!("{own:?}, {wanted:?}"))
            }
        }
    }
}
