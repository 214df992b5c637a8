//! `rungate policy install`: files become those of the policy, checked before as `rungate policy edit` does,
//! and put in place as a whole; drop-ins go in the same way.

mod order;
mod removal;
mod step;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::{
    cli::InstallPolicyArguments,
    commands::{
        policy::{
            candidate::Candidate,
            install::{removal::Removal, step::Step},
            location::Location,
            question,
            target::Target,
        },
        shared::{print, situation::Situation},
    },
    error::Error,
    escape::visible,
    exit_status::ExitStatus,
    output::stream,
    policy::{Proposal, SYSTEM_POLICY, Sources},
    sys::{
        judged_directories::JudgedDirectories,
        regular_file::{self, Kind},
        trusted_directory::TrustedDirectory,
        trusted_file::TrustedFile,
    },
};

/// Makes every step, or none.
pub(super) fn run(arguments: &InstallPolicyArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let steps = steps(arguments, &situation)?;
    let _lock = steps[0].location().lock(&situation)?;
    let due: Vec<Step> = steps.into_iter().filter(Step::is_due).collect();
    let Some(first) = due.first() else { return Ok(ExitStatus::Success as u8) };
    let sources = &first.location().sources;
    let proposals: Vec<Proposal> = due.iter().map(Step::proposal).collect();
    let candidate = Candidate::new(sources, proposals.clone());
    let complaints = candidate.complaints();
    if !complaints.is_empty() {
        stream::complain(&complaints);
    }
    print(&candidate.changes(&situation))?;
    if !candidate.is_sound() {
        return Ok(refuse(&format!("nothing was changed: {}", candidate.why_not())));
    }
    let Some(order) = order::find(sources, &proposals) else {
        return Ok(refuse(
            "nothing was changed: one file after the other, the policy would have faults in between",
        ));
    };
    if arguments.dry_run {
        print(&format!("\nWithout --dry-run: {}\n", to_do(&due)))?;
        return Ok(ExitStatus::Success as u8);
    }
    if !arguments.yes && !is_wanted(&due) {
        return Ok(refuse("nothing was changed"));
    }
    make(&order.into_iter().map(|index| &due[index]).collect::<Vec<_>>())
}

fn refuse(why: &str) -> u8 {
    stream::complain(&format!("rungate: {why}"));
    ExitStatus::Failure as u8
}

fn is_wanted(steps: &[Step]) -> bool {
    if !question::is_there_anybody() {
        stream::complain(
            "rungate: there is no terminal to ask on; --yes does it without a question, and --dry-run only shows it",
        );
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

fn make(steps: &[&Step]) -> Result<u8, Error> {
    for (index, step) in steps.iter().enumerate() {
        let done = || match &steps[..index] {
            [] => "Nothing was changed.".to_owned(),
            done => {
                let done: Vec<String> = done.iter().map(|step| step.done()).collect();
                format!("Before that {}. The policy has no fault as it is.", done.join(" and "))
            }
        };
        if step.has_changed()? {
            let text = format!("{} was changed by somebody else meanwhile", visible(step.path()));
            return Err(Error::new(ExitStatus::Failure, text).advise(done()));
        }
        step.make().map_err(|error| error.advise(done()))?;
    }
    Ok(ExitStatus::Success as u8)
}

/// What is to be done, file by file.
fn steps(arguments: &InstallPolicyArguments, situation: &Situation) -> Result<Vec<Step>, Error> {
    let put = if arguments.files.is_empty() { Vec::new() } else { files(arguments, situation)? };
    let removals = arguments.remove.iter().map(|name| Removal::of(name, situation).map(Step::TakeAway));
    let removals = removals.collect::<Result<Vec<Step>, Error>>()?;
    let twice = removals.iter().find(|removal| put.iter().any(|step| step.path() == removal.path()));
    match twice {
        Some(step) => {
            let text = format!("{} cannot be put in place and taken away", visible(step.path()));
            Err(Error::new(ExitStatus::Usage, text))
        }
        None => Ok(put.into_iter().chain(removals).collect()),
    }
}

/// Each file with its place: for root by its name, for anybody else one file as their own policy.
fn files(arguments: &InstallPolicyArguments, situation: &Situation) -> Result<Vec<Step>, Error> {
    let InstallPolicyArguments { files, name, .. } = arguments;
    let sources: Vec<PathBuf> =
        files.iter().map(|file| within(file, situation)).collect::<Result<Vec<_>, _>>()?.concat();
    let is_root = situation.credentials.uid == 0;
    if sources.len() != 1 && (name.is_some() || !is_root) {
        let text = if is_root { "--name is for one file" } else { "your own policy is one file" };
        return Err(Error::new(ExitStatus::Usage, text));
    }
    let installed = |source: &PathBuf| {
        let text = read(source, situation)?;
        let name = name.as_deref().or(source.file_name()).unwrap_or_default();
        let location = if is_root { of_system(name, situation)? } else { Location::usual(situation)? };
        Ok(Step::Put(Target::at(location)?, text))
    };
    sources.iter().map(installed).collect()
}

/// The main file, or a drop-in.
fn of_system(name: &OsStr, situation: &Situation) -> Result<Location, Error> {
    let system = Path::new(SYSTEM_POLICY);
    if Some(name) == system.file_name() {
        return Location::of_path(system, situation);
    }
    if name.as_encoded_bytes().contains(&b'/') {
        let text = format!("--name takes policy.toml or the name of a drop-in, not {}", visible(name));
        return Err(Error::new(ExitStatus::Usage, text));
    }
    Location::of_path(&Sources::system(0).drop_ins().join(name), situation)
}

/// The file itself, or those of a directory that has `policy.toml` and `policy.d`.
fn within(path: &Path, situation: &Situation) -> Result<Vec<PathBuf>, Error> {
    if !regular_file::status_of_target(path).is_ok_and(|status| status.kind == Kind::Directory) {
        return Ok(vec![path.to_owned()]);
    }
    let judged = JudgedDirectories::for_caller(situation.credentials.uid);
    let main = path.join("policy.toml");
    let mut files: Vec<PathBuf> = main.exists().then_some(main).into_iter().collect();
    let beside = path.join("policy.d");
    let opened = TrustedDirectory::open(&beside, &judged)
        .and_then(|opened| opened.map_or(Ok(Vec::new()), |opened| opened.names().map(<[_]>::to_vec)));
    let names = opened.map_err(|distrust| Error::new(ExitStatus::Policy, distrust.to_string()))?;
    let is_drop_in = |name: &&std::ffi::OsString| name.as_encoded_bytes().ends_with(b".toml");
    files.extend(names.iter().filter(is_drop_in).map(|name| beside.join(name)));
    if files.is_empty() {
        let text = format!("{} has neither policy.toml nor a drop-in in policy.d", visible(path));
        return Err(Error::new(ExitStatus::Usage, text));
    }
    Ok(files)
}

fn read(path: &Path, situation: &Situation) -> Result<String, Error> {
    let refused = |why: String| Error::new(ExitStatus::Policy, why);
    let judged = JudgedDirectories::for_caller(situation.credentials.uid);
    let opened = TrustedFile::open(path, &judged).map_err(|distrust| refused(distrust.to_string()))?;
    let mut opened = opened.ok_or_else(|| refused(format!("there is no file {}", visible(path))))?;
    let bytes = opened.read().map_err(|distrust| refused(distrust.to_string()))?;
    String::from_utf8(bytes).map_err(|_| refused(format!("{} is not UTF-8 text", visible(path))))
}
