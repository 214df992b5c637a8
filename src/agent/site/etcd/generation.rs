//! Whether it is still the same etcd: one that was restored from a backup, or another one altogether, has
//! another cluster id, or its revision goes back. Each time that is seen a generation begins, and whatever
//! rests on what was read before it no longer counts.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::message::Header;

/// What is known of the etcd that answers.
#[derive(Debug, Default)]
pub(super) struct Generations(Mutex<Known>);

#[derive(Clone, Debug, Default)]
struct Known {
    generation: u64,
    cluster: Option<String>,
    /// The highest revision that was heard of.
    revision: i64,
}

/// How it was when a question was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    generation: u64,
    revision: i64,
}

impl Generations {
    /// A question is about to be sent.
    pub(super) fn ask(&self) -> Asked {
        let known = self.known();
        Asked { generation: known.generation, revision: known.revision }
    }

    /// It was answered, as linearizable questions are. Says of which generation the answer is.
    pub(super) fn answered(&self, asked: Asked, header: &Header) -> u64 {
        let mut known = self.known();
        let is_another = known.cluster.as_ref().is_some_and(|cluster| *cluster != header.cluster_id);
        // Of what was asked in an earlier generation nothing follows for this one.
        let went_back = asked.generation == known.generation && header.revision.0 < asked.revision;
        if is_another || went_back {
            *known = Known { generation: known.generation + 1, cluster: None, revision: 0 };
        }
        known.cluster.get_or_insert_with(|| header.cluster_id.clone());
        known.revision = known.revision.max(header.revision.0);
        known.generation
    }

    /// A change was heard of, at this revision.
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
        // Asked before that was known.
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
}
