//! `rungate policy diff`: compares two policies by rules, repositories and settings instead of lines.

use std::{
    io::{self, Read},
    path::Path,
};

use crate::{
    cli::DiffArguments,
    launch::situation::Situation,
    policy::{Difference, Policy},
    sys::failure::errno_of,
    text::{
        error::{Error, ExitStatus},
        stream::print,
    },
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
