//! `rungate run --limit`: a limit of the launch itself. Rules of a policy that match it apply as well.

use std::path::Path;

use crate::{
    commands::{run::launch_options::LaunchOptions, shared::situation::Situation},
    sys::regular_file,
    terms::{
        amount::Amount,
        claim::Claim,
        location::{Creation, FileLocation},
        nested::Nested,
        slots::Slots,
    },
};

/// The claim of `--limit`. Without `--repository` the lock file is the caller's own, and named after
/// the command as rules see it.
pub(super) fn claim(options: &LaunchOptions, situation: &Situation) -> Option<Claim<'static>> {
    let cap = options.cap.as_ref()?;
    let location = match &cap.repository {
        Some(file) => FileLocation::named(situation.directory.join(file), regular_file::mode_for_new_files()),
        None => {
            let typed = options.name_for_rules();
            let name = Path::new(typed).file_name().unwrap_or(typed).to_string_lossy().into_owned();
            let base = situation.runtime.clone();
            FileLocation {
                path: base.join(format!("{name}.lock")),
                owner: None,
                creation: Creation {
                    private: Some(base.clone()),
                    base,
                    create_base: true,
                    file_mode: 0o600,
                    directory_mode: 0o700,
                    by_hand: false,
                },
            }
        }
    };
    let slots = Slots::Number(cap.slots.unwrap_or(1));
    let amount = Amount::plain(slots, cap.limit.into());
    Some(Claim { nested: Nested::Join, ..Claim::outside_the_policy(location, amount, "--limit") })
}
