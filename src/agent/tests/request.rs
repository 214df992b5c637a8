//! What a launch needs of the tables, and what the agent reads from that.

use std::time::Duration;

use super::{HOUR, claim, needs, of_file};
use crate::{
    agent::{AcquireRequest, request::of_agent},
    judge::terms::{
        Admit, AgentLocation, Amount, Claim, Demand, ElapsedFrom, Expiry, Location, OnLost, Pace, Pause,
        Queue, Setting, Slots, TooSoon, Unreachable, Wait,
    },
    keeper::Holder,
    sys::process,
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A claim with a pause, a time for which its slots linger, and a limit.
fn paced(table: &str, pause: u64, linger: u64, limit: u64) -> Demand {
    let (from, too_soon) = (ElapsedFrom::Start, TooSoon::Refuse);
    let pause = Pause { length: seconds(pause), from, too_soon };
    let amount = Amount { linger: Some(seconds(linger)), ..Amount::plain(Slots::Number(1), limit) };
    Demand::One(Claim { amount, pace: Pace { pause: Some(pause), expiry: None }, ..claim(table) })
}

/// Of several claims on one table the longest pause, the longest linger and the lowest limit count, in any
/// order. Claims on other tables do not count.
#[test]
fn of_claims_on_one_table_the_strictest_counts() {
    for [first, second] in [[(5, 9, 3), (7, 8, 2)], [(7, 8, 2), (5, 9, 3)]] {
        let of = |(pause, linger, limit)| paced("seats", pause, linger, limit);
        let plain = Demand::One(claim("third"));
        let request = needs(vec![of(first), of(second), paced("other", 60, 60, 1), plain]);
        assert_eq!(request.pause_on("seats"), Some(seconds(7)));
        assert_eq!(request.linger_on("seats"), Some(seconds(9)));
        assert_eq!((request.limit_of("seats"), request.terms_on("seats")), (2, Some(2)));
        assert!(request.is_paced("seats") && !request.is_paced("third"));
        assert_eq!((request.pause_on("third"), request.limit_of("third")), (None, 10));
        assert_eq!(request.limit_of("fourth"), 0);
    }
}

/// Where a claim takes a slot beyond the limit, there is no number of slots that may be held.
#[test]
fn a_claim_that_is_always_met_has_no_number_of_slots() {
    let claim = claim("seats");
    let amount = Amount { admit: Admit::Always, ..claim.amount.clone() };
    let request = needs(vec![Demand::One(Claim { amount, ..claim })]);
    assert_eq!(request.terms_on("seats"), None);
}

/// A holder is overdue when it has had its slot for as long as one of the claims on its table says, and only
/// for a launch that ends holders.
#[test]
fn a_holder_is_overdue_by_the_claims_on_its_table() {
    let now = process::since_boot().expect("a clock");
    let holder = |ago| Holder { taken: now.checked_sub(ago), ..Holder::unknown(1..=1) };
    let of = |table: &str, after| {
        let expiry = Some(Expiry { after, ..Expiry::AT_REQUEST });
        Demand::One(Claim { pace: Pace { pause: None, expiry }, ..claim(table) })
    };
    let plain = Demand::One(claim("third"));
    let ends = needs(vec![of("seats", HOUR), of("seats", seconds(1)), of("other", seconds(0)), plain]);
    assert!(ends.may_end_others());
    assert!(ends.is_overdue("seats", &holder(seconds(1))));
    let later = needs(vec![of("seats", HOUR), of("other", seconds(0))]);
    assert!(!later.is_overdue("seats", &holder(seconds(1))));
    assert!(!ends.is_overdue("seats", &Holder::unknown(1..=1)), "since when it has its slot is unknown");
    let spares = AcquireRequest { may_end: false, ..ends };
    assert!(!spares.may_end_others() && !spares.is_overdue("seats", &holder(seconds(1))));
    assert!(!needs(vec![Demand::One(claim("seats"))]).may_end_others());
}

/// A table of the agent, as the policy writes it.
fn location(table: &str, unreachable: Unreachable) -> AgentLocation {
    AgentLocation { table: table.to_owned(), unreachable, on_lost: None }
}

/// The wait of the command line replaces the waits of the claims: none stays none, and any other is counted
/// from the request on. Slots of lock files are not the agent's.
#[test]
fn the_wait_of_the_command_line_replaces_those_of_claims() {
    let own = Wait::For(seconds(5));
    for (asked, expected) in [
        (None, own),
        (Some(Wait::NONE), Wait::NONE),
        (Some(Wait::For(seconds(3))), Wait::Forever),
        (Some(Wait::Forever), Wait::Forever),
    ] {
        let kept = Location::Agent(location("seats", Unreachable::Refuse));
        let wait = Setting { bound: None, default: Some(own) };
        let of_agent_alone = Demand::One(Claim { location: kept, wait, ..claim("seats") });
        let (demands, locations) = of_agent(vec![Demand::One(of_file()), of_agent_alone], asked);
        let waits: Vec<Wait> =
            demands.iter().flat_map(Demand::claims).map(|one| one.wait.resolve()).collect();
        assert_eq!(waits, [expected]);
        assert_eq!(locations, [location("seats", Unreachable::Refuse)]);
        assert_eq!(needs(demands).tables().collect::<Vec<_>>(), ["seats"]);
    }
}

/// Where several claims are for one table, the strictest says what happens to the program when the site is
/// lost.
#[test]
fn what_happens_when_the_site_is_lost_is_the_strictest() {
    let of = |table: &str, on_lost| AgentLocation { on_lost, ..location(table, Unreachable::Refuse) };
    let both = [Some(OnLost::Keep), Some(OnLost::Stop)];
    for [first, second] in [both, [both[1], both[0]]] {
        let locations = vec![of("site/a", first), of("site/a", second), of("site/b", both[0])];
        let request = AcquireRequest { locations, ..needs(Vec::new()) };
        assert_eq!((request.on_lost("site/a"), request.on_lost("site/b")), (both[1], both[0]));
        assert_eq!(request.on_lost("seats"), None);
    }
}

/// The queues that end are known by their names at the site.
#[test]
fn only_queues_of_the_site_that_end_are_named() {
    let ends = |table: &str| {
        let queue = Queue { most: Some(3), ..Queue::default() };
        Demand::One(Claim { queue, ..claim(table) })
    };
    let request = needs(vec![ends("site/a"), Demand::One(claim("site/b")), ends("seats")]);
    assert_eq!(request.ends_of_lines().collect::<Vec<_>>(), ["a"]);
    assert_eq!(request.tables_of_site().collect::<Vec<_>>(), ["a", "b"]);
}

/// One of these lists of tables must be available.
fn any_of(lists: &[&[&str]]) -> Demand {
    let list = |tables: &&[&str]| tables.iter().map(|table| claim(table)).collect::<Vec<Claim>>();
    Demand::AnyOf(lists.iter().map(list).collect())
}

/// Where the policy lets a launch start without the site, it needs the rest of what it asks for. An
/// alternative of the site alone needs nothing any more.
#[test]
fn without_the_site_the_rest_is_needed() {
    let demands = || {
        let one = |table| Demand::One(claim(table));
        let mixed = any_of(&[&["site/a", "seats"], &["other"]]);
        vec![one("site/b"), one("seats"), any_of(&[&["site/a"], &["other"]]), mixed]
    };
    let asks = |unreachable: [Unreachable; 2]| {
        let [a, b] = unreachable;
        let locations =
            vec![location("site/a", a), location("seats", Unreachable::Refuse), location("site/b", b)];
        AcquireRequest { locations, ..needs(demands()) }.without_site()
    };
    let (start, refuse) = (Unreachable::Start, Unreachable::Refuse);
    let left = asks([start, start]).expect("it may start");
    assert_eq!(left.tables().collect::<Vec<_>>(), ["seats", "seats", "other"]);
    assert_eq!(left.without, ["site/a", "site/b"]);
    assert_eq!(left.locations, [location("seats", Unreachable::Refuse)]);
    assert!(asks([start, refuse]).is_none() && asks([refuse, start]).is_none());
    assert!(needs(demands()).without_site().is_none(), "it needs nothing of the site");
}
