//! What the agent says of the site to whoever reads its log.

use crate::text::stream;

/// Says it on a line of its own.
pub(super) fn log(text: &str) {
    stream::complain(&format!("rungate-agent: {text}"));
}
