//! `contact`: the last line of a refusal.

/// How many characters a contact has at most.
const LONGEST_CONTACT: usize = 200;

/// Whether a text can be a contact: one line that has room on a screen.
pub(super) fn is_contact(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(['\n', '\r']) && text.chars().count() <= LONGEST_CONTACT
}
