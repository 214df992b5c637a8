//! A value of which too many characters may have been changed for all sets of them to be tried. The hash of a
//! name is taken byte by byte, and each step of it can be taken back: from the front the first half of the
//! value leads to some states, from the hash the second half leads back to others, and where the two meet is
//! the value. Where a half has many sets too, those come first that leave few of its `_` as they are.

use std::collections::HashMap;

use super::safe_value::{fed, unfed};

/// What a text was before each of some `_` took the place of the character that is `changed`, where the hash
/// is in one state before it and in another behind it. Of each half so many sets are tried.
pub(super) fn value_between(
    before: u64,
    text: &[u8],
    after: u64,
    changed: u8,
    most_sets: usize,
) -> Option<Vec<u8>> {
    let places = || text.iter().enumerate().filter(|(_, byte)| **byte == b'_').map(|(place, _)| place);
    // No name of a file has more, and a set is a number of so many bits.
    let count = Some(places().count()).filter(|count| *count <= 254)?;
    let (first, second) = text.split_at_checked(places().nth(count / 2)?)?;
    let first_places = count / 2;
    let second_places = count - first_places;
    let most = |places| most_kept(places, most_sets);
    let back = states(second.iter().rev(), most(second_places), after, unfed, changed);
    let back: HashMap<u64, u128> = back.into_iter().collect();
    let ahead = states(first.iter(), most(first_places), before, fed, changed);
    let (kept_first, kept_second) =
        ahead.into_iter().find_map(|(state, kept)| Some((kept, *back.get(&state)?)))?;
    let is_kept = |index: usize| match index.checked_sub(first_places) {
        None => kept_first >> index & 1 == 1,
        // The last is the first on the way back.
        Some(index) => kept_second >> (second_places - 1 - index) & 1 == 1,
    };
    let mut value = text.to_vec();
    for (index, place) in places().enumerate() {
        if let Some(byte) = value.get_mut(place).filter(|_| !is_kept(index)) {
            *byte = changed;
        }
    }
    Some(value)
}

/// The states to which the bytes lead, each with the set of `_` that are kept as they are, up to so many.
fn states<'a>(
    bytes: impl Iterator<Item = &'a u8>,
    most_kept: u32,
    start: u64,
    step: fn(u64, u8) -> u64,
    changed: u8,
) -> Vec<(u64, u128)> {
    let mut states = vec![(start, 0_u128)];
    let mut place = 0;
    for byte in bytes {
        if *byte == b'_' {
            let more = states.iter().filter(|(_, kept)| kept.count_ones() < most_kept);
            let more: Vec<(u64, u128)> =
                more.map(|(state, kept)| (step(*state, b'_'), kept | 1 << place)).collect();
            for (state, _) in &mut states {
                *state = step(*state, changed);
            }
            states.extend(more);
            place += 1;
        } else {
            for (state, _) in &mut states {
                *state = step(*state, *byte);
            }
        }
    }
    states
}

/// How many of so many places are kept at most, so that no more sets are tried.
fn most_kept(places: usize, most_sets: usize) -> u32 {
    let (mut kept, mut with_as_many, mut all) = (0_usize, 1_usize, 1_usize);
    while kept < places {
        with_as_many = with_as_many * (places - kept) / (kept + 1);
        all += with_as_many;
        if all > most_sets {
            break;
        }
        kept += 1;
    }
    u32::try_from(kept).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::safe_value::{hash, sanitized};

    const MOST: usize = 512;

    #[track_caller]
    fn case(value: &str, changed: u8, is_found: bool) {
        let text = sanitized(value.as_bytes(), b"");
        let before = hash([b"4711".as_slice()]);
        let after = unfed(hash([b"4711".as_slice(), value.as_bytes()]), 0);
        let found = value_between(before, text.as_bytes(), after, changed, MOST);
        assert_eq!(found, is_found.then(|| value.as_bytes().to_vec()), "{value}");
        assert_eq!(value_between(before, text.as_bytes(), after ^ 1, changed, MOST), None, "{value}");
    }

    #[test]
    fn the_halves_meet_at_the_value() {
        case("/a/b", b'/', true);
        case("/", b'/', true);
        case("/proj/alpha_2/run_1/lib_a/cell_b/view_c/sim_d/out_e", b'/', true);
        case("/a_a_a_a_a_a_a_a_a_a_a/b/b/b/b/b/b", b'/', true);
        case("a+b+c+d+e+f+g+h_i_j+k+l", b'+', true);
    }

    #[test]
    fn of_many_the_likely_ones_are_found() {
        let deep = "/a".repeat(30);
        case(&format!("{deep}/my_own{deep}/my_other"), b'/', true);
        case(&"/_".repeat(40), b'/', false);
        for (places, kept) in [(0, 0), (1, 1), (9, 9), (10, 4), (30, 2), (100, 1)] {
            assert_eq!(most_kept(places, MOST), kept, "{places}");
        }
    }

    #[test]
    fn nothing_is_found_where_nothing_was_changed() {
        assert_eq!(value_between(1, b"abc", 2, b'/', MOST), None);
        assert_eq!(value_between(1, b"", 1, b'/', MOST), None);
    }
}
