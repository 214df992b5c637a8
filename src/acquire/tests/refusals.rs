//! The status of a refusal, for every combination of what is in the way.

use std::time::Duration;

use super::stage::{But, claim, shown, tables};
use crate::{
    acquire::{Alternative, Full, Reason, Refusal, Refused, Unmet},
    judge::terms::Claim,
    keeper::table::Table,
};

/// What is in the way of each demand: `f` for full, `n` for never, `t` for too soon, `s` for silently too
/// soon. Alternatives stand side by side.
#[track_caller]
fn case(demands: &str, at_once: u8, after_a_wait: u8) {
    let [plain, loud, silent] =
        [claim("x", 1), claim("x", 1).not_again_within(60), claim("x", 1).silently_not_within(60)];
    let tables = tables();
    let table = Table::Memory(tables.store.table("x"));
    let refused = |letter: char| {
        let soon = Reason::TooSoon { last: tables.now, uid: None };
        let (claim, reason): (&Claim, Reason) = match letter {
            'f' => (&plain, Reason::Full(Full::of(&table, None, false))),
            'n' => (&plain, Reason::Never),
            't' => (&loud, soon),
            's' => (&silent, soon),
            _ => panic!("{letter}"),
        };
        Refused { claim, table: table.id(), reason, line: None, unwaited: None }
    };
    for (waited, expected) in [(None, at_once), (Some(Duration::from_secs(1)), after_a_wait)] {
        let alternative = |letters: &str| {
            let refused: Vec<Refused<'_>> = letters.chars().map(refused).collect();
            Alternative { claims: refused.iter().map(|refused| refused.claim).collect(), refused }
        };
        let unmet = demands.split(' ').map(|options| Unmet {
            alternatives: match options.split_once('|') {
                Some(_) => options.split('|').map(alternative).collect(),
                None => options.split("").filter(|letter| !letter.is_empty()).map(alternative).collect(),
            },
        });
        let refusal = Refusal { unmet: unmet.collect(), waited };
        assert_eq!(refusal.status() as u8, expected, "{}", shown(&refusal));
    }
}

#[test]
fn one_reason_is_the_reason() {
    case("f", 75, 124);
    case("n", 78, 78);
    case("t", 69, 69);
    case("s", 0, 0);
}

#[test]
fn an_alternative_that_could_be_had_later_is_what_there_is_to_wait_for() {
    for options in ["ff", "fn", "nf", "ft", "tf", "fs", "sf", "fnt"] {
        case(options, 75, 124);
    }
    case("nn", 78, 78);
    // A launch does not wait for something that is never available.
    for options in ["tt", "ts", "st", "nt", "tn", "nts"] {
        case(options, 69, 69);
    }
    for options in ["ss", "ns"] {
        case(options, 0, 0);
    }
}

#[test]
fn a_list_is_without_hope_where_one_of_its_claims_is() {
    case("fn|nf", 78, 78);
    case("fn|ff", 75, 124);
    case("ft|t", 75, 124);
    case("tt|t", 69, 69);
}

#[test]
fn of_several_demands_one_without_hope_decides() {
    for demands in ["f n", "n f", "f nn", "n t", "s n", "tf n"] {
        case(demands, 78, 78);
    }
    for demands in ["f f", "f t", "s f", "nf tf", "t fn"] {
        case(demands, 75, 124);
    }
    for demands in ["t t", "t s", "ss t", "tt ss", "nt t", "ns t"] {
        case(demands, 69, 69);
    }
    case("s s", 0, 0);
    case("ss s", 0, 0);
}
