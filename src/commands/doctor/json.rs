//! The same as the page, for scripts: every finding, also what is right.

use serde_json::{Value, json};

use crate::{
    commands::doctor::{finding::Health, section::Section},
    output::json,
};

/// All that was found.
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
    })
}
