//! The agent's settings: a file of root's, and root's alone, because it may have secrets. It is read once,
//! when the agent starts.

use std::path::Path;

use super::Fatal;
use crate::{
    keeper::agent::frame::LONGEST_REQUEST,
    policy::{AgentFile, LONGEST_MESSAGE},
    sys::{
        failure::Errno,
        trust::{InsecurePath, Reason},
        trusted_file::{JudgedDirectories, TrustedFile},
    },
};

/// Where they are. They need not be there.
const SETTINGS: &str = "/etc/rungate/agent.toml";

const ROOT: u32 = 0;

// What launchers may ask is what agents may take.
const _: () = assert!(LONGEST_REQUEST == LONGEST_MESSAGE as usize);

/// Reads them; those at `path` must be there.
pub(super) fn load(path: Option<&Path>) -> Result<AgentFile, Fatal> {
    let at = path.unwrap_or(Path::new(SETTINGS));
    match content(at).map_err(Fatal::InsecurePath)? {
        Some(content) => AgentFile::read(at, content).map_err(Fatal::Settings),
        None if path.is_none() => Ok(AgentFile::default()),
        None => {
            let reason = Reason::System("open", Errno::ENOENT);
            Err(Fatal::InsecurePath(InsecurePath { path: at.to_owned(), reason }))
        }
    }
}

fn content(path: &Path) -> Result<Option<Vec<u8>>, InsecurePath> {
    let file = TrustedFile::open(path, &JudgedDirectories::for_caller(ROOT))?;
    file.map(|file| file.of_its_owner_alone()?.read()).transpose()
}
