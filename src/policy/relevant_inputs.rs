//! The inputs that a policy uses: launches that differ only in others are equal for it.

use super::{
    Policy, repository::limits::Whom, rule::Acquisition, selector::Selectors, template::Placeholder,
    times::Hours,
};

/// The circumstances of a launch that make a difference.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RelevantInputs {
    /// Where it is started.
    pub directories: bool,
    pub arguments: bool,
    pub environment: bool,
    /// The machine.
    pub hosts: bool,
}

impl RelevantInputs {
    /// The union of both.
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
    /// The inputs that it uses, or may use.
    pub fn looks(&self) -> RelevantInputs {
        let selectors =
            self.rules.iter().flat_map(|rule| std::iter::once(&rule.selectors).chain(&rule.except));
        let mut terms = self.rules.iter().flat_map(|rule| &rule.acquire).flat_map(Acquisition::terms);
        let looks = selectors.map(of_selectors).fold(RelevantInputs::default(), RelevantInputs::or);
        let looks = self.repositories.iter().map(of_repository).fold(looks, RelevantInputs::or);
        let is_counted = terms.any(|terms| terms.slots_from.is_some());
        RelevantInputs { arguments: looks.arguments || is_counted, ..looks }
    }

    /// The hours of the day, in the policy's time zone.
    pub fn hours(&self) -> Hours {
        Hours::in_zone(self.time_zone())
    }
}

fn of_selectors(selectors: &Selectors) -> RelevantInputs {
    RelevantInputs {
        directories: selectors.directories.is_some(),
        arguments: selectors.arguments.is_some(),
        environment: selectors.environment.is_some(),
        hosts: selectors.hosts.is_some(),
    }
}

fn of_repository(repository: &super::Repository) -> RelevantInputs {
    let all = repository.path.placeholders().chain(repository.sharing.placeholders());
    let placeholders = all.map(|placeholder| match placeholder {
        Placeholder::Directory => RelevantInputs { directories: true, ..RelevantInputs::default() },
        Placeholder::Argument(_) | Placeholder::Arguments => {
            RelevantInputs { arguments: true, ..RelevantInputs::default() }
        }
        Placeholder::Environment(_) => RelevantInputs { environment: true, ..RelevantInputs::default() },
        Placeholder::Host => RelevantInputs { hosts: true, ..RelevantInputs::default() },
        _ => RelevantInputs::default(),
    });
    let whom = repository.limits.iter().flat_map(|other| &other.whom).map(|whom| match whom {
        Whom::Hosts(_) => RelevantInputs { hosts: true, ..RelevantInputs::default() },
        Whom::Directories(_) => RelevantInputs { directories: true, ..RelevantInputs::default() },
        _ => RelevantInputs::default(),
    });
    let reserved = repository
        .reservations()
        .iter()
        .map(|reservation| RelevantInputs { hosts: reservation.is_by_host(), ..RelevantInputs::default() });
    // If slots have names, a host may have some of them out of order.
    let named = RelevantInputs { hosts: repository.names.most().is_some(), ..RelevantInputs::default() };
    placeholders.chain(whom).chain(reserved).fold(named, RelevantInputs::or)
}
