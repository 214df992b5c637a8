//! In which order several files are put in place. Each is replaced in one step, and all of them cannot be; so
//! they are in an order in which the policy has no fault after any step, whoever reads it then, and also
//! should there be no next one.

use crate::policy::{Policy, Proposal, Sources};

/// Such an order, by index; `None` where there is none.
pub(super) fn find(sources: &Sources, proposals: &[Proposal]) -> Option<Vec<usize>> {
    // Where it has faults already no step can make it worse for anybody.
    if Policy::propose(sources, &[], None).is_err() {
        return Some((0..proposals.len()).collect());
    }
    let mut order = Vec::new();
    search(sources, proposals, &mut order).then_some(order)
}

fn search(sources: &Sources, proposals: &[Proposal], order: &mut Vec<usize>) -> bool {
    if order.len() == proposals.len() {
        return true;
    }
    for next in (0..proposals.len()).filter(|index| !order.contains(index)).collect::<Vec<_>>() {
        order.push(next);
        let there: Vec<Proposal> = order.iter().map(|index| proposals[*index].clone()).collect();
        if Policy::propose(sources, &there, None).is_ok() && search(sources, proposals, order) {
            return true;
        }
        order.pop();
    }
    false
}
