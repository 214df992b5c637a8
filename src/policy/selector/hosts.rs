//! `hosts`: the node's name, in full or up to the first dot, in any case.

use std::os::unix::ffi::OsStrExt;

use super::alternatives::{Entry, pattern};
use crate::{
    judge::terms::LookupError,
    policy::{EvalContext, Key, Pattern, RelevantInputs, Shape, Subject, fault::Fault, key::key},
};

#[derive(Debug)]
pub(crate) struct HostEntry(Pattern);

impl Entry for HostEntry {
    const KEY: Key = key(
        "hosts",
        Shape::Texts,
        "Names of hosts, in full or up to the first dot.",
        "One policy for many hosts.",
    )
    .filled();
    const IS_PERSONAL: bool = true;

    fn parse(text: &str) -> Result<Self, Fault> {
        pattern(text, Subject::Host).map(HostEntry)
    }

    fn matches(&self, facts: &EvalContext<'_>, _layer: usize) -> Result<bool, LookupError> {
        let host = facts.request.host.as_bytes();
        let label = host.split(|byte| *byte == b'.').next().unwrap_or(host);
        Ok(self.0.matches(host) || self.0.matches(label))
    }

    fn inputs(&self) -> RelevantInputs {
        RelevantInputs::HOSTS
    }

    fn covers(&self, narrow: &Self) -> bool {
        self.0.covers(&narrow.0)
    }

    fn is_everything(&self) -> bool {
        self.0.is_everything()
    }

    fn is_plain(&self) -> bool {
        self.0.literal().is_some()
    }

    fn text(&self) -> String {
        self.0.text().to_owned()
    }
}
