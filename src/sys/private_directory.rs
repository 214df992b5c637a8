//! A directory of the caller for files that no other user may read or change, in a place that survives a
//! reboot if there is one.

use std::{
    env,
    path::{Path, PathBuf},
};

use nix::unistd::mkdtemp;

use super::{
    failure::Errno,
    trusted_file::{JudgedDirectories, TrustedDirectory},
};

/// Where it is made, unless `TMPDIR` names a directory that can be trusted.
const PLACES: [&str; 2] = ["/var/tmp", "/tmp"];

/// Makes one whose name begins so, with mode 0700.
pub(crate) fn create(beginning: &str, caller: u32) -> Result<PathBuf, Errno> {
    let own = env::var_os("TMPDIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let mut failure = Errno::ENOENT;
    for place in own.into_iter().chain(PLACES.map(PathBuf::from)).filter(|place| is_trusted(place, caller)) {
        match mkdtemp(&place.join(format!("{beginning}XXXXXX"))) {
            Ok(made) => return Ok(made),
            Err(errno) => failure = errno,
        }
    }
    Err(failure)
}

/// Whether no other user can replace a directory that is made there.
fn is_trusted(place: &Path, caller: u32) -> bool {
    matches!(TrustedDirectory::open(place, &JudgedDirectories::for_caller(caller)), Ok(Some(_)))
}
