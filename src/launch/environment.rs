//! What the program is told of its slots: `RUNGATE_HELD="matlab=17 tokens=4,5"`, and `RUNGATE_SLOT_MATLAB=17` for each. A
//! launch below it reads the same variable as a hint where an ancestor's slot may be; whoever forges it gains nothing,
//! because the kernel has the last word.

use std::{ffi::CString, fmt::Write as _};

use crate::{repository::claim::NamedSlots, sys::exec::Entry};

/// The variable that names every repository and its slots.
pub const HELD: &str = "RUNGATE_HELD";

/// The start of the names of variables for one repository each.
pub const SLOT: &str = "RUNGATE_SLOT_";

/// Reads `RUNGATE_HELD`. What cannot be read is left out: it is only a hint.
pub fn parse_held(text: &str) -> Vec<NamedSlots> {
    text.split(' ')
        .filter_map(|entry| {
            let (name, slots) = entry.split_once('=')?;
            let slots: Vec<u64> = slots.split(',').map(|slot| slot.parse().ok()).collect::<Option<_>>()?;
            (!name.is_empty()).then(|| NamedSlots { name: name.to_owned(), slots })
        })
        .collect()
}

/// The environment of the program: that of the caller, with what this launch holds added to what its ancestors hold.
pub fn with_slots(caller: Vec<Entry>, ancestors: &[NamedSlots], taken: &[NamedSlots]) -> Vec<Entry> {
    if taken.is_empty() {
        return caller;
    }
    let mut held: Vec<&NamedSlots> = taken.iter().collect();
    let is_taken = |held: &&NamedSlots| taken.iter().any(|other| NamedSlots::word(&other.name) == held.name);
    held.extend(ancestors.iter().filter(|held| !is_taken(held)));
    let mut text = String::new();
    for NamedSlots { name, slots } in held {
        let separator = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{separator}{}={}", NamedSlots::word(name), list(slots));
    }
    let mut added = vec![(HELD.to_owned(), text)];
    added.extend(taken.iter().map(|taken| (slot_variable(&taken.name), list(&taken.slots))));

    let replaced = |entry: &Entry| {
        added.iter().any(|(name, _)| {
            entry.to_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        })
    };
    let mut environment: Vec<Entry> = caller.into_iter().filter(|entry| !replaced(entry)).collect();
    let entry =
        |(name, value): &(String, String)| CString::new(format!("{name}={value}")).ok().map(Entry::Owned);
    environment.extend(added.iter().filter_map(entry));
    environment
}

/// `RUNGATE_SLOT_` and the name in capitals; what no variable's name may hold becomes `_`.
fn slot_variable(repository: &str) -> String {
    let name: String = repository
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("{SLOT}{name}")
}

fn list(slots: &[u64]) -> String {
    slots.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(name: &str, slots: &[u64]) -> NamedSlots {
        NamedSlots { name: name.to_owned(), slots: slots.to_vec() }
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        assert_eq!(
            parse_held("matlab=17 tokens=4,5 =3 x= y=1,z plain gpu=0"),
            [slots("matlab", &[17]), slots("tokens", &[4, 5]), slots("gpu", &[0])]
        );
        assert_eq!(parse_held(""), []);
    }

    #[test]
    fn the_program_is_told_its_own_slots_and_those_of_its_ancestors() {
        let caller = [c"A=1", c"RUNGATE_HELD=tokens=4,5 seats=1", c"RUNGATE_SLOT_SEATS=1", c"no-equals-sign"];
        let ancestors = [slots("tokens", &[4, 5]), slots("seats", &[1])];
        let environment = with_slots(
            caller.map(Entry::Borrowed).to_vec(),
            &ancestors,
            &[slots("seats", &[2]), slots("gpu-0.x", &[7])],
        );
        let expected = [
            c"A=1",
            c"no-equals-sign",
            c"RUNGATE_HELD=seats=2 gpu-0.x=7 tokens=4,5",
            c"RUNGATE_SLOT_SEATS=2",
            c"RUNGATE_SLOT_GPU_0_X=7",
        ];
        assert_eq!(environment, expected.map(Entry::Borrowed));
    }

    #[test]
    fn a_launch_that_holds_nothing_leaves_the_environment_alone() {
        let caller = vec![Entry::Borrowed(c"RUNGATE_HELD=tokens=4")];
        assert_eq!(with_slots(caller.clone(), &[slots("tokens", &[4])], &[]), caller);
    }
}
