//! `rungate policy diff`: compares two policies by rules, repositories and settings instead of lines.

use std::{
    io::{self, Read},
    path::Path,
};

use crate::{
    cli::DiffArguments,
    launch::Situation,
    policy::{Difference, Layer, LayerKind, Policy, SYSTEM_POLICY},
    sys::errno_of,
    text::{Error, ExitStatus, print, visible},
};

/// The name of standard input.
const STANDARD_INPUT: &str = "-";

/// Prints the differences; the status shows whether there are any, like that of diff(1).
pub(super) fn run(arguments: &DiffArguments, situation: &Situation) -> Result<u8, Error> {
    let DiffArguments { old, new } = arguments;
    if [old, new].iter().all(|path| path.as_os_str() == STANDARD_INPUT) {
        let text = "standard input can be one of the two policies, and not both";
        return Err(Error::new(ExitStatus::Usage, text));
    }
    let (old, new) = (read(old, situation)?, read(new, situation)?);
    let difference = Difference::between(&old, &new);
    print(&difference.to_string())?;
    Ok(if difference.is_empty() { ExitStatus::Success } else { ExitStatus::Failure } as u8)
}

fn read(path: &Path, situation: &Situation) -> Result<Policy, Error> {
    let read = if path.as_os_str() == STANDARD_INPUT {
        Policy::of_text("standard input", text_of_standard_input()?)
    } else {
        Policy::at(path, situation.credentials.uid)
    };
    read.map_err(|faults| situation.faulty(&faults).advise(advice(path)))
}

fn text_of_standard_input() -> Result<String, Error> {
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text).map_err(|error| {
        let why = if error.kind() == io::ErrorKind::InvalidData {
            "it is no UTF-8"
        } else {
            errno_of(&error).desc()
        };
        Error::new(ExitStatus::System, format!("standard input cannot be read: {why}"))
    })?;
    Ok(text)
}

/// A single file is compared without drop-ins and main file.
fn advice(path: &Path) -> Option<String> {
    let is_file = path.is_file();
    is_file.then(|| {
        "To compare with other files, name a directory that has policy.toml and policy.d.".to_owned()
    })
}

// `rungate policy show`: the policy in force, drop-ins merged and aliases replaced, as a policy that decides
// the same. If the caller's own policy is added to the system's, each layer is printed as a separate policy,
// under a line that names it.

/// Prints the policy in force for the caller.
pub(super) fn show(situation: &Situation) -> Result<u8, Error> {
    let policy = situation.load_policy()?;
    let layers = policy.print();
    match layers.as_slice() {
        [] => Err(Error::new(ExitStatus::Policy, "there is no policy to show")
            .advise(format!("It would be in {SYSTEM_POLICY}, or be given with --policy FILE."))),
        [(_, only)] => print(only),
        several => {
            let parts = several.iter().zip(policy.layers());
            let parts: Vec<String> =
                parts.map(|((_, text), layer)| format!("# {}\n{text}", whose(layer))).collect();
            print(&parts.join("\n"))
        }
    }
}

fn whose(layer: &Layer) -> String {
    match (layer.kind(), layer.delegation()) {
        (LayerKind::Delegated, Some(delegation)) => {
            format!("{}, delegated to {}", visible(delegation.file()), visible(delegation.owner()))
        }
        (LayerKind::System | LayerKind::Delegated, _) => "The system's policy".into(),
        (LayerKind::Given, _) => "The policy that was given, added to it".into(),
        (LayerKind::Own, _) => "Your own policy, added to it".into(),
    }
}
