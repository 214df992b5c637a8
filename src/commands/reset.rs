//! `rungate reset`: forget when a repository was last used.

use crate::{
    cli::ResetArguments,
    commands::{repositories, situation::Situation},
    error::Error,
    exit_status::ExitStatus,
    output::{stream, visible::visible},
    repository::{file::Creation, reset::reset as forget},
};

/// Lets the repositories that were named be used again at once.
pub(super) fn reset(arguments: &ResetArguments) -> Result<u8, Error> {
    let situation = Situation::of_this_process()?;
    let policy = situation.load_policy(arguments.policy.policy.clone())?;
    let files = repositories::wanted(&policy, &situation, &arguments.repositories)?
        .into_iter()
        .flat_map(|repository| repository.files);
    for file in files {
        let base = file.path.parent().unwrap_or(&file.path).to_owned();
        let creation =
            Creation { base, create_base: false, private: None, file_mode: 0o600, directory_mode: 0o700 };
        let changed = forget(&file.path, &creation).map_err(|error| {
            Error::new(ExitStatus::Repository, format!("{}: {error}", visible(file.title())))
                .advise(error.advice())
        })?;
        if !changed {
            let title = visible(file.title());
            stream::complain(&format!("rungate: {title}: there was no last start to forget"));
        }
    }
    Ok(ExitStatus::Success as u8)
}
