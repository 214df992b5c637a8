//! `rungate policy show`: the policy in force, drop-ins merged and aliases replaced, as a policy that decides
//! the same. If the caller's own policy is added to the system's, each layer is printed as a separate policy,
//! under a line that names it.

use crate::{
    launch::situation::Situation,
    policy::{Layer, LayerKind, SYSTEM_POLICY},
    text::{
        error::{Error, ExitStatus},
        escape::visible,
        stream::print,
    },
};

/// Prints the policy in force for the caller.
pub(super) fn run(situation: &Situation) -> Result<u8, Error> {
    let policy = situation.load_policy()?;
    let layers = policy.print();
    match layers.as_slice() {
        [] => Err(Error::new(ExitStatus::Policy, "there is no policy to show")
            .advise(format!("It would be in {SYSTEM_POLICY}, or be given with --policy FILE."))),
        [(_, only)] => print(only),
        several => {
            let parts = several.iter().zip(policy.layers());
            let parts: Vec<String> =
                parts.map(|((_, text), layer)| format!("# {}\n{text}", whose(layer))).collect();
            print(&parts.join("\n"))
        }
    }
}

fn whose(layer: &Layer) -> String {
    match (layer.kind(), layer.delegation()) {
        (LayerKind::Delegated, Some(delegation)) => {
            format!("{}, delegated to {}", visible(delegation.file()), visible(delegation.owner()))
        }
        (LayerKind::System | LayerKind::Delegated, _) => "The system's policy".into(),
        (LayerKind::Given, _) => "The policy that was given, added to it".into(),
        (LayerKind::Own, _) => "Your own policy, added to it".into(),
    }
}
