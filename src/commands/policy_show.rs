//! to come
use crate::error::Error;
pub(super) fn show(_policy: Option<std::path::PathBuf>) -> Result<u8, Error> {
    Ok(0)
}
