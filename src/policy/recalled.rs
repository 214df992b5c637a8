//! The values of a name before they were changed for it. No name can be read back, but what it was made of
//! can be guessed, and the hash in it proves the guess.

use std::{borrow::Cow, collections::BTreeSet};

use super::{
    family::{Values, member},
    halves::value_between,
    member::Member,
    repository::Repository,
    safe_value::{LONGEST_NAME, hash, hash_in, unfed},
    template::{Name, Placeholder},
};

/// How many sets of values are tried for one name: others can leave many that nobody can guess.
const MOST_TRIES: usize = 1024;

/// What stands in for many a `_`; a path has the first alone.
const CHANGED: &[u8] = b"/ @\\#+:=";

impl Repository {
    /// What a name says of the member, with each value as it was before it was changed to be safe, where that
    /// is proved. It is one of what is `known`; where nothing is, it is guessed.
    pub fn recall_name(&self, depth: usize, name: &str, known: &BTreeSet<Vec<u8>>) -> Option<Vec<Member>> {
        self.path.names.get(depth)?.recall(name, known)
    }
}

impl Name {
    fn recall(&self, name: &str, known: &BTreeSet<Vec<u8>>) -> Option<Vec<Member>> {
        let Values { each, hash } = self.values(name)?;
        let is_cut = name.len() == LONGEST_NAME;
        let options = each.iter().map(|(placeholder, text)| {
            let is_it = |value: &&[u8]| {
                let safe = self.made_safe(value);
                safe == *text || is_cut && safe.starts_with(text.trim_end_matches('_'))
            };
            let guesses = if known.is_empty() { guesses(placeholder, text) } else { Vec::new() };
            let known = known.iter().map(Vec::as_slice).filter(is_it).map(Cow::Borrowed);
            known.chain([Cow::Borrowed(text.as_bytes())]).chain(guesses).collect()
        });
        let mut search = Search { hash: hash_in(hash)?, options: options.collect(), tries: MOST_TRIES };
        let is_guessed = known.is_empty() && !is_cut;
        let values = search.find(&mut Vec::new());
        let values =
            values.or_else(|| is_guessed.then(|| guessed_by_halves(&each, search.hash)).flatten())?;
        let is_proved = self.expansion(&values)? == name;
        let text = |value: &[u8]| String::from_utf8_lossy(value).replace('\0', " ");
        let members = each.iter().zip(values);
        let members = members.map(|((placeholder, _), value)| member(placeholder, &text(&value), ""));
        members.collect::<Option<_>>().filter(|_| is_proved)
    }

    /// The name that these values give, if there are as many as it takes.
    fn expansion(&self, values: &[Vec<u8>]) -> Option<String> {
        let mut left = values.iter();
        self.expand(&mut |_| left.next().cloned().ok_or(())).ok()
    }
}

/// A search for values with this hash.
struct Search<'a> {
    hash: u64,
    /// What each of them may be.
    options: Vec<Vec<Cow<'a, [u8]>>>,
    /// How many sets of them may still be tried.
    tries: usize,
}

impl Search<'_> {
    /// The first set that begins with what is `chosen`.
    fn find(&mut self, chosen: &mut Vec<usize>) -> Option<Vec<Vec<u8>>> {
        let Some(options) = self.options.get(chosen.len()) else {
            self.tries = self.tries.checked_sub(1)?;
            let values = || self.options.iter().zip(chosen.iter()).map(|(options, index)| &*options[*index]);
            return (hash(values()) == self.hash).then(|| values().map(<[u8]>::to_vec).collect());
        };
        for index in 0..options.len() {
            chosen.push(index);
            let found = self.find(chosen);
            chosen.pop();
            if found.is_some() || self.tries == 0 {
                return found;
            }
        }
        None
    }
}

/// What may have become a `_`.
fn changed(placeholder: &Placeholder) -> &'static [u8] {
    if matches!(placeholder, Placeholder::Directory) { &CHANGED[..1] } else { CHANGED }
}

/// How many sets of `_` a value has, unless they are too many.
fn sets_of(placeholder: &Placeholder, text: &str) -> Option<usize> {
    let places = u32::try_from(text.matches('_').count()).ok()?;
    1_usize.checked_shl(places).filter(|sets| *sets <= MOST_TRIES / changed(placeholder).len())
}

/// The values where one of them has too many sets of `_` and the others are as they stand in the name.
fn guessed_by_halves(each: &[(&Placeholder, &str)], whole: u64) -> Option<Vec<Vec<u8>>> {
    let has_many = |(placeholder, text): &(&Placeholder, &str)| sets_of(placeholder, text).is_none();
    let place = each.iter().position(has_many)?;
    let (placeholder, text) = each.get(place)?;
    let before = hash(each[..place].iter().map(|(_, text)| text.as_bytes()));
    let behind = each[place + 1..].iter().rev();
    let after = behind.fold(whole, |hash, (_, text)| without(hash, text.as_bytes()));
    let characters = changed(placeholder);
    let between = |changed| {
        value_between(before, text.as_bytes(), unfed(after, 0), changed, MOST_TRIES / 2 / characters.len())
    };
    let value = characters.iter().find_map(|changed| between(*changed))?;
    let mut values: Vec<Vec<u8>> = each.iter().map(|(_, text)| text.as_bytes().to_vec()).collect();
    values[place] = value;
    Some(values)
}

/// The hash before a value went into it.
fn without(hash: u64, value: &[u8]) -> u64 {
    value.iter().rev().fold(unfed(hash, 0), |hash, byte| unfed(hash, *byte))
}

/// What a value may have been: each set of its `_` as another character.
fn guesses<'a>(placeholder: &Placeholder, text: &str) -> Vec<Cow<'a, [u8]>> {
    let changed = changed(placeholder);
    let places: Vec<usize> = text.match_indices('_').map(|(place, _)| place).collect();
    let Some(sets) = sets_of(placeholder, text) else { return Vec::new() };
    let with = |character: u8, set: usize| {
        let mut value = text.as_bytes().to_vec();
        let taken = places.iter().enumerate().filter(|(index, _)| set >> index & 1 == 1);
        taken.for_each(|(_, place)| value[*place] = character);
        Cow::Owned(value)
    };
    // A path has most often no `_` of its own.
    changed
        .iter()
        .flat_map(|character| (1..sets).rev().map(move |set| (*character, set)))
        .map(|(character, set)| with(character, set))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::template::Piece;

    const ANN: &[u8] = b"4711";

    fn name(pieces: &[Option<Placeholder>]) -> Name {
        let piece = |piece: &Option<Placeholder>| match piece {
            Some(value) => Piece::Value(value.clone()),
            None => Piece::Literal(",".to_owned()),
        };
        Name::new(pieces.iter().map(piece).chain([Piece::Literal(".lock".to_owned())]).collect())
    }

    fn recalled(pattern: &Name, values: &[&[u8]], known: &[&[u8]]) -> Option<Vec<Member>> {
        let values: Vec<Vec<u8>> = values.iter().map(|value| value.to_vec()).collect();
        let name = pattern.expansion(&values).expect("as many values as there are");
        assert!(pattern.read(&name).is_some(), "each name of a repository is found to be one: {name}");
        pattern.recall(&name, &known.iter().map(|value| value.to_vec()).collect())
    }

    fn text(text: &str) -> Member {
        Member::Text(text.to_owned())
    }

    #[test]
    fn paths_are_guessed_beside_whatever_stands_with_them() {
        use Placeholder::{Command, Directory, Uid};
        let path = b"/opt/my_lab/bin".as_slice();
        let known = text("/opt/my_lab/bin");
        assert_eq!(recalled(&name(&[Some(Directory)]), &[path], &[]), Some(vec![known.clone()]));
        let pattern = name(&[Some(Directory), None, Some(Uid)]);
        assert_eq!(recalled(&pattern, &[path, ANN], &[]), Some(vec![known.clone(), Member::User(4711)]));
        let pattern = name(&[Some(Uid), None, Some(Command), None, Some(Directory)]);
        let members = vec![Member::User(4711), text("g++"), known];
        assert_eq!(recalled(&pattern, &[ANN, b"g++", path], &[]), Some(members));
    }

    #[test]
    fn what_was_not_changed_needs_no_guess() {
        let pattern = name(&[Some(Placeholder::Uid), None, Some(Placeholder::Host)]);
        assert_eq!(recalled(&pattern, &[ANN, b"ws17"], &[]), None);
        assert_eq!(pattern.read("4711,ws17.lock"), Some(vec![Member::User(4711), text("ws17")]));
    }

    #[test]
    fn only_what_has_the_hash_is_believed() {
        let pattern = name(&[Some(Placeholder::Directory)]);
        let path = b"/a b/c".as_slice();
        assert_eq!(recalled(&pattern, &[path], &[b"/a+b/c", b"/a b_c"]), None);
        assert_eq!(recalled(&pattern, &[path], &[b"/a+b/c", path]), Some(vec![text("/a b/c")]));
    }

    #[test]
    fn a_name_that_was_shortened_is_one_all_the_same() {
        let long = [b"/".as_slice(), &b"x".repeat(300)].concat();
        let pattern = name(&[Some(Placeholder::Directory), None, Some(Placeholder::Uid)]);
        assert_eq!(recalled(&pattern, &[&long, ANN], &[&long]), None, "who it is was cut off");
        let pattern = name(&[Some(Placeholder::Uid), None, Some(Placeholder::Directory)]);
        let known = text(&String::from_utf8_lossy(&long));
        assert_eq!(recalled(&pattern, &[ANN, &long], &[&long]), Some(vec![Member::User(4711), known]));
        // Where the number itself is cut, nobody is taken for who has the rest of it.
        let pattern = name(&[Some(Placeholder::Directory), None, Some(Placeholder::Uid)]);
        for length in 150..200 {
            let path = "x".repeat(length);
            let name = pattern.expansion(&[path.into_bytes(), ANN.to_vec()]).expect("two values");
            let read = pattern.read(&name).expect("it is one");
            assert!(read.iter().all(|member| !matches!(member, Member::User(uid) if *uid != 4711)), "{name}");
        }
    }

    #[test]
    fn values_that_touch_are_one_name_all_the_same() {
        let pattern = name(&[Some(Placeholder::Uid), Some(Placeholder::Command)]);
        assert_eq!(recalled(&pattern, &[ANN, b"make"], &[]), None);
        assert_eq!(
            pattern.read("4711make-0123456789abcdef.lock"),
            Some(vec![text("4711make-0123456789abcdef")])
        );
    }

    #[test]
    fn a_path_is_guessed_however_deep_it_is() {
        use Placeholder::{Directory, Uid};
        let path = b"/proj/alpha_2/run_1/lib/cell/view/sim/out/corner_tt/seed_7/log".as_slice();
        let known = text(&String::from_utf8_lossy(path));
        assert_eq!(recalled(&name(&[Some(Directory)]), &[path], &[]), Some(vec![known.clone()]));
        let pattern = name(&[Some(Uid), None, Some(Directory), None, Some(Uid)]);
        let ann = || Member::User(4711);
        assert_eq!(recalled(&pattern, &[ANN, path, ANN], &[]), Some(vec![ann(), known, ann()]));
        let pattern = name(&[Some(Directory), None, Some(Placeholder::Command)]);
        assert_eq!(recalled(&pattern, &[path, b"g++"], &[]), None, "two of them would be too many sets");
    }

    #[test]
    fn nobody_guesses_for_ever() {
        let pattern = name(&[Some(Placeholder::Directory), None, Some(Placeholder::Command)]);
        let path = "/_".repeat(40).into_bytes();
        assert_eq!(recalled(&pattern, &[&path, b"_+_+_+_+_+"], &[]), None);
    }
}
