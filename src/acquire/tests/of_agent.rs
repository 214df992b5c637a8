//! What the agent grants, compared with what the launch needs by its own judgement.

use super::stage::{any_list_of, any_of, claim, one};
use crate::{
    acquire::of_agent::missed,
    judge::terms::{AgentLocation, Claim, Demand, Hold, Location, Unreachable},
    keeper::agent::message::Granted,
};

/// A claim on a table of the agent.
fn on(table: &'static str) -> Claim {
    let (table_of_agent, unreachable) = (table.to_owned(), Unreachable::Refuse);
    let location = AgentLocation { table: table_of_agent, unreachable, on_lost: None };
    Claim { location: Location::Agent(location), ..claim(table, 3) }
}

/// The repository in which nothing was acquired, if the agent grants a slot of each of these tables, and none
/// of these others, whose limits are not enforced.
fn missing(demands: &[Demand], granted: &[&str], without: &[&str]) -> Option<String> {
    let slots = granted.iter().map(|table| ((*table).to_owned(), "1".to_owned())).collect();
    let without = without.iter().map(|table| (*table).to_owned()).collect();
    let granted = Granted { slots, without, hold: Hold::Process, has_waited: false, joined: None };
    missed(demands, &granted).map(str::to_owned)
}

/// Each demand is met by all claims of one alternative. Of two claims on one table, one of them on trial, one
/// grant is enough.
#[test]
fn each_demand_has_to_be_met() {
    let both = [one(on("seats")), one(on("tokens"))];
    assert_eq!(missing(&both, &["tokens", "seats"], &[]), None);
    assert_eq!(missing(&both, &["seats"], &["tokens"]), None);
    assert_eq!(missing(&both, &["seats"], &[]).as_deref(), Some("tokens"));
    assert_eq!(missing(&both, &[], &[]).as_deref(), Some("seats"));
    assert_eq!(missing(&[], &[], &[]), None);
    let twice = [one(on("seats")), one(on("seats"))];
    assert_eq!(missing(&twice, &["seats"], &[]), None);
    let either = [one(on("seats")), any_of([on("a"), on("b")])];
    for (granted, missed) in
        [(&["seats", "b"][..], None), (&["seats"], Some("a")), (&["a", "b"], Some("seats"))]
    {
        assert_eq!(missing(&either, granted, &[]).as_deref(), missed, "{}", granted.join(" "));
    }
    let lists = [any_list_of([vec![on("a"), on("b")], vec![on("c")]])];
    assert_eq!(missing(&lists, &["b"], &[]).as_deref(), Some("a"));
    assert_eq!(missing(&lists, &["b", "a"], &[]), None);
    assert_eq!(missing(&lists, &["c"], &[]), None);
}

/// A table for each host has the name of the agent's host. It is that of a claim which nothing else meets.
#[test]
fn a_table_may_be_called_otherwise() {
    let both = [one(on("seats")), one(on("boards.ship"))];
    for (granted, without) in [(&["seats", "boards.lab1"][..], &[][..]), (&["seats"], &["boards.lab1"])] {
        assert_eq!(missing(&both, granted, without), None);
    }
    assert_eq!(missing(&both, &["boards.lab1"], &[]).as_deref(), Some("seats"));
    assert_eq!(missing(&both[1..], &["boards.lab1"], &[]), None);
}
