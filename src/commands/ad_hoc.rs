//! `rungate run --limit`: a cap without a policy, or beside it.

use std::path::{Path, PathBuf};

use crate::{
    commands::{order::Order, situation::Situation},
    repository::{
        claim::{Admit, Claim, Nested, Slots},
        file::Creation,
    },
    sys::regular_file,
};

/// The claim of `--limit`. Without `--repository` the lock file is the caller's own, and named after the command.
pub(super) fn claim(order: &Order, situation: &Situation) -> Option<Claim> {
    let cap = order.cap.as_ref()?;
    let (path, creation) = match &cap.repository {
        Some(file) => {
            let path = situation.directory.join(file);
            let base = path.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned);
            let file_mode = regular_file::mode_for_new_files();
            (path, Creation { base, create_base: false, private: None, file_mode, directory_mode: 0o700 })
        }
        None => {
            let command = Path::new(&order.command);
            let name = command.file_name().unwrap_or(&order.command).to_string_lossy().into_owned();
            let base = situation.runtime.clone();
            let path = base.join(format!("{name}.lock"));
            (
                path,
                Creation {
                    private: Some(base.clone()),
                    base,
                    create_base: true,
                    file_mode: 0o600,
                    directory_mode: 0o700,
                },
            )
        }
    };
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
    Some(Claim {
        name: name.replace([' ', '=', ','], "_"),
        path,
        creation,
        owner: None,
        limit: u64::from(cap.limit),
        slots: Slots::Number(u64::from(cap.slots.unwrap_or(1))),
        zones: None,
        admit: Admit::WithinLimit,
        nested: Nested::Join,
        rule: "--limit".to_owned(),
        pause: None,
        expiry: None,
    })
}
