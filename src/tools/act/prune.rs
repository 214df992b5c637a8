//! `rungate prune`: removes lock files of members that are not needed any more.

use std::{fmt::Write as _, path::PathBuf};

use crate::{
    cli::PruneArguments,
    keeper::Pruned,
    launch::Situation,
    policy::Repository,
    text::{Error, ExitStatus, print, stream, visible, word},
    tools::shared::repositories,
};

/// Removes idle lock files of repositories with a file for each member, and reports their number.
pub(crate) fn run(arguments: &PruneArguments, situation: &Situation) -> Result<u8, Error> {
    let policy = situation.load_policy()?;
    let wanted = repositories::wanted(&policy, situation, &arguments.repositories)?;
    if !arguments.repositories.is_empty()
        && let Some(one) = wanted.iter().find(|repository| !repository.of_members)
    {
        let text = format!("{}: its lock file is never removed: it has no members", visible(&one.name));
        return Err(Error::new(ExitStatus::Usage, text));
    }
    // The pattern of one layer may match a file of another layer; within a layer, that is a fault.
    let fixed: Vec<PathBuf> =
        policy.repositories().iter().filter_map(|known| known.fixed_path(&situation.runtime)).collect();
    let pause = |name: &str| {
        let mut known = policy.repositories().iter().filter(|known| known.shown_name() == name);
        known.find_map(|known: &Repository| known.pace().pause)
    };
    let (mut text, mut removed, mut all, mut failed) = (String::new(), 0, 0, false);
    for file in wanted.iter().filter(|repository| repository.of_members).flat_map(|known| &known.files) {
        let Some(path) = file.path().filter(|path| !fixed.iter().any(|known| known == path)) else {
            continue;
        };
        match file.prune(pause(&file.name), arguments.dry_run) {
            Ok(Pruned::Removed) => {
                (removed, all) = (removed + 1, all + 1);
                if arguments.dry_run {
                    let _ = writeln!(text, "would remove {}", word(path));
                }
            }
            Ok(Pruned::InUse | Pruned::Remembered) => all += 1,
            Ok(Pruned::NotOurs) => {}
            Err(error) => {
                failed = true;
                stream::complain(&format!("rungate: {}: {error}", visible(file.title())));
            }
        }
    }
    if removed > 0 && !arguments.dry_run {
        let _ = writeln!(
            text,
            "removed {removed} of {all} lock files; the others are in use, or were used lately"
        );
    }
    print(&text)?;
    Ok(if failed { ExitStatus::Repository } else { ExitStatus::Success } as u8)
}
