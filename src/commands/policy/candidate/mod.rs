//! A policy as it would be with new texts in some of its files: whether it may be put in place, and what
//! would be different.

mod forgotten;
mod present;

use std::{cell::OnceCell, fmt::Write as _};

use jiff::Timestamp;

use self::present::Present;
use crate::{
    commands::{
        policy::{changes, test},
        shared::{names::SystemNames, situation::Situation},
    },
    diagnostic::Diagnostic,
    policy::{Difference, Faults, Policy, Proposal, Sources},
    rehearsal::rehearse,
};

/// The new texts, and the policy in which they would stand.
pub(super) struct Candidate {
    proposals: Vec<Proposal>,
    old: Result<Policy, Faults>,
    new: Result<Policy, Faults>,
    failed_tests: OnceCell<Vec<String>>,
}

impl Candidate {
    /// Reads the policy as it is and as it would be.
    pub(super) fn new(sources: &Sources, proposals: Vec<Proposal>) -> Self {
        let old = Policy::propose(sources, &[], Some(&SystemNames));
        let new = Policy::propose(sources, &proposals, Some(&SystemNames));
        Self { proposals, old, new, failed_tests: OnceCell::new() }
    }

    /// Whether it may be put in place: it has neither a fault nor a failed test. Faults of other files that
    /// are there already are no reason against it, for else two files with faults could never be mended one
    /// after the other.
    pub(super) fn is_sound(&self) -> bool {
        match &self.new {
            Ok(_) => self.failed_tests().is_empty(),
            Err(faults) => faults.iter().all(|fault| self.was_there(fault)),
        }
    }

    /// Why it may not.
    pub(super) fn why_not(&self) -> String {
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            number => format!("{number} {what}s"),
        };
        match &self.new {
            Ok(_) => count(self.failed_tests().len(), "failed test"),
            Err(faults) => count(faults.iter().filter(|fault| !self.was_there(fault)).count(), "fault"),
        }
    }

    fn was_there(&self, fault: &Diagnostic) -> bool {
        let is_proposed = self.proposals.iter().any(|proposal| proposal.path == fault.path);
        !is_proposed && self.old.as_ref().is_err_and(|old| old.iter().any(|old| is_same(old, fault)))
    }

    fn failed_tests(&self) -> &[String] {
        self.failed_tests.get_or_init(|| match &self.new {
            Ok(new) => {
                let rehearsals = rehearse(new, Timestamp::now());
                let failed = rehearsals.iter().filter(|rehearsal| !rehearsal.passed);
                failed.map(|rehearsal| test::describe(new, rehearsal)).collect()
            }
            Err(_) => Vec::new(),
        })
    }

    /// Where the first fault is, for editors that can be sent to a line.
    pub(super) fn first_line(&self) -> Option<usize> {
        let faults = self.new.as_ref().err()?;
        let of_ours = |fault: &&Diagnostic| self.proposals.iter().any(|ours| ours.path == fault.path);
        faults.iter().find(of_ours)?.line_column().map(|(line, _)| line)
    }

    /// What is wrong with it, or doubtful and was not so before, each with its line; nothing where nothing
    /// is.
    pub(super) fn complaints(&self) -> String {
        let shown = |diagnostics: &mut dyn Iterator<Item = &Diagnostic>| {
            diagnostics.map(|one| one.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
        };
        match &self.new {
            Err(faults) => {
                let remain =
                    if self.is_sound() { "\nThese faults are there already, in other files." } else { "" };
                format!("{}{remain}", shown(&mut faults.iter()))
            }
            Ok(new) => {
                let known = self.old.as_ref().map_or(&[][..], Policy::warnings);
                let is_new = |warning: &&Diagnostic| !known.iter().any(|known| is_same(known, warning));
                let warnings = shown(&mut new.warnings().iter().filter(is_new));
                let parts = [warnings].into_iter().chain(self.failed_tests().iter().cloned());
                parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// What would be different: in the policy, and for those who run now.
    pub(super) fn changes(&self, situation: &Situation) -> String {
        let Ok(new) = &self.new else { return String::new() };
        let nothing = Policy::default();
        let old = self.old.as_ref().unwrap_or(&nothing);
        let mut text = changes::describe(&Difference::between(old, new));
        if self.old.is_err() {
            text.insert_str(0, "The policy as it is has faults, so that all of the new one is shown.\n");
        }
        let _ = write!(text, "{}", Present::of(old, situation).refused_by(new, old));
        text
    }

    /// The holders that would not be counted any more, in lines for people; nothing where there are none.
    pub(super) fn forgotten(&self, situation: &Situation) -> String {
        match (&self.old, &self.new) {
            (Ok(old), Ok(new)) => forgotten::describe(old, new, situation),
            _ => String::new(),
        }
    }
}

/// Whether two are about the same, on whatever line.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (&one.path, one.code, &one.message) == (&other.path, other.code, &other.message)
}
