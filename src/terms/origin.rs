//! Why a claim is made: the rule behind it, for records and for people.

use super::place::Place;
use crate::escape::visible;

/// A rule that asks for a claim, or something that stands in for one, such as `--limit`.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'p> {
    /// The rule's name, as it is shown.
    pub rule: &'p str,
    /// Where the rule stands; none for what is no rule.
    pub place: Option<&'p Place>,
    /// What its author wants to say to whoever it refuses.
    pub message: Option<&'p str>,
    /// Whom to contact about its refusals.
    pub contact: Option<&'p str>,
}

impl<'p> Origin<'p> {
    /// Something that is no rule of a policy.
    pub fn outside_the_policy(name: &'p str) -> Self {
        Self { rule: name, place: None, message: None, contact: None }
    }
}

/// What a rule is called in a sentence: `rule "students"`, and `rule 2` where it has no name.
pub fn rule_title(name: &str) -> String {
    if is_number(name) { name.to_owned() } else { format!("rule \"{}\"", visible(name)) }
}

/// Whether a rule is called so because it has no name; also with the file, where another has the number too.
pub fn is_number(name: &str) -> bool {
    let number =
        name.strip_prefix("rule ").map(|rest| rest.split_once(" (").map_or(rest, |(number, _)| number));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_without_a_name_is_called_by_its_number() {
        for number in ["rule 2", "rule 12 (/etc/rungate/policy.d/10-cad.toml)"] {
            assert_eq!(rule_title(number), number);
        }
        for name in ["students", "rule", "rule of thumb", "rule 2b"] {
            assert_eq!(rule_title(name), format!("rule \"{name}\""));
        }
    }
}
