//! How large the storms are.

/// So many launches, times `RUNGATE_STORM` where that is set: the default is what fits into everybody's test
/// run.
pub(crate) fn storm_size(usual: usize) -> usize {
    let factor = std::env::var("RUNGATE_STORM").ok();
    let factor: f64 = factor.map_or(1.0, |text| text.parse().expect("RUNGATE_STORM is a number"));
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
    let size = (usual as f64 * factor) as usize;
    size.max(1)
}
