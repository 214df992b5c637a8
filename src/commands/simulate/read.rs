//! Reads logs: threads parse the events while this one makes launches of them.

use std::path::PathBuf;

use crate::{
    cli::Span,
    commands::{history, shared::situation::Situation},
    error::Error,
    simulation::{recording::Recording, traffic::Traffic},
};

/// Everything that the logs tell within a span of time.
pub(super) fn all(
    situation: &Situation,
    files: &[PathBuf],
    span: &Span,
    mut recording: Recording,
) -> Result<Traffic, Error> {
    history::each_of(situation, files, span, &mut |event| recording.see(event))?;
    Ok(recording.finish())
}
