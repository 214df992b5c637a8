//! The files of a policy that were found: their texts and their faults.

use std::path::PathBuf;

use super::stamps::Stamps;
use crate::{
    policy::{delegation::Delegation, fault::Fault, layer::LayerKind},
    text::diagnostic::SourceText,
};

/// The text of a layer's files, wherever it came from.
#[derive(Debug)]
pub struct LayerText {
    pub kind: LayerKind,
    /// The files, in the order in which they count.
    pub files: Vec<SourceText>,
}

/// The files that were found in the places of a policy.
#[derive(Default)]
pub(in crate::policy) struct Found {
    pub(in crate::policy) layers: Vec<LayerText>,
    /// Files that cannot be used, and why.
    pub(in crate::policy) faults: Vec<(PathBuf, Fault)>,
    /// Names in the drop-in directory that are no drop-ins, with the directory.
    pub(in crate::policy) skipped: Vec<(PathBuf, String)>,
    pub(in crate::policy) stamps: Stamps,
    /// What the system's main file delegates.
    pub(in crate::policy) delegations: Vec<Delegation>,
}
