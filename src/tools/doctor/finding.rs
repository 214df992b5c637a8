//! One finding: what was checked, its state, and the fix. Findings are values from which the page and the
//! JSON are made.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    cli::Topic,
    launch::{Situation, SystemNames},
    policy::{Faults, Policy, Proposal, Purpose, Sources},
    text::{Style, json, width, word},
};
use serde_json::{Value, json};

/// How something is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Health {
    /// As it should be.
    Fine,
    /// Worth knowing; there may be nothing to fix.
    Note,
    /// Some limit does not hold for some launch, or will not after some event.
    Warning,
    /// Some launches are wrongly refused, or not limited.
    Fault,
}

impl Health {
    /// The word for it on the page and in JSON.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Fault => "fault",
        }
    }

    /// How that word is shown.
    pub(super) fn style(self) -> Style {
        match self {
            Self::Fine => Style::Good,
            Self::Note => Style::Dim,
            Self::Warning => Style::Warning,
            Self::Fault => Style::Fault,
        }
    }
}

/// One thing that was checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Finding {
    /// Stable, for scripts.
    pub(crate) code: &'static str,
    pub(super) health: Health,
    /// Its subject and state, in one sentence.
    pub(crate) text: String,
    /// Commands to type, or a sentence if the user has to decide first.
    pub(crate) fix: Vec<String>,
}

impl Finding {
    pub(super) fn fine(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, health: Health::Fine, text: text.into(), fix: Vec::new() }
    }

    pub(super) fn note(code: &'static str, text: impl Into<String>) -> Self {
        Self { health: Health::Note, ..Self::fine(code, text) }
    }

    pub(super) fn warning(code: &'static str, text: impl Into<String>) -> Self {
        Self { health: Health::Warning, ..Self::fine(code, text) }
    }

    pub(super) fn fault(code: &'static str, text: impl Into<String>) -> Self {
        Self { health: Health::Fault, ..Self::fine(code, text) }
    }

    #[must_use]
    pub(super) fn fix(mut self, how: impl Into<String>) -> Self {
        self.fix.push(how.into());
        self
    }

    /// Whether there is something to fix.
    pub(super) fn is_wrong(&self) -> bool {
        self.health >= Health::Warning
    }
}

// The result of one topic: a summary line, and the findings.

/// The code of the note that nothing is limited, because there is no policy.
pub(super) const NO_POLICY: &str = "no-policy";

/// The findings of one topic.
pub(super) struct Section {
    pub(super) topic: Topic,
    /// The state, right or wrong.
    pub(super) summary: String,
    /// The worst first.
    pub(super) findings: Vec<Finding>,
    /// The details of `-v`, and the same for scripts.
    pub(super) details: Option<(String, Value)>,
    /// Whether it could not be checked.
    is_unknown: bool,
}

impl Section {
    pub(super) fn new(topic: Topic, summary: impl Into<String>, mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.health));
        Self { topic, summary: summary.into(), findings, details: None, is_unknown: false }
    }

    pub(super) fn with_details(self, text: String, json: Value) -> Self {
        Self { details: Some((text, json)), ..self }
    }

    /// If everything depends on a policy that cannot be read.
    pub(super) fn without_policy(topic: Topic) -> Self {
        let summary = "not checked, because the policy has faults".to_owned();
        Self { topic, summary, findings: Vec::new(), details: None, is_unknown: true }
    }

    /// The word for its state.
    pub(super) fn word(&self) -> &'static str {
        if self.is_unknown { "unknown" } else { self.health().word() }
    }

    /// Whether it was checked, and nothing is wrong: there is a policy, and it works.
    pub(super) fn is_well(&self) -> bool {
        let has_policy = self.findings.iter().all(|finding| finding.code != NO_POLICY);
        has_policy && !self.is_unknown && self.health() < Health::Warning
    }

    /// How the word is shown.
    pub(super) fn style(&self) -> Style {
        if self.is_unknown { Style::Warning } else { self.health().style() }
    }

    /// Its worst state. What was not checked may be wrong.
    pub(super) fn health(&self) -> Health {
        if self.is_unknown {
            return Health::Fault;
        }
        self.findings.iter().map(|finding| finding.health).max().unwrap_or(Health::Fine)
    }

    /// How many findings have this state.
    pub(super) fn count(&self, health: Health) -> usize {
        self.findings.iter().filter(|finding| finding.health == health).count()
    }
}

// What every topic needs: the caller, and the policy in force, as far as it can be read.

/// The caller, and the policy in force for them.
pub(crate) struct Context {
    pub(super) situation: Situation,
    pub(super) sources: Sources,
    pub(crate) policy: Result<Policy, Faults>,
}

impl Context {
    /// For the policy in force for the caller.
    pub(crate) fn begin(situation: Situation) -> Self {
        let sources = situation.sources();
        let policy = Policy::check(&sources, &SystemNames);
        Self { situation, sources, policy }
    }

    /// For the system's policy with another text in one of its files.
    pub(crate) fn of_proposal(situation: Situation, proposal: Proposal) -> Self {
        let sources = Sources::system(situation.credentials.uid);
        let policy = Policy::propose(&sources, &[proposal], Purpose::Check(&SystemNames));
        Self { situation, sources, policy }
    }

    /// The policy, if it has no fault.
    pub(super) fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref().ok()
    }

    pub(super) fn is_root(&self) -> bool {
        self.situation.credentials.uid == 0
    }
}

// Commands for people to type, in which a path is one word, whatever characters it has.

/// A command with a path as its last word.
pub(super) fn command(words: &str, path: &Path) -> String {
    format!("{words} {}", word(path))
}

// Jobs of root from cron or at boot without a systemd unit: whether one of them has certain words.

const FILES: [&str; 6] = [
    "/etc/crontab",
    "/etc/anacrontab",
    "/etc/rc.local",
    "/etc/rc.d/rc.local",
    "/var/spool/cron/crontabs/root",
    "/var/spool/cron/root",
];

const DIRECTORIES: [&str; 5] =
    ["/etc/cron.d", "/etc/cron.hourly", "/etc/cron.daily", "/etc/periodic/15min", "/etc/local.d"];

/// The file of a job that contains these words, if the caller can read it.
pub(super) fn saying(words: &str) -> Option<PathBuf> {
    let within = DIRECTORIES.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
    let files = FILES.iter().map(PathBuf::from).chain(within.map(|entry| entry.path()));
    files.into_iter().find(|path| says(path, words))
}

fn says(path: &Path, words: &str) -> bool {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().any(|line| !line.trim_start().starts_with('#') && line.contains(words))
}

// The page for people: one line if all is well, otherwise a line for each topic with its faults and fixes.
// Passed checks and notes are only counted, without `-v`.

/// Where the text of a topic's line begins.
const SUMMARY: usize = 23;

/// Where the text of a finding begins.
const TEXT: usize = 11;

/// The page, with lines of this many columns; commands stay in one piece, to be copied.
pub(super) fn page(sections: &[Section], is_verbose: bool, is_root: bool, columns: usize) -> String {
    if !is_verbose && sections.iter().all(Section::is_well) {
        return all_is_well(sections);
    }
    let mut text = String::new();
    for section in sections {
        let word = padded(section.style(), section.word());
        let head = format!("{word}{:<14}", section.topic.word());
        text += &wrapped(&head, &section.summary, SUMMARY, columns);
        let shown = |finding: &&Finding| is_verbose || finding.is_wrong();
        for finding in section.findings.iter().filter(shown) {
            text += &wrapped(
                &format!("  {}", padded(finding.health.style(), finding.health.word())),
                &finding.text,
                TEXT,
                columns,
            );
            for how in &finding.fix {
                let _ = writeln!(text, "{:TEXT$}  {how}", "");
            }
        }
        if let Some((details, _)) = section.details.as_ref().filter(|_| is_verbose) {
            let _ = write!(text, "\n{details}");
        }
    }
    text += &end(sections, is_verbose);
    if sections.iter().any(|section| section.is_unknown) {
        text += "To see the faults of the policy: rungate policy check\n";
    }
    if !is_root && sections.iter().any(|section| section.health() >= Health::Warning) {
        text += "For what you cannot fix, ask your administrator: sudo rungate doctor\n";
    }
    text
}

/// How many topics the line names; if there are more, it gives only their number.
const NAMED: usize = 3;

/// `Nothing to fix: 12 topics checked, 2 notes (details: rungate doctor -v)`
fn all_is_well(sections: &[Section]) -> String {
    let checked = if sections.len() > NAMED {
        format!("{} topics", sections.len())
    } else {
        sections.iter().map(|section| section.topic.word()).collect::<Vec<_>>().join(", ")
    };
    let notes = match sections.iter().map(|section| section.count(Health::Note)).sum() {
        0 => String::new(),
        notes => format!(", {}", counted(notes, "note")),
    };
    let well = Style::Good.paint("Nothing to fix");
    format!("{well}: {checked} checked{notes} (details: rungate doctor -v)\n")
}

/// A word in nine columns.
fn padded(style: Style, word: &str) -> String {
    format!("{}{:2$}", style.paint(word), "", 9_usize.saturating_sub(width(word)))
}

fn end(sections: &[Section], is_verbose: bool) -> String {
    let count = |health| sections.iter().map(|section| section.count(health)).sum();
    let (faults, warnings, notes): (usize, usize, usize) =
        (count(Health::Fault), count(Health::Warning), count(Health::Note));
    let unknown = sections.iter().filter(|section| section.is_unknown).count();
    let found = match (faults, warnings) {
        (0, 0) if unknown > 0 => format!("{} not checked", counted(unknown, "topic")),
        (0, 0) => "Nothing to fix".to_owned(),
        (0, warnings) => counted(warnings, "warning"),
        (faults, 0) => counted(faults, "fault"),
        (faults, warnings) => format!("{}, {}", counted(faults, "fault"), counted(warnings, "warning")),
    };
    match notes {
        notes if notes > 0 && !is_verbose => format!("\n{found}; {} with -v.\n", counted(notes, "note")),
        _ => format!("\n{found}.\n"),
    }
}

pub(super) fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// A text after a heading, broken between words if it is longer than a line; longer words stay whole.
fn wrapped(head: &str, text: &str, indent: usize, columns: usize) -> String {
    let mut lines = head.to_owned();
    let mut at = indent;
    for (index, word) in text.split(' ').enumerate() {
        let room = at + usize::from(index > 0) + width(word);
        if index > 0 && room > columns {
            let _ = write!(lines, "\n{:indent$}{word}", "");
            at = indent + width(word);
        } else {
            let _ = write!(lines, "{}{word}", if index > 0 { " " } else { "" });
            at = room;
        }
    }
    lines.push('\n');
    lines
}

// The same as the page, for scripts: every finding, also good ones.

/// All findings.
pub(super) fn to_json(sections: &[Section]) -> String {
    let worst = sections.iter().map(Section::health).max().unwrap_or(Health::Fine);
    let sections: Vec<Value> = sections.iter().map(section).collect();
    json::render(&json!({ "status": worst.word(), "topics": sections }))
}

fn section(section: &Section) -> Value {
    let findings: Vec<Value> = section
        .findings
        .iter()
        .map(|finding| {
            json!({
                "code": finding.code,
                "status": finding.health.word(),
                "message": finding.text,
                "fix": finding.fix,
            })
        })
        .collect();
    json!({
        "topic": section.topic.word(),
        "status": section.word(),
        "summary": section.summary,
        "findings": findings,
        "details": section.details.as_ref().map(|(_, json)| json),
    })
}

#[cfg(test)]
mod page_tests {
    use super::*;
    use crate::cli::Topic;

    fn sections() -> Vec<Section> {
        let unreadable =
            Finding::fault("policy-unreadable", "/etc/rungate/policy.toml cannot be read by users")
                .fix("chmod o+r /etc/rungate/policy.toml");
        let findings = vec![Finding::note("policy-size", "it is long"), unreadable];
        vec![
            Section::new(Topic::Policy, "1 file", findings),
            Section::new(Topic::Site, "none", vec![Finding::fine("site", "none")]),
        ]
    }

    #[test]
    fn only_what_is_wrong_is_shown_unless_somebody_asks() {
        let shown = "
fault    policy        1 file
  fault    /etc/rungate/policy.toml
           cannot be read by
           users
             chmod o+r /etc/rungate/policy.toml
ok       site          none

1 fault; 1 note with -v.
";
        assert_eq!(format!("\n{}", page(&sections(), false, true, 30)), shown);
        let well = [Section::new(Topic::Site, "none", vec![Finding::fine("site", "none")])];
        assert_eq!(
            page(&well, false, true, 80),
            "Nothing to fix: site checked (details: rungate doctor -v)\n"
        );
        assert!(page(&well, true, true, 80).starts_with("ok       site          none\n"));
        let all = page(&sections(), true, true, 80);
        assert!(all.contains("\n  note     it is long\n") && all.ends_with("\n1 fault.\n"), "{all}");
        assert_eq!(end(&[], false), "\nNothing to fix.\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_is_quoted() {
        assert_eq!(
            command("chmod o+r", Path::new("/etc/rungate/policy.toml")),
            "chmod o+r /etc/rungate/policy.toml"
        );
        assert_eq!(command("rm", Path::new("/a b/$c")), "rm '/a b/$c'");
    }
}
