//! Figures of a campaign.

use std::io::Write;

/// Says them on the real standard error, which the test runner does not capture.
pub(crate) fn tell(figures: &str) {
    // A test runner without standard error has nobody to tell.
    let _ = std::io::stderr().write_all(format!("{figures}\n").as_bytes());
}
