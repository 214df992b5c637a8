//! `rungate policy show`: the policy in force, drop-ins merged and aliases replaced, as a policy that decides the same.
//! Where the caller adds to the system's, each layer is a policy of its own, under a line that says whose it is.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{
    commands::{print, situation::Situation},
    error::Error,
    exit_status::ExitStatus,
    output::json,
    policy::{LayerKind, SYSTEM_POLICY},
};

/// Prints the policy in force for the caller.
pub(super) fn show(json: bool, named: Option<PathBuf>) -> Result<u8, Error> {
    let policy = Situation::of_this_process()?.load_policy(named)?;
    let layers = policy.print();
    match layers.as_slice() {
        [] => Err(Error::new(ExitStatus::Policy, "there is no policy to show")
            .advise(format!("It would stand in {SYSTEM_POLICY}, or be given with --policy FILE."))),
        layers if json => print(&to_json(layers)),
        [(_, only)] => print(only),
        several => {
            let parts: Vec<String> =
                several.iter().map(|(kind, text)| format!("# {}\n{text}", whose(*kind))).collect();
            print(&parts.join("\n"))
        }
    }
}

fn whose(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::System => "The system's policy",
        LayerKind::Given => "The policy that was given, added to it",
        LayerKind::Own => "Your own policy, added to it",
    }
}

/// Each layer as the same tables in JSON, where the policy is TOML.
fn to_json(layers: &[(LayerKind, String)]) -> String {
    let layer = |(kind, text): &(LayerKind, String)| {
        let kind = match kind {
            LayerKind::System => "system",
            LayerKind::Given => "given",
            LayerKind::Own => "own",
        };
        // What was printed as a policy reads back as one.
        let policy: Option<Value> = toml::from_str(text).ok();
        json!({ "layer": kind, "policy": policy })
    };
    json::render(&Value::Array(layers.iter().map(layer).collect()))
}
