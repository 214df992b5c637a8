//! What a policy looks at at all: launches that differ in nothing else are one kind for it.

use super::{
    Policy, repository::limits::Whom, rule::Acquisition, selector::Selectors, template::Placeholder,
    times::Hours,
};

/// Which circumstances of a launch make a difference.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Looks {
    /// Where it is started.
    pub directories: bool,
    /// Its arguments.
    pub arguments: bool,
    /// The environment.
    pub environment: bool,
    /// The machine.
    pub hosts: bool,
}

impl Looks {
    /// At whatever one of both looks at.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            directories: self.directories || other.directories,
            arguments: self.arguments || other.arguments,
            environment: self.environment || other.environment,
            hosts: self.hosts || other.hosts,
        }
    }
}

impl Policy {
    /// What it looks at, or may look at.
    pub fn looks(&self) -> Looks {
        let selectors =
            self.rules.iter().flat_map(|rule| std::iter::once(&rule.selectors).chain(&rule.except));
        let mut terms = self.rules.iter().flat_map(|rule| &rule.acquire).flat_map(Acquisition::terms);
        let looks = selectors.map(of_selectors).fold(Looks::default(), Looks::or);
        let looks = self.repositories.iter().map(of_repository).fold(looks, Looks::or);
        let is_counted = terms.any(|terms| terms.slots_from.is_some());
        Looks { arguments: looks.arguments || is_counted, ..looks }
    }

    /// The hours of the day, as the policy tells the time.
    pub fn hours(&self) -> Hours {
        Hours::in_zone(self.time_zone())
    }
}

fn of_selectors(selectors: &Selectors) -> Looks {
    Looks {
        directories: selectors.directories.is_some(),
        arguments: selectors.arguments.is_some(),
        environment: selectors.environment.is_some(),
        hosts: selectors.hosts.is_some(),
    }
}

fn of_repository(repository: &super::Repository) -> Looks {
    let placeholders = repository.path.placeholders().map(|placeholder| match placeholder {
        Placeholder::Directory => Looks { directories: true, ..Looks::default() },
        Placeholder::Argument(_) | Placeholder::Arguments => Looks { arguments: true, ..Looks::default() },
        Placeholder::Environment(_) => Looks { environment: true, ..Looks::default() },
        Placeholder::Host => Looks { hosts: true, ..Looks::default() },
        _ => Looks::default(),
    });
    let whom = repository.limits.iter().flat_map(|other| &other.whom).map(|whom| match whom {
        Whom::Hosts(_) => Looks { hosts: true, ..Looks::default() },
        Whom::Directories(_) => Looks { directories: true, ..Looks::default() },
        _ => Looks::default(),
    });
    let reserved = repository
        .reservations()
        .iter()
        .map(|reservation| Looks { hosts: reservation.is_by_host(), ..Looks::default() });
    // Where slots have names a host may have some of them out of order.
    let named = Looks { hosts: repository.names.most().is_some(), ..Looks::default() };
    placeholders.chain(whom).chain(reserved).fold(named, Looks::or)
}
