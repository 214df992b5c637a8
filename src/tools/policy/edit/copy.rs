//! The copy that is edited: in a directory of its own that nobody else can enter. It is removed when it is
//! not needed any more, and only then.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    launch::situation::Situation,
    sys::{
        failure::{Errno, errno_of},
        private_directory, replaced_file,
    },
    text::{error::Error, escape::visible, exit_status::ExitStatus},
    tools::policy::target::Target,
};

/// What a policy begins with.
const EMPTY: &str = "version = 1\n";

/// A copy of a file.
pub(super) struct EditedCopy {
    directory: PathBuf,
    path: PathBuf,
    original: String,
}

impl EditedCopy {
    /// A copy of what stands there now.
    pub(super) fn of(target: &Target, situation: &Situation) -> Result<Self, Error> {
        let failed = |what: &str, errno: Errno| {
            Error::new(
                ExitStatus::System,
                format!("no copy can be made to be edited: {what}: {}", errno.desc()),
            )
        };
        let directory = private_directory::create("rungate-policy-", situation.credentials.uid)
            .map_err(|errno| failed("mkdtemp", errno))?;
        let name = target.path().file_name().unwrap_or_default();
        let path = directory.join(name);
        let original = target.before.clone().unwrap_or_else(|| EMPTY.to_owned());
        replaced_file::create(&path, original.as_bytes(), 0o600)
            .map_err(|failure| failed(failure.call, failure.errno))?;
        Ok(Self { directory, path, original })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What stands in it.
    pub(super) fn text(&self) -> Result<String, Error> {
        let bytes = fs::read(&self.path).map_err(|error| {
            let why = errno_of(&error).desc();
            Error::new(ExitStatus::System, format!("{} cannot be read: {why}", visible(&self.path)))
        })?;
        String::from_utf8(bytes).map_err(|_| {
            let text = format!("{} is not UTF-8 text", visible(&self.path));
            Error::new(ExitStatus::Failure, text)
                .advise("Nothing was changed, and the copy is kept.".to_owned())
        })
    }

    /// Whether this is what stood in it first.
    pub(super) fn is_original(&self, text: &str) -> bool {
        self.original == text
    }

    /// Removes it, and what an editor left beside it.
    pub(super) fn remove(self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}
