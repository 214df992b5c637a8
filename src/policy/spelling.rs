//! The nearest valid spelling of an unknown word.

use strsim::damerau_levenshtein;

/// The probable intention; `None` if none is near.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let distance = |candidate: &str| damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase());
    let near = candidates.into_iter().map(|candidate| (distance(candidate), candidate)).min()?;
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
}
