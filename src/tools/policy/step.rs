//! One step of an installation: a file that gets a text, or a drop-in that is removed.

use std::{path::Path, rc::Rc};

use super::{Location, Past, Removal, Target, past, target::Link};
use crate::{
    launch::Situation,
    policy::{Proposal, Sources},
    text::{Error, ExitStatus, Show, visible, word},
};

/// Makes the steps one after the other, and stops at the first failure. `is_free_of_faults` is whether the
/// policy has no fault after any of them.
pub(super) fn make<'s>(
    steps: impl IntoIterator<Item = &'s Step>,
    is_free_of_faults: bool,
    situation: &Situation,
) -> Result<(), Error> {
    let mut done: Vec<String> = Vec::new();
    let steps: Vec<&Step> = steps.into_iter().collect();
    let proposals: Vec<Proposal> = steps.iter().map(|step| step.proposal()).collect();
    let what: Vec<String> = steps.iter().map(|step| step.to_do()).collect();
    let is_removal = |step: &&&Step| matches!(step, Step::TakeAway(_));
    let removed = steps.iter().find(is_removal).map(|step| step.path().to_owned());
    let past = steps.first().and_then(|step| Past::of(step.location()));
    let state = if is_free_of_faults { " The policy has no fault as it is." } else { "" };
    for step in steps {
        let so_far = || match done.as_slice() {
            [] => "Nothing was changed.".to_owned(),
            done => format!("Before that {}.{state}", done.join(" and ")),
        };
        if step.has_changed(situation).map_err(|error| error.advise(so_far()))? {
            let text = format!("{} was changed by another user meanwhile", visible(step.path()));
            return Err(Error::new(ExitStatus::Failure, text).advise(so_far()));
        }
        let first = past.as_ref().filter(|_| done.is_empty());
        let copy = first.and_then(|past| past.remember(&what.join(" and ")));
        if let (Some(_), None, Some(path)) = (first, &copy, &removed) {
            let text = format!("{} is not removed without a copy", visible(path));
            let by_hand = format!("Nothing was changed. To remove it without one: rm {}", word(path));
            return Err(Error::new(ExitStatus::System, text).advise(by_hand));
        }
        step.make(&proposals, situation).map_err(|error| {
            if let Some(copy) = &copy
                && !step.has_changed(situation).unwrap_or(true)
            {
                // No change followed it.
                past::forget(copy);
            }
            error.advise(so_far())
        })?;
        done.push(step.done());
    }
    Ok(())
}

/// Those of these steps that change anything.
pub(super) fn due(mut steps: Vec<Step>) -> Vec<Step> {
    let proposals: Vec<Proposal> = steps.iter().map(Step::proposal).collect();
    steps.retain(|step| step.is_due(&proposals));
    steps
}

/// The step for one file.
pub(super) enum Step {
    /// It gets this text.
    Put(Rc<Target>, String),
    /// It becomes a link.
    Link(Link),
    /// It goes.
    TakeAway(Removal),
}

impl Step {
    /// Where the file is.
    pub(super) fn location(&self) -> &Location {
        match self {
            Self::Put(target, _) => &target.location,
            Self::Link(link) => &link.location,
            Self::TakeAway(removal) => &removal.location,
        }
    }

    /// Where the policy names it.
    pub(super) fn path(&self) -> &Path {
        &self.location().path
    }

    /// Whether there is anything to do, if these are the new texts.
    fn is_due(&self, proposals: &[Proposal]) -> bool {
        match self {
            Self::Put(target, text) => {
                target.before.as_deref() != Some(text.as_bytes()) || target.is_distrusted(proposals)
            }
            Self::Link(_) | Self::TakeAway(_) => true,
        }
    }

    /// The policy as it would be.
    pub(super) fn proposal(&self) -> Proposal {
        match self {
            Self::Put(target, text) => target.proposal(text.clone()),
            Self::Link(link) => link.proposal(),
            Self::TakeAway(removal) => removal.proposal(),
        }
    }

    /// Whether the file was changed since it was checked.
    fn has_changed(&self, situation: &Situation) -> Result<bool, Error> {
        match self {
            Self::Put(target, _) => target.has_changed(situation),
            Self::Link(link) => Ok(link.has_changed()),
            Self::TakeAway(removal) => Ok(removal.has_changed()),
        }
    }

    /// Does it.
    fn make(&self, proposals: &[Proposal], situation: &Situation) -> Result<(), Error> {
        match self {
            Self::Put(target, text) => target.put(text, proposals, situation),
            Self::Link(link) => link.put(situation),
            Self::TakeAway(removal) => removal.take_away(situation),
        }
    }

    /// Its name in a prompt.
    pub(super) fn to_do(&self) -> String {
        match self {
            Self::Put(target, _) => {
                let verb = if target.before.is_some() { "replace" } else { "add" };
                format!("{verb} the {} {}", self.kind(), self.path().shown())
            }
            Self::Link(_) => format!("put the link {} back", self.path().shown()),
            Self::TakeAway(_) => format!("take {} away", self.path().shown()),
        }
    }

    /// The role of the file in the policy.
    fn kind(&self) -> &'static str {
        match self.location() {
            location if location.is_drop_in() => "drop-in",
            Location { sources: Sources { own: Some(_), .. }, .. } => "policy",
            _ => "main file",
        }
    }

    /// Its name once done.
    fn done(&self) -> String {
        match self {
            Self::Put(..) | Self::Link(_) => format!("{} was put in place", self.path().shown()),
            Self::TakeAway(_) => format!("{} was taken away", self.path().shown()),
        }
    }
}
