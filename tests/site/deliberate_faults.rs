//! Agents that are wrong on purpose (`tests/wrong`) are caught by the scenes that sound ones
//! pass.
//!
//! ```sh
//! tests/wrong/run
//! ```

use super::death::keeps_what_another_one_left;
use super::mirror::is_put_right;
use super::scenes::{both_run, has_its_turn, is_overtaken, joins_a_full_line, takes, two_at_once};
use crate::support::needs_etcd;

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn an_agent_that_proves_nothing_is_caught() {
    needs_etcd!();
    assert_eq!(two_at_once(Some("no-proof")), 2);
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn an_agent_that_does_not_prove_the_line_is_caught() {
    needs_etcd!();
    assert!(is_overtaken(Some("no-line-proof")));
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn an_agent_that_does_not_prove_the_end_of_the_line_is_caught() {
    needs_etcd!();
    assert!(joins_a_full_line(Some("no-line-proof")));
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn an_agent_with_a_stale_mirror_is_caught() {
    needs_etcd!();
    assert!(!has_its_turn(Some("stale-mirror")));
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn an_agent_that_only_counts_keys_is_caught() {
    needs_etcd!();
    assert!(!is_put_right(Some("counted-mirror")));
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn an_agent_that_deletes_whosever_slot_it_is_is_caught() {
    needs_etcd!();
    assert!(!keeps_what_another_one_left(Some("whoevers-slot")));
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn an_agent_that_tries_again_blindly_is_caught() {
    needs_etcd!();
    assert_eq!(takes(Some("blind-retry")), 2);
}

#[test]
#[ignore = "for programs that tests/wrong/run builds"]
fn an_agent_without_a_margin_is_caught() {
    needs_etcd!();
    assert_eq!(both_run(Some("no-margin")), 2);
}
