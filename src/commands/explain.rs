//! to come
use crate::error::Error;
pub(super) fn explain(_arguments: &crate::cli::ExplainArguments) -> Result<u8, Error> {
    Ok(0)
}
