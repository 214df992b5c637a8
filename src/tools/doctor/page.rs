//! The page for people: one line if all is well, otherwise a line for each topic with its faults and fixes.
//! Passed checks and notes are only counted, without `-v`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::finding::{Finding, Health, Section};
use crate::text::{columns::width, json, style::Style};

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
            for how in &finding.mend {
                let _ = writeln!(text, "{:TEXT$}  {how}", "");
            }
        }
        if let Some((details, _)) = section.details.as_ref().filter(|_| is_verbose) {
            let _ = write!(text, "\n{details}");
        }
    }
    text += &end(sections, is_verbose);
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
    let found = match (faults, warnings) {
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
                "mend": finding.mend,
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
mod tests {
    use crate::cli::Topic;
    use crate::tools::doctor::page::*;

    fn sections() -> Vec<Section> {
        let unreadable =
            Finding::fault("policy-unreadable", "/etc/rungate/policy.toml cannot be read by users")
                .mend("chmod o+r /etc/rungate/policy.toml");
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
