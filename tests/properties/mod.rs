//! What holds for every policy and every request, tried with many that nobody thought of.

mod admission;
mod agreement;
mod delegation;
mod kept_rules;
mod line;
mod mutations;
mod paths;
mod printing;
mod request;

use proptest::prelude::ProptestConfig;

use crate::support::storm_size;

/// So many cases in an ordinary run, as with storms, and nothing that is kept of a failure.
fn cases(usual: usize) -> ProptestConfig {
    let cases = storm_size(usual).try_into().expect("a number of cases");
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
