//! What the agent is asked: the launch as it was judged here, with the environment variables that this
//! judgement asked about. The agent judges for itself, and goes by its own policy.

use std::{cell::RefCell, collections::BTreeMap, env, ffi::OsString};

use crate::{
    commands::run::wanted::Wanted, decision::Request, keeper::agent::message::Take,
    launch::environment::HELD, policy::Policy, terms::claim::Demand,
};

/// The variables that were asked about, each with its value.
#[derive(Debug, Default)]
pub(super) struct Asked(RefCell<Vec<(String, Option<OsString>)>>);

impl Asked {
    /// A variable of the environment.
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        let mut asked = self.0.borrow_mut();
        if let Some((_, value)) = asked.iter().find(|(known, _)| known == name) {
            return value.clone();
        }
        let value = env::var_os(name);
        asked.push((name.to_owned(), value.clone()));
        value
    }

    /// What was asked about and is set, each with whether its value may be told.
    pub(super) fn told(&self, policy: &Policy) -> BTreeMap<String, Option<String>> {
        let of = |(name, value): &(String, Option<OsString>)| {
            let value = value.as_ref()?;
            let told = policy.names_value(name, value).then(|| value.to_string_lossy().into_owned());
            Some((name.clone(), told))
        };
        self.0.borrow().iter().filter_map(of).collect()
    }

    /// The question; none where the agent keeps nothing of what is needed.
    pub(super) fn of_agent(&self, request: &Request<'_>, wanted: &Wanted<'_>) -> Option<Take> {
        let is_asked = wanted.demands.first().is_some_and(Demand::is_of_agent);
        is_asked.then(|| Take {
            typed: request.typed.to_owned(),
            path: request.path.into(),
            canonical: request.canonical.into(),
            directory: request.directory.into(),
            arguments: request.arguments.to_vec(),
            environment: self.0.borrow().clone(),
            held: env::var_os(HELD).unwrap_or_default(),
            hold: wanted.hold,
            wait: wanted.longest,
            may_end: true,
            is_again: false,
        })
    }
}
