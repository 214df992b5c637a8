//! What systemd says of its units, where it is what starts services.

use std::{
    collections::BTreeMap,
    path::Path,
    process::{Command, Stdio},
};

/// There where systemd has started the host.
const SYSTEMD: &str = "/run/systemd/system";

/// What is known of a unit.
pub(super) struct Unit(BTreeMap<String, String>);

/// Whether systemd starts services here.
pub(super) fn is_systemd() -> bool {
    Path::new(SYSTEMD).exists()
}

impl Unit {
    /// Asks systemd for these properties; none where it does not answer.
    pub(super) fn ask(name: &str, properties: &str) -> Option<Self> {
        let mut show = Command::new("systemctl");
        show.args(["show", name, "--property", properties]).stdin(Stdio::null()).stderr(Stdio::null());
        let output = show.output().ok().filter(|output| output.status.success())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(Self(text.lines().filter_map(pair).collect()))
    }

    /// What it said of one; nothing where it does not know.
    pub(super) fn said(&self, property: &str) -> &str {
        self.0.get(property).map_or("", String::as_str)
    }
}
