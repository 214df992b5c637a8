//! `rungate policy install`: puts files in place as the policy after the checks of `rungate policy edit`,
//! each in one step. Drop-ins are removed in the same way.

use std::{
    collections::{BTreeSet, HashSet},
    mem,
    path::{Path, PathBuf},
    rc::Rc,
};

use super::{
    Candidate, Location, Removal, Step, Target, question, step,
    target::{path_of_system, read_candidate},
};
use crate::{
    cli::{ConsentOptions, InstallPolicyArguments},
    launch::Situation,
    policy::{Policy, Proposal, Purpose, Sources, files_of},
    sys::{JudgedDirectories, regular_file},
    text::{Error, ExitStatus, print, stream, visible, word},
};

/// Makes every step, or none.
pub(super) fn run(arguments: &InstallPolicyArguments, situation: &Situation) -> Result<u8, Error> {
    let read = || steps(arguments, situation);
    let mut steps = read()?;
    // What only shows a change makes none itself.
    let _lock = if arguments.dry_run { None } else { Some(steps[0].location().lock(situation)?) };
    if !arguments.dry_run {
        // The previous holder of the lock may have changed the files.
        steps = read()?;
    }
    let elsewhere = |due: &[Step]| other_place(arguments, due);
    perform_or_show(steps, arguments.consent, arguments.dry_run, situation, elsewhere)
}

/// Makes the steps after the checks of `install`, or none of them. The caller took the lock before it read
/// the files.
pub(super) fn perform(steps: Vec<Step>, consent: ConsentOptions, situation: &Situation) -> Result<u8, Error> {
    perform_or_show(steps, consent, false, situation, |_| None)
}

fn perform_or_show(
    steps: Vec<Step>,
    consent: ConsentOptions,
    dry_run: bool,
    situation: &Situation,
    elsewhere: impl Fn(&[Step]) -> Option<String>,
) -> Result<u8, Error> {
    let due = step::due(steps);
    let Some(first) = due.first() else { return Ok(ExitStatus::Success as u8) };
    let sources = &first.location().sources;
    let candidate = Candidate::after(&due, sources);
    let review = candidate.review(situation)?;
    if let Some(obstacle) = &review.obstacle {
        let refused = refuse(&format!("nothing was changed: {obstacle}"));
        if let Some(other) = elsewhere(&due) {
            stream::complain(&other);
        }
        return Ok(refused);
    }
    let Some(order) = find(sources, candidate.proposals()) else {
        return Ok(refuse(
            "nothing was changed: no order was found in which the files can be replaced without a fault in \
                between",
        ));
    };
    if dry_run {
        print(&format!("\nWithout --dry-run: {}\n", to_do(&due)))?;
        return Ok(ExitStatus::Success as u8);
    }
    let why_not = review.uncounted.filter(|_| consent.yes);
    if !review.is_agreed(consent) && !is_wanted(&due, why_not) {
        return Ok(refuse("nothing was changed"));
    }
    step::make(order.steps.into_iter().map(|index| &due[index]), order.is_free_of_faults, situation)?;
    Ok(ExitStatus::Success as u8)
}

/// How to put a file in the other place, if its name alone chose this one.
fn other_place(arguments: &InstallPolicyArguments, steps: &[Step]) -> Option<String> {
    let ([step @ Step::Put(target, _)], [file], None) = (steps, &arguments.files[..], &arguments.name) else {
        return None;
    };
    if target.location.sources.own.is_some() {
        return None;
    }
    let (other, name) = if target.location.is_drop_in() {
        ("replace the main file", "policy.toml")
    } else {
        ("add a drop-in", "50-local.toml")
    };
    Some(format!(
        "By its name it would {}. To {other} instead: rungate policy install --name {name} {}",
        step.to_do(),
        word(file)
    ))
}

fn refuse(why: &str) -> u8 {
    stream::complain(&format!("rungate: {why}"));
    ExitStatus::Failure as u8
}

/// Asks; `why_not` is why `--yes` was not enough.
fn is_wanted(steps: &[Step], why_not: Option<&str>) -> bool {
    if !question::is_there_anybody() {
        let how = why_not.unwrap_or("--yes does it without a prompt");
        let all = to_do(steps);
        stream::complain(&format!(
            "rungate: this would {all}, but there is no terminal for the prompt; \
            {how}"
        ));
        return false;
    }
    let all = to_do(steps);
    let (first, rest) = all.split_at(1);
    let question = format!("{}{rest}? (y)es or (n)o: ", first.to_uppercase());
    question::ask(&question, &[('y', true), ('n', false)]).unwrap_or(false)
}

fn to_do(steps: &[Step]) -> String {
    steps.iter().map(Step::to_do).collect::<Vec<String>>().join(" and ")
}

/// The steps, file by file.
fn steps(arguments: &InstallPolicyArguments, situation: &Situation) -> Result<Vec<Step>, Error> {
    let put = if arguments.files.is_empty() { Vec::new() } else { files(arguments, situation)? };
    let removals = arguments.remove.iter().map(|name| Removal::of(name, situation).map(Step::TakeAway));
    let removals = removals.collect::<Result<Vec<Step>, Error>>()?;
    let steps: Vec<Step> = put.into_iter().chain(removals).collect();
    for (index, step) in steps.iter().enumerate() {
        if let Some(earlier) = steps[..index].iter().find(|earlier| earlier.path() == step.path()) {
            let is_same = mem::discriminant(earlier) == mem::discriminant(step);
            let why = if is_same { "is named twice" } else { "cannot be installed and removed at once" };
            return Err(Error::new(ExitStatus::Usage, format!("{} {why}", visible(step.path()))));
        }
    }
    Ok(steps)
}

/// Each file with its place: for root by its name, for other users one file as their own policy.
fn files(arguments: &InstallPolicyArguments, situation: &Situation) -> Result<Vec<Step>, Error> {
    let InstallPolicyArguments { files, name, .. } = arguments;
    let sources: Vec<PathBuf> =
        files.iter().map(|file| within(file, situation)).collect::<Result<Vec<_>, _>>()?.concat();
    let is_root = situation.credentials.uid == 0;
    if sources.len() != 1 && (name.is_some() || !is_root) {
        let text = if is_root { "--name is for one file" } else { "your own policy is one file" };
        return Err(Error::new(ExitStatus::Usage, text));
    }
    if let Some(name) = name.as_ref().filter(|name| !is_root && *name != "policy.toml") {
        let text = format!("your own policy is one file, policy.toml: it has no {}", visible(name));
        return Err(Error::new(ExitStatus::Usage, text).advise("Only root can add a drop-in.".to_owned()));
    }
    let installed = |source: &PathBuf| {
        let text = read_candidate(source, situation)?;
        let name = name.as_deref().or(source.file_name()).unwrap_or_default();
        let is_of_drop_ins = source.parent().is_some_and(|above| above.ends_with("policy.d"));
        let location = if !is_root {
            Location::usual(situation)?
        } else if arguments.name.is_none() && is_of_drop_ins {
            Location::of_path(&Sources::system(0).drop_ins().join(name), situation)?
        } else {
            Location::of_path(&path_of_system(name, "--name")?, situation)?
        };
        Ok(Step::Put(Rc::new(Target::at(location)?), text))
    };
    sources.iter().map(installed).collect()
}

/// The files of the policy that a path leads to.
fn within(path: &Path, situation: &Situation) -> Result<Vec<PathBuf>, Error> {
    let judged = JudgedDirectories::for_caller(situation.credentials.uid);
    let files =
        files_of(path, &judged).map_err(|insecure| Error::new(ExitStatus::Policy, insecure.to_string()))?;
    match files.as_slice() {
        [main] if main != path && regular_file::status_of_path(main).is_err() => {
            let text = format!("{} has neither policy.toml nor a drop-in", visible(path));
            let advice =
                "Name the files to install, or a directory with policy.toml, policy.d, or drop-ins alone";
            Err(Error::new(ExitStatus::Usage, text).advise(Some(advice.to_owned())))
        }
        _ => Ok(files),
    }
}

// The order in which several files are put in place. Each file is replaced in one step, but all of them
// together cannot be. So their order leaves the policy without a new fault after each step, even if the next
// one never happens.

/// An order of steps.
pub(super) struct Order {
    /// By index.
    steps: Vec<usize>,
    /// Whether the policy has no fault before them, and after each of them.
    is_free_of_faults: bool,
}

/// The order; `None` if there is none.
pub(super) fn find(sources: &Sources, proposals: &[Proposal]) -> Option<Order> {
    let Ok(present) = Policy::propose_sound(sources, &[], Purpose::Launches(None)) else {
        // If no launch can start, no step can make it worse.
        return Some(Order { steps: (0..proposals.len()).collect(), is_free_of_faults: false });
    };
    let sets = Sets { sources, proposals, present: &present };
    let mut candidates: Vec<usize> = (0..proposals.len()).collect();
    // What can be the first and the last one needs no order: it comes first, and only others are ordered.
    candidates.sort_by_cached_key(|index| !sets.can_be_first_and_last(*index));
    let (mut steps, mut tried) = (Vec::new(), HashSet::new());
    let is_free_of_faults = present.withheld().is_empty();
    sets.search(&candidates, &mut steps, &mut tried).then_some(Order { steps, is_free_of_faults })
}

/// How many sets are tried at most: some seconds.
const MOST_TRIED: usize = 1000;

/// Sets of files in place; whether one has a fault does not depend on the order in which they got there.
struct Sets<'p> {
    sources: &'p Sources,
    proposals: &'p [Proposal],
    /// The policy without any of them.
    present: &'p Policy,
}

impl Sets<'_> {
    /// Whether faults stop no other launches than they do now.
    fn is_sound(&self, there: &BTreeSet<usize>) -> bool {
        let there: Vec<Proposal> = there.iter().map(|index| self.proposals[*index].clone()).collect();
        let policy = Policy::propose_sound(self.sources, &there, Purpose::Launches(None));
        let now = self.present.withheld();
        policy.is_ok_and(|policy| {
            policy.withheld().iter().all(|(faulty, _)| now.iter().any(|(known, _)| known == faulty))
        })
    }

    fn can_be_first_and_last(&self, index: usize) -> bool {
        let others = (0..self.proposals.len()).filter(|other| *other != index).collect();
        self.is_sound(&BTreeSet::from([index])) && self.is_sound(&others)
    }

    /// Completes an order that has no fault so far.
    fn search(
        &self,
        candidates: &[usize],
        order: &mut Vec<usize>,
        tried: &mut HashSet<BTreeSet<usize>>,
    ) -> bool {
        if order.len() == candidates.len() {
            return true;
        }
        for next in candidates {
            if order.contains(next) || tried.len() == MOST_TRIED {
                continue;
            }
            order.push(*next);
            let there: BTreeSet<usize> = order.iter().copied().collect();
            let is_new = tried.insert(there.clone());
            if is_new && self.is_sound(&there) && self.search(candidates, order, tried) {
                return true;
            }
            order.pop();
        }
        false
    }
}
