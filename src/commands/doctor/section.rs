//! What was found about one topic: a line that sums it up, and the findings.

use crate::{
    cli::Topic,
    commands::doctor::finding::{Finding, Health},
    output::style::Style,
};

/// The code of the note that nothing is limited, because there is no policy.
pub(super) const NO_POLICY: &str = "no-policy";

/// What was found about one topic.
pub(super) struct Section {
    pub(super) topic: Topic,
    /// What there is, whether it is right or not.
    pub(super) summary: String,
    /// The worst first.
    pub(super) findings: Vec<Finding>,
    /// Whether nobody could look.
    is_unknown: bool,
}

impl Section {
    pub(super) fn new(topic: Topic, summary: impl Into<String>, mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.health));
        Self { topic, summary: summary.into(), findings, is_unknown: false }
    }

    /// Where everything depends on a policy that cannot be had.
    pub(super) fn without_policy(topic: Topic) -> Self {
        let summary = "not looked at, because the policy has faults".to_owned();
        Self { topic, summary, findings: Vec::new(), is_unknown: true }
    }

    /// The word for how it is.
    pub(super) fn word(&self) -> &'static str {
        if self.is_unknown { "unknown" } else { self.health().word() }
    }

    /// Whether it was looked at, and nothing is wrong: there is a policy, and it holds.
    pub(super) fn is_well(&self) -> bool {
        let has_policy = self.findings.iter().all(|finding| finding.code != NO_POLICY);
        has_policy && !self.is_unknown && self.health() < Health::Warning
    }

    /// How the word is shown.
    pub(super) fn style(&self) -> Style {
        if self.is_unknown { Style::Warning } else { self.health().style() }
    }

    /// How the worst of it is.
    pub(super) fn health(&self) -> Health {
        self.findings.iter().map(|finding| finding.health).max().unwrap_or(Health::Fine)
    }

    /// How many findings are like this.
    pub(super) fn count(&self, health: Health) -> usize {
        self.findings.iter().filter(|finding| finding.health == health).count()
    }
}
