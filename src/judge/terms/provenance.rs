//! Why a claim is made: its rule, for records and for people.

use std::{fmt, path::Path, sync::Arc};

use crate::text::{Show, SourceText, visible};

/// A rule that asks for a claim, or a substitute for one, such as `--limit`.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The rule's name, as it is shown.
    pub rule: Arc<str>,
    /// Where the rule is; none if it is not a rule.
    pub place: Option<Place>,
    /// The author's message for the users that it refuses.
    pub message: Option<Arc<str>>,
    /// The contact for its refusals.
    pub contact: Option<Arc<str>>,
}

impl Origin {
    /// Something that is no rule of a policy.
    pub fn outside_the_policy(name: &str) -> Self {
        Self { rule: name.into(), place: None, message: None, contact: None }
    }
}

/// The name of a rule in a sentence: `rule "students"`, or `rule 2` without a name.
pub fn rule_title(name: &str) -> String {
    if is_number(name) { name.to_owned() } else { format!("rule \"{}\"", visible(name)) }
}

/// Whether this is the replacement name of a rule without a name; also with the file, if another has the same
/// number.
pub fn is_number(name: &str) -> bool {
    let number =
        name.strip_prefix("rule ").map(|rest| rest.split_once(" (").map_or(rest, |(number, _)| number));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

// Why a claim has its numbers: the policy entry behind its limit, and the users that slots are kept for.

/// The users that an entry of the policy is for, and until when.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Provenance {
    /// As the policy writes it: `%power`; empty if it is for all users.
    pub whom: Arc<str>,
    /// The local time at which it is over: `18:00`.
    pub until: Option<String>,
}

impl Provenance {
    /// `limit of %power`, for a limit that does not apply to all users.
    pub fn limit(&self) -> String {
        let of = if self.whom.is_empty() { "" } else { " of " };
        let text = format!("limit{of}{self}");
        // An entry for all users without an end holds in all its hours.
        if text == "limit" { "limit of this hour".to_owned() } else { text }
    }
}

/// `%cad until 18:00`
impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.whom.shown())?;
        self.until.as_ref().map_or(Ok(()), |until| write!(f, " until {until}"))
    }
}

/// Slots that a launch may not use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Kept {
    /// How many.
    pub slots: u64,
    pub whom: Provenance,
}

/// `4 kept for %cad until 18:00`
impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kept for {}", self.slots, self.whom)
    }
}

/// Why a limit is what it is.
pub fn reason(limit_of: Option<String>, out_of_order: usize) -> Option<String> {
    let broken = (out_of_order > 0).then(|| format!("{out_of_order} out of order"));
    let reasons: Vec<String> = limit_of.into_iter().chain(broken).collect();
    (!reasons.is_empty()).then(|| reasons.join(", "))
}

/// Several of them, in the order of the policy.
pub fn list(kept: &[Kept]) -> String {
    kept.iter().map(Kept::to_string).collect::<Vec<_>>().join(", ")
}

// A place in a policy file. It keeps the text alive and counts lines only when the place is printed, which a
// launch that starts never needs.

/// Shown as `path:line`.
#[derive(Clone, Debug)]
pub struct Place {
    source: Arc<SourceText>,
    offset: usize,
}

impl Place {
    pub(crate) fn new(source: &Arc<SourceText>, offset: usize) -> Self {
        Place { source: Arc::clone(source), offset }
    }
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// The line, counted from 1.
    pub fn line(&self) -> usize {
        self.source.line_column(self.offset).0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path().shown(), self.line())
    }
}

#[cfg(test)]
mod tests {
    use crate::judge::terms::provenance::*;

    #[test]
    fn a_rule_without_a_name_is_called_by_its_number() {
        for number in ["rule 2", "rule 12 (/etc/rungate/policy.d/10-cad.toml)"] {
            assert_eq!(rule_title(number), number);
        }
        for name in ["students", "rule", "rule of thumb", "rule 2b"] {
            assert_eq!(rule_title(name), format!("rule \"{name}\""));
        }
    }

    /// A limit has a reason if it is not that of all, or if slots are out of order.
    #[test]
    fn a_limit_has_its_reasons() {
        let limit = || Some("limit of ann".to_owned());
        assert_eq!((reason(None, 0), reason(limit(), 0)), (None, limit()));
        assert_eq!(reason(None, 1).as_deref(), Some("1 out of order"));
        assert_eq!(reason(limit(), 2).as_deref(), Some("limit of ann, 2 out of order"));
    }
}
