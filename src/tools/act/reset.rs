//! `rungate reset`: forget when a repository was last used.

use crate::{
    cli::ResetArguments,
    launch::Situation,
    text::{Error, ExitStatus, stream, visible},
    tools::shared::repositories,
};

/// Lets the repositories that were named be used again at once.
pub(crate) fn run(arguments: &ResetArguments, situation: &Situation) -> Result<u8, Error> {
    let policy = situation.load_policy()?;
    let nothing = |title: &str| {
        stream::complain(&format!("rungate: {}: there was no last start to forget", visible(title)));
    };
    // A start is recorded nevertheless, for listings.
    let is_unpaced = |name: &str| {
        let known = policy.repositories().iter().find(|known| known.shown_name() == name);
        known.is_some_and(|known| known.pace().pause.is_none())
    };
    let repositories = repositories::wanted(&policy, situation, &arguments.repositories)?;
    for repository in repositories.iter().filter(|repository| repository.files.is_empty()) {
        nothing(&repository.name);
    }
    for file in repositories.into_iter().flat_map(|repository| repository.files) {
        let changed = file.reset().map_err(|error| {
            Error::new(ExitStatus::Repository, format!("{}: {error}", visible(file.title())))
                .advise(error.advice())
        })?;
        if !changed {
            nothing(&file.title());
        } else if is_unpaced(&file.name) {
            stream::complain(&format!(
                "rungate: {}: this has no effect: the policy has no if_elapsed for it",
                visible(file.title())
            ));
        }
    }
    Ok(ExitStatus::Success as u8)
}
