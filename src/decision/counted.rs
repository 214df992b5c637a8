//! The number of slots that the command line names (`slots_from`).

use std::ffi::OsString;

use super::verdict::Unclear;
use crate::{policy::SlotsFrom, terms::slots::Slots};

/// The number on the command line; where there is none, what the policy says otherwise. Where it is given
/// more than once the largest counts, because it is unknown which of them the program takes.
pub(super) fn slots(from: &SlotsFrom, arguments: &[OsString], otherwise: Slots) -> Slots {
    let after = from.after.as_str();
    let separate = arguments.windows(2).filter(|pair| pair[0] == after).map(|pair| pair[1].to_str());
    // In `-np8` and `-np=8` alike; behind a digit a digit is a part of the option.
    let ends_in_digit = after.ends_with(|last: char| last.is_ascii_digit());
    let joined = arguments.iter().map(|argument| {
        let value = argument.to_str()?.strip_prefix(after)?;
        value.strip_prefix('=').or(Some(value).filter(|_| !ends_in_digit))
    });
    let largest = separate.chain(joined).filter_map(number).max();
    largest.map_or(otherwise, |number| Slots::Number(number.min(from.most.unwrap_or(u32::MAX))))
}

/// What follows the argument where a number of slots should, and is none.
pub(super) fn unclear(
    from: &SlotsFrom,
    arguments: &[OsString],
    repository: &str,
    otherwise: Slots,
) -> Option<Unclear> {
    let at = arguments.iter().position(|argument| *argument == *from.after)?;
    let is_named = slots(from, arguments, Slots::All) != Slots::All;
    (!is_named).then(|| Unclear {
        after: from.after.clone(),
        text: arguments.get(at + 1).cloned(),
        repository: repository.to_owned(),
        slots: otherwise,
    })
}

/// The number that a text is; none where it is none, or 0.
fn number(text: Option<&str>) -> Option<u32> {
    let text = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty())?;
    // Digits that are too many for a number are a very large number.
    Some(text.parse().unwrap_or(u32::MAX)).filter(|number| *number > 0)
}
