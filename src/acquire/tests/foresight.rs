//! What is foreseen is what happens, whatever is held, whoever waits and whatever is wanted.

use std::ptr;

use proptest::{collection::vec, option, prelude::*, sample::select};

use super::stage::{But, Tables, claim, shown, tables};
use crate::{
    acquire::{Blocked, Refusal},
    judge::terms::{Admit, Claim, Demand, ElapsedFrom, TooSoon},
};

const NAMES: [&str; 3] = ["a", "b", "c"];

type Others = (Vec<u64>, Option<(u64, u64)>, Option<u64>, Option<u64>);

fn others() -> impl Strategy<Value = Others> {
    let line = prop_oneof![3 => Just(None), 1 => (1..4_u64, 0..4_u64).prop_map(Some)];
    (vec(1..6_u64, 0..4), line, option::of(0..120_u64), option::of(0..120_u64))
}

fn claims() -> impl Strategy<Value = Claim> {
    let zones = prop_oneof![
        3 => Just(None),
        1 => Just(Some(vec![])),
        2 => vec((1..4_u64, 0..3_u64), 1..3).prop_map(|zones| {
            let zones = zones.into_iter().scan(0, |end, (gap, more)| {
                let first = *end + gap;
                *end = first + more;
                Some(first..=*end)
            });
            Some(zones.collect::<Vec<_>>())
        }),
    ];
    let pause =
        (select(vec![ElapsedFrom::Start, ElapsedFrom::End]), select(vec![TooSoon::Refuse, TooSoon::Ok]));
    let admit = select(vec![Admit::WithinLimit, Admit::WithinLimit, Admit::Always, Admit::Unenforced]);
    let amount =
        (0..5_u64, option::weighted(0.2, 0..4_u64), prop_oneof![9 => 1..3_u32, 1 => Just(0)], zones, admit);
    (select(NAMES.to_vec()), amount, option::weighted(0.3, pause)).prop_map(
        |(name, (limit, ceiling, slots, zones, admit), pause)| {
            let mut claim = claim(name, limit).admit(admit);
            claim = if slots == 0 { claim.all() } else { claim.slots(slots) };
            claim.amount.ceiling = ceiling;
            if let Some(zones) = zones {
                claim = claim.zones(&zones);
            }
            match pause {
                Some((from, too_soon)) => claim.pause(60, from, too_soon),
                None => claim,
            }
        },
    )
}

fn demands() -> impl Strategy<Value = Vec<Demand>> {
    let any_of = vec(vec(claims(), 1..3), 1..4).prop_map(Demand::AnyOf);
    vec(prop_oneof![claims().prop_map(Demand::One), any_of], 0..4)
}

/// Whether these claims are one alternative of each demand, as a whole and in order.
fn is_one_of_each(claims: &[&Claim], demands: &[Demand]) -> bool {
    let Some((demand, rest)) = demands.split_first() else { return claims.is_empty() };
    demand.alternatives().any(|alternative| {
        let is_taken =
            |taken: &[&Claim]| alternative.iter().zip(taken).all(|(one, other)| ptr::eq(one, *other));
        claims
            .split_at_checked(alternative.len())
            .is_some_and(|(taken, left)| is_taken(taken) && is_one_of_each(left, rest))
    })
}

fn stage(others: Vec<Others>) -> Tables {
    NAMES.into_iter().zip(others).fold(tables(), |tables, (name, (held, line, started, ended))| {
        let tables = held.into_iter().fold(tables, |tables, slot| tables.held(name, slot..=slot));
        let tables = match line {
            Some((number, capacity)) => tables.waiting(name, number, 0, capacity),
            None => tables,
        };
        let tables = started.into_iter().fold(tables, |tables, ago| tables.started(name, ago));
        ended.into_iter().fold(tables, |tables, ago| tables.ended(name, ago))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_foreseen_is_what_happens(others in vec(others(), 3), demands in demands()) {
        let tables = stage(others);
        let used = NAMES.map(|name| tables.used(name));
        let foreseen = tables.outlook(&demands).refusal.expect("tables in memory");
        let foreseen = foreseen.as_ref().map(shown);
        match tables.attempt(&demands) {
            Ok(grant) => {
                prop_assert_eq!(foreseen, None);
                prop_assert!(is_one_of_each(grant.claims(), &demands));
                drop(grant);
            }
            Err(blocked) => {
                // Whoever is kept by others in the queue alone looks for seconds whether they are alive.
                let acquired = if blocked.is_by_others_alone().expect("tables in memory") {
                    None
                } else {
                    tables.acquire(&demands).err().as_ref().map(shown)
                };
                let Blocked { unmet, .. } = blocked;
                let refused = shown(&Refusal { unmet, waited: None });
                prop_assert_eq!(foreseen.as_deref(), Some(refused.as_str()));
                prop_assert!(acquired.is_none_or(|acquired| acquired == refused));
            }
        }
        prop_assert_eq!(NAMES.map(|name| tables.used(name)), used);
    }
}
