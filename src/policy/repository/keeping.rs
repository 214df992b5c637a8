//! The keeper of a repository's slots: lock files, the agent, or the site. The agent judges by the system's
//! policy only, and has no files, so keys about files and policies of users exclude it.

use crate::{
    judge::terms::{Keeper, Keyword, OnLost, Unreachable},
    policy::{
        At, Findings, Key, Layer, LayerKind, Section, Shape, Table, Written, fault::Fault, key::key,
        toml_text::string,
    },
};

pub(in crate::policy) const KEYS: &[Key] = &[
    key(
        "keeper",
        Shape::OneOf(Keeper::words),
        "What keeps its slots: lock files, the agent, or the site.",
        "One repository that users must not be able to damage, or that counts over several hosts.",
    ),
    key(
        "unreachable",
        Shape::OneOf(Unreachable::words),
        "What happens to a launch if the agent, or its site, cannot be reached.",
        "Programs that must start even without the limit.",
    ),
    key(
        "on_lost",
        Shape::OneOf(OnLost::words),
        "What happens to running programs if their host loses the site.",
        "Licences whose limit must never be exceeded.",
    ),
];

/// The name of the keeper in faults about excluded keys.
const AGENT: &str = "keeper = \"agent\"";
const SITE: &str = "keeper = \"site\"";

/// The keeper of one repository's slots.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Keeping {
    pub(crate) keeper: Keeper,
    pub(crate) unreachable: Unreachable,
    pub(crate) on_lost: OnLost,
}

impl Keeping {
    /// Reads the keys of a repository. `name` and `path` are where its name and that key are.
    pub(in crate::policy) fn read(section: &Section<'_>, layer: &Layer, name: At, path: Option<At>) -> Self {
        let keeper: Option<Written<Keeper>> = section.choice("keeper");
        let unreachable: Option<Written<Unreachable>> = section.choice("unreachable");
        let on_lost: Option<Written<OnLost>> = section.choice("on_lost");
        let keeper_at = keeper.map_or(name, |keeper| keeper.at);
        let keeper = keeper.map_or(layer.keeper, |keeper| keeper.value);
        match keeper {
            Keeper::File => {
                if let Some(unreachable) = unreachable {
                    section.fault(unreachable.at, Fault::NeedsKey { key: "unreachable", needs: AGENT });
                }
            }
            Keeper::Agent | Keeper::Site => {
                if layer.kind() != LayerKind::System {
                    section.fault(keeper_at, Fault::AgentOutsideSystem { keeper: keeper.word() });
                }
                if let Some(at) = path {
                    section.fault(at, Fault::Contradiction { key: "path", other: words(keeper) });
                }
            }
        }
        if let Some(on_lost) = on_lost.filter(|_| keeper != Keeper::Site) {
            section.fault(on_lost.at, Fault::NeedsKey { key: "on_lost", needs: SITE });
        }
        Keeping {
            keeper,
            unreachable: unreachable.map_or(Unreachable::default(), |said| said.value),
            on_lost: on_lost.map_or(OnLost::default(), |said| said.value),
        }
    }

    pub(in crate::policy) fn print(self, text: &mut Table) {
        let Self { keeper, unreachable, on_lost } = self;
        // Printed in any case: the default of the layer may differ.
        text.set("keeper", string(keeper.word()));
        text.set_some("unreachable", unreachable.unless_default().map(string));
        text.set_some("on_lost", on_lost.unless_default().map(string));
    }
}

/// Keys of `[defaults]` about lock files.
pub(in crate::policy) fn check_defaults(
    keeper: Keeper,
    keys: &[(&'static str, Option<At>)],
    findings: &Findings,
) {
    if keeper != Keeper::File {
        for (key, at) in keys {
            if let Some(at) = at {
                findings.fault(*at, Fault::Contradiction { key, other: words(keeper) });
            }
        }
    }
}

/// The name in faults of a keeper without files.
fn words(keeper: Keeper) -> &'static str {
    match keeper {
        Keeper::File => "keeper = \"file\"",
        Keeper::Agent => AGENT,
        Keeper::Site => SITE,
    }
}
