//! The claims of a launch with their tables, open. Two claims on one table are merged.

use std::{collections::BTreeMap, iter};

use crate::{
    judge::terms::{Claim, Demand, Location, Terms},
    keeper::{KeeperError, TableId, table::Table},
};

#[derive(Clone, Copy)]
pub struct ClaimOnTable<'c> {
    pub claim: &'c Claim,
    pub table: TableId,
}

impl ClaimOnTable<'_> {
    /// Whether both are the same claim, and not only equal ones.
    pub fn is(&self, other: &ClaimOnTable<'_>) -> bool {
        std::ptr::eq(self.claim, other.claim)
    }
}

/// Everything that a launch wants.
pub struct Wants<'c> {
    /// For each demand, the alternatives that are enough for it.
    pub demands: Vec<Options<'c>>,
    /// In the order in which they are locked.
    pub tables: BTreeMap<TableId, Table>,
}

impl<'c> Wants<'c> {
    /// Opens the table of every claim, each once.
    pub fn open(
        demands: &'c [Demand],
        open: impl Fn(&Claim) -> Result<Table, KeeperError>,
    ) -> Result<Self, KeeperError> {
        let mut known: Vec<(&'c Location, TableId)> = Vec::new();
        let mut wants = Self { demands: Vec::new(), tables: BTreeMap::new() };
        for demand in demands {
            let mut choices = Vec::new();
            for claim in demand.claims() {
                let same = known.iter().find(|(location, _)| location.is_same_table(&claim.location));
                let table = match same {
                    Some((_, table)) => *table,
                    None => {
                        let table = open(claim)?;
                        let id = table.id();
                        // If two paths lead to one table, the first one stays: neither has a lock yet, so
                        // closing this one is harmless.
                        wants.tables.entry(id).or_insert(table);
                        known.push((&claim.location, id));
                        id
                    }
                };
                choices.push(ClaimOnTable { claim, table });
            }
            wants.demands.push(Options { choices, lengths: lengths(demand) });
        }
        Ok(wants)
    }

    /// The table with this identity.
    pub fn table(&self, id: TableId) -> &Table {
        &self.tables[&id]
    }

    pub fn choices(&self) -> impl Iterator<Item = &ClaimOnTable<'c>> {
        self.demands.iter().flat_map(|options| &options.choices)
    }

    pub fn claims_on(&self, table: TableId) -> Vec<&'c Claim> {
        self.all_on(table).collect()
    }

    /// The same one after the other.
    pub fn all_on(&self, table: TableId) -> impl Iterator<Item = &'c Claim> {
        self.choices().filter(move |choice| choice.table == table).map(|choice| choice.claim)
    }

    /// The policy that gave the limits on one table, if `generation` is the one in force; none if no rule
    /// requires the table.
    pub fn generation_on(&self, table: TableId, generation: u16) -> u16 {
        let is_by_rule = |claim: &&Claim| claim.origins.iter().any(|origin| origin.place.is_some());
        if self.claims_on(table).iter().any(is_by_rule) { generation } else { 0 }
    }

    /// Whether the launch belongs to a group that has slots of this table now.
    pub fn shares(&self, table: TableId) -> Result<bool, KeeperError> {
        for choice in self.choices().filter(|choice| choice.table == table) {
            let terms = terms_on(table, &[*choice]);
            if terms.group.is_some() && !self.table(table).view()?.shared(&terms)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The claims that must be met in any case: those of demands without an alternative.
    pub fn single(&self) -> impl Iterator<Item = ClaimOnTable<'c>> {
        let single = self.demands.iter().filter(|options| options.alternatives().nth(1).is_none());
        single.flat_map(|options| options.choices.iter().copied())
    }
}

/// The alternatives of one demand.
pub struct Options<'c> {
    /// Their claims, one alternative after the other.
    choices: Vec<ClaimOnTable<'c>>,
    /// How many claims each has; empty if each has one, the usual case.
    lengths: Vec<usize>,
}

impl<'c> Options<'c> {
    /// Alternatives, in order of preference.
    pub fn alternatives(&self) -> impl Iterator<Item = &[ClaimOnTable<'c>]> {
        let mut rest = self.choices.as_slice();
        let mut lengths = self.lengths.iter();
        iter::from_fn(move || {
            let length = lengths.next().copied().unwrap_or(1);
            let (alternative, left) = rest.split_at_checked(length).filter(|(first, _)| !first.is_empty())?;
            rest = left;
            Some(alternative)
        })
    }
}

fn lengths(demand: &Demand) -> Vec<usize> {
    if demand.alternatives().all(|alternative| alternative.len() == 1) {
        return Vec::new();
    }
    demand.alternatives().map(<[_]>::len).collect()
}

/// The sum of these claims on one table.
pub fn terms_on(table: TableId, picked: &[ClaimOnTable<'_>]) -> Terms {
    let amounts = picked.iter().filter(|choice| choice.table == table).map(|choice| &choice.claim.amount);
    Terms::merge(amounts).unwrap_or_default()
}
