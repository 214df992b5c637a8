//! Tables in the memory of this process: those of the agent, those of a policy's tests, and those that the
//! agent has shown to a launch. What a lock file expresses by locks is plain data here.

mod queue;
mod table;

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::SystemTime,
};

use crate::sys::process;

pub use self::{
    queue::Place,
    table::{Held, Table, chosen, lingering, overdue},
};

/// All tables, by name. Clones share the same tables.
#[derive(Clone, Debug, Default)]
pub struct Store {
    tables: Rc<RefCell<BTreeMap<String, Table>>>,
    /// How many there are, with those that have no name.
    count: Rc<Cell<usize>>,
    ancestry: Rc<VerifiedAncestry>,
    /// The number of tables with names that count for each user.
    accounts: Rc<RefCell<BTreeMap<u32, usize>>>,
}

/// The proved facts about the caller: its slots of an ancestor, and its ancestors.
#[derive(Debug, Default)]
pub struct VerifiedAncestry {
    /// The slots, each with the number of its table.
    pub slots: BTreeSet<(usize, u64)>,
    pub pid: Option<i32>,
    /// Its user, for whom new tables count.
    pub uid: Option<u32>,
    /// The caller and its nearest ancestors, once they were needed.
    lineage: OnceCell<Vec<i32>>,
}

impl VerifiedAncestry {
    /// A user, of whom nothing else is known.
    pub fn of_user(uid: Option<u32>) -> Self {
        Self { uid, ..Self::default() }
    }

    /// A process of this user.
    pub fn of_process(pid: i32, uid: u32) -> Self {
        Self { pid: Some(pid), ..Self::of_user(Some(uid)) }
    }

    /// Whether a process is the requesting one, or one of its nearest ancestors. A launch far below a holder
    /// waits for it as for any other.
    fn has(&self, pid: i32) -> bool {
        let lineage = || self.pid.into_iter().flat_map(process::near_lineage).collect();
        self.lineage.get_or_init(lineage).contains(&pid)
    }

    /// Whether nothing was proved.
    pub fn is_nobody(&self) -> bool {
        self.slots.is_empty() && self.pid.is_none()
    }
}

impl Store {
    /// The table with this name; an empty one where there was none. It counts for the first user who needs
    /// it: other hosts' entries alone count for no user here.
    pub fn table(&self, name: &str) -> Table {
        let mut tables = self.tables.borrow_mut();
        let table = tables.entry(name.to_owned()).or_insert_with(|| self.new_table(Some(name)));
        if let Some(uid) = self.ancestry.uid.filter(|_| table.account().is_none()) {
            table.count_for(Some(uid));
            *self.accounts.borrow_mut().entry(uid).or_default() += 1;
        }
        table.clone()
    }

    /// The table with this name, if there is one.
    pub fn known(&self, name: &str) -> Option<Table> {
        self.tables.borrow().get(name).cloned()
    }

    /// Every table that has a name, with it.
    pub fn all(&self) -> Vec<(String, Table)> {
        self.tables.borrow().iter().map(|(name, table)| (name.clone(), table.clone())).collect()
    }

    /// Forgets a table that has nothing worth keeping.
    pub fn forget_if_unused(&self, name: &str) {
        let mut tables = self.tables.borrow_mut();
        if tables.get(name).is_some_and(Table::is_unused)
            && let Some(table) = tables.remove(name)
        {
            self.strike_off(&table);
        }
    }

    /// Forgets the tables that count for this user and are not needed; returns them. One that may not be
    /// forgotten counts for no user until it is used again.
    pub fn forget_idle(&self, uid: u32, now: SystemTime, may_be: impl Fn(&str) -> bool) -> Vec<String> {
        let mut tables = self.tables.borrow_mut();
        let mut forgotten = Vec::new();
        tables.retain(|name, table| {
            if table.account() != Some(uid) || !table.is_idle(now) {
                return true;
            }
            self.strike_off(table);
            table.count_for(None);
            let is_kept = !may_be(name);
            forgotten.extend((!is_kept).then(|| name.clone()));
            is_kept
        });
        forgotten
    }

    fn strike_off(&self, table: &Table) {
        let mut accounts = self.accounts.borrow_mut();
        if let Some(uid) = table.account()
            && let Some(count) = accounts.get_mut(&uid)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                accounts.remove(&uid);
            }
        }
    }

    /// The number of tables that count for this user.
    pub fn count_of(&self, uid: u32) -> usize {
        self.accounts.borrow().get(&uid).copied().unwrap_or(0)
    }

    /// A table that was never used, and that no other code sees.
    pub fn unused(&self) -> Table {
        self.new_table(None)
    }

    /// The same tables, for a caller with this proof.
    #[must_use]
    pub fn for_asker(&self, ancestry: VerifiedAncestry) -> Self {
        Self { ancestry: Rc::new(ancestry), ..self.clone() }
    }

    /// The proved facts about the caller.
    pub fn ancestry(&self) -> &VerifiedAncestry {
        &self.ancestry
    }

    fn new_table(&self, name: Option<&str>) -> Table {
        let number = self.count.get();
        self.count.set(number + 1);
        Table::new(number, name)
    }
}

#[cfg(test)]
mod tests;
