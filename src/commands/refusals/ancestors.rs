//! What to do where a launch would wait for itself.

use crate::{
    protocol::refusal::Full,
    terms::{claim::Claim, hold::Hold, nested::Nested},
};

/// What there is to do where only programs above this one stand in the way. An administrator hears of what is
/// not yet so.
pub(super) fn among_ancestors(full: &[(&Claim<'_>, &Full)]) -> String {
    let (mut takes, mut is_weak) = (false, false);
    for (claim, full) in full.iter().filter(|(_, full)| full.only_ancestors) {
        takes |= claim.nested == Nested::Take;
        is_weak |= full.holders().iter().any(|holder| holder.hold.is_none_or(|hold| hold == Hold::Process));
    }
    let missing = match (takes, is_weak) {
        (true, true) => "nested = \"join\" and hold = \"descriptor\"",
        (true, false) => "nested = \"join\"",
        (false, true) => "hold = \"descriptor\"",
        (false, false) => {
            return "Start it outside of the program that holds the slot.\n\
                    The slot can be shared, but only for the same command, and by one program at a time."
                .to_owned();
        }
    };
    format!(
        "Start it outside of the program that holds the slot.\n\
         An administrator can let it share that slot: {missing}."
    )
}
