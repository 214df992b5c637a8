//! `rungate policy show`: the policy in force, drop-ins merged and aliases replaced, as a policy that decides
//! the same. Where the caller adds to the system's, each layer is a policy of its own, under a line that says
//! whose it is.

use serde_json::{Value, json};

use crate::{
    cli::ShowArguments,
    commands::shared::{print, situation::Situation},
    error::Error,
    escape::visible,
    exit_status::ExitStatus,
    output::json,
    policy::{Delegation, Layer, LayerKind, Policy, SYSTEM_POLICY},
};

/// Prints the policy in force for the caller.
pub(super) fn run(arguments: &ShowArguments) -> Result<u8, Error> {
    let policy = Situation::of_this_process()?.load_policy(arguments.policy.policy.clone())?;
    let layers = policy.print();
    match layers.as_slice() {
        [] => Err(Error::new(ExitStatus::Policy, "there is no policy to show")
            .advise(format!("It would stand in {SYSTEM_POLICY}, or be given with --policy FILE."))),
        layers if arguments.json => print(&to_json(layers, &policy)),
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

/// Each layer as the same tables in JSON, where the policy is TOML.
fn to_json(layers: &[(LayerKind, String)], policy: &Policy) -> String {
    let layer = |((kind, text), layer): (&(LayerKind, String), &Layer)| {
        let kind = match kind {
            LayerKind::System => "system",
            LayerKind::Delegated => "delegated",
            LayerKind::Given => "given",
            LayerKind::Own => "own",
        };
        // What was printed as a policy reads back as one.
        let policy: Option<Value> = toml::from_str(text).ok();
        let file = layer.delegation().map(Delegation::file);
        json!({ "layer": kind, "file": file, "policy": policy })
    };
    json::render(&Value::Array(layers.iter().zip(policy.layers()).map(layer).collect()))
}
