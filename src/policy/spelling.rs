//! The nearest valid spelling of an unknown word.

use strsim::damerau_levenshtein;

/// The length in bytes of the longest word that is compared: that takes time and memory for each pair of
/// characters.
const LONGEST: usize = 40;

/// The probable intention; `None` if none is near.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    if word.len() > LONGEST {
        return None;
    }
    let candidates = candidates.into_iter().filter(|candidate| candidate.len() <= 2 * LONGEST);
    let distance = |candidate: &str| damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase());
    let near = candidates.map(|candidate| (distance(candidate), candidate)).min()?;
    // One typing error in a short word, one more for every four letters of a longer one.
    let length = word.chars().count();
    (near.0 <= 1 + length / 4 && near.0 < length).then(|| near.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(word: &str, expected: Option<&str>) {
        assert_eq!(nearest(word, ["matlab", "comsol", "limit", "limits"]).as_deref(), expected);
    }

    #[test]
    fn what_is_near_and_what_is_not() {
        case("matalb", Some("matlab"));
        case("Matlab", Some("matlab"));
        case("limt", Some("limit"));
        case("nothing", None);
        case("x", None);
        assert_eq!(nearest("a", ["b"]), None, "a word of which nothing is left is another word");
    }

    /// Words of thousands of characters are not compared, whichever of the two is so long.
    #[test]
    fn a_very_long_word_is_not_compared() {
        let long = |length: usize| "a".repeat(length);
        assert_eq!(nearest(&long(40), [long(41).as_str()]), Some(long(41)));
        assert_eq!(nearest(&long(41), [long(41).as_str()]), None);
        let longest = long(200_000);
        assert_eq!(nearest(&longest, [longest.as_str(), "limit"]), None);
        assert_eq!(nearest("limt", [longest.as_str(), "limit"]).as_deref(), Some("limit"));
    }
}
