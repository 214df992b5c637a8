//! What the command line says about waiting and holding. It replaces the policy's defaults, and tightens, never loosens,
//! what a rule or a repository says.

use crate::{
    commands::order::Order,
    decision::Terms,
    policy::{self, Wait},
    repository::hold::Hold,
};

/// The wishes of one command line.
pub(super) struct Wishes {
    wait: Option<Wait>,
    hold: Option<policy::Hold>,
}

impl Wishes {
    /// Those of an order.
    pub(super) fn of(order: &Order) -> Self {
        Self { wait: order.wait, hold: order.hold }
    }

    /// How long the launch may wait.
    pub(super) fn wait(&self, terms: &Terms<'_>) -> Wait {
        terms.wait.resolve(self.wait)
    }

    /// What is to keep its slots.
    pub(super) fn hold(&self, terms: &Terms<'_>) -> Hold {
        match terms.hold.resolve(self.hold) {
            policy::Hold::Process => Hold::Process,
            policy::Hold::Descriptor => Hold::Descriptor,
            policy::Hold::Supervisor => Hold::Supervisor,
            policy::Hold::Tree => Hold::Tree,
        }
    }
}
