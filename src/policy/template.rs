//! The path of a repository, with placeholders for what differs between launches. Expansion never leaves the
//! directory, and never gives one file to two launches with different values by accident. `safe_value` makes
//! one value safe; this decides how several share one name.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fmt::Write,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::limit::digits;
use crate::judge::terms::Keyword;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Placeholder {
    User,
    Uid,
    Group,
    Gid,
    Command,
    Host,
    Directory,
    /// The argument with this number, counted from 1.
    Argument(usize),
    Arguments,
    Environment(String),
    /// What the rule captured under this name.
    Captured(String),
}

impl Placeholder {
    /// Whether callers can give it any value they like.
    pub(super) fn is_chosen(&self) -> bool {
        match self {
            Placeholder::Directory
            | Placeholder::Argument(_)
            | Placeholder::Arguments
            | Placeholder::Environment(_)
            | Placeholder::Captured(_) => true,
            Placeholder::User
            | Placeholder::Uid
            | Placeholder::Group
            | Placeholder::Gid
            | Placeholder::Command
            | Placeholder::Host => false,
        }
    }

    /// Whether its values are numbers.
    pub(super) fn is_number(&self) -> bool {
        matches!(self, Placeholder::Uid | Placeholder::Gid)
    }
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Piece {
    Literal(String),
    Value(Placeholder),
}

impl Piece {
    pub(super) fn literal_length(&self) -> usize {
        match self {
            Piece::Literal(text) => text.len(),
            Piece::Value(_) => 0,
        }
    }
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Start {
    At(PathBuf),
    Runtime,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct PathTemplate {
    /// The start of the directory that exists before any launch.
    pub(super) start: Start,
    /// The directories below `start` that belong to it.
    pub(super) base: PathBuf,
    /// The names below that directory; the last is the file's.
    pub(super) names: Vec<Name>,
    /// As it is written in a policy, for `policy show` and for messages.
    pub(super) text: String,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Name {
    pub(super) pieces: Vec<Piece>,
    /// The separators between its values that would be ambiguous within a value.
    reserved: Vec<u8>,
    /// Whether each value but the last is followed by a separator: otherwise values are next to each other,
    /// or the text between them could be part of one.
    pub(super) is_ended: bool,
}

impl<'a> PartitionKey<'a> {
    /// What differs between its members.
    pub(in crate::policy) fn placeholder(self) -> Placeholder {
        match self {
            PartitionKey::Each(Per::User) => Placeholder::Uid,
            PartitionKey::Each(Per::Group) => Placeholder::Gid,
            PartitionKey::Each(Per::Host) => Placeholder::Host,
            PartitionKey::Each(Per::Command) => Placeholder::Command,
            PartitionKey::Each(Per::Directory) => Placeholder::Directory,
            PartitionKey::Captured(name) => Placeholder::Captured(name.to_owned()),
        }
    }

    /// The entry for a placeholder, where there is one.
    pub(in crate::policy) fn of(placeholder: &'a Placeholder) -> Option<Self> {
        match placeholder {
            Placeholder::User | Placeholder::Uid => Some(PartitionKey::Each(Per::User)),
            Placeholder::Group | Placeholder::Gid => Some(PartitionKey::Each(Per::Group)),
            Placeholder::Host => Some(PartitionKey::Each(Per::Host)),
            Placeholder::Command => Some(PartitionKey::Each(Per::Command)),
            Placeholder::Directory => Some(PartitionKey::Each(Per::Directory)),
            Placeholder::Captured(name) => Some(PartitionKey::Captured(name.as_str())),
            Placeholder::Argument(_) | Placeholder::Arguments | Placeholder::Environment(_) => None,
        }
    }
}

impl Name {
    pub(super) fn new(written: Vec<Piece>) -> Name {
        let mut pieces: Vec<Piece> = Vec::with_capacity(written.len());
        for piece in written {
            match (pieces.last_mut(), piece) {
                (Some(Piece::Literal(text)), Piece::Literal(more)) => text.push_str(&more),
                (_, piece) => pieces.push(piece),
            }
        }
        let (reserved, is_ended) = ambiguity(&pieces);
        Name { pieces, reserved, is_ended }
    }

    /// Only the values of these keys. A comma never occurs in a value, so that none runs into another.
    pub(super) fn of_values(keys: &[PartitionKey<'_>]) -> Name {
        let comma = |index: usize| (index > 0).then(|| Piece::Literal(",".to_owned()));
        let value = |(index, key): (usize, &PartitionKey<'_>)| {
            comma(index).into_iter().chain([Piece::Value(key.placeholder())])
        };
        Name::new(keys.iter().enumerate().flat_map(value).collect())
    }

    /// The placeholders that have one file each, if the path depends on nothing else.
    pub(super) fn keys(&self) -> impl Iterator<Item = PartitionKey<'_>> {
        self.placeholders().filter_map(PartitionKey::of)
    }

    pub(super) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(placeholder) => Some(placeholder),
            Piece::Literal(_) => None,
        })
    }

    /// The name, if it has no placeholder.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    pub(super) fn expand<E>(
        &self,
        value: &mut impl FnMut(&Placeholder) -> Result<Vec<u8>, E>,
    ) -> Result<String, E> {
        if let Some(text) = self.literal() {
            return Ok(text.to_owned());
        }
        let values = self.placeholders().map(value).collect::<Result<Vec<_>, E>>()?;
        let mut left = values.iter();
        let mut name = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => name.push_str(text),
                Piece::Value(_) => {
                    let value = left.next().map_or(&[][..], Vec::as_slice);
                    name.push_str(&encoded(value, &self.reserved));
                    if self.is_ended && left.len() > 0 {
                        name.push_str(END_OF_VALUE);
                    }
                }
            }
        }
        let hash = || hash_suffix(values.iter().map(Vec::as_slice));
        Ok(if name.len() < LONGEST_NAME { name } else { self.shortened(&name, &hash()) })
    }

    /// The end of a name even if it is shortened.
    pub(super) fn kept_ending(&self) -> &str {
        match self.pieces.last() {
            Some(Piece::Literal(text)) if text.len() <= LONGEST_NAME / 4 => text.as_str(),
            _ => "",
        }
    }

    /// The value of a part of a name; none if [`encoded`] writes it differently. So two names never have the
    /// same values.
    pub(super) fn value(&self, part: &str) -> Option<Vec<u8>> {
        decoded(part).filter(|value| encoded(value, &self.reserved) == part)
    }

    /// A name that is too long, cut to exactly the longest length, which no other name has.
    fn shortened(&self, name: &str, hash: &str) -> String {
        let ending = self.kept_ending();
        let mut kept = LONGEST_NAME - HASH_LENGTH - ending.len();
        let mut padding = 0;
        while !name.is_char_boundary(kept) {
            kept -= 1;
            padding += 1;
        }
        format!("{}{:_<padding$}{hash}{ending}", &name[..kept], "")
    }
}

/// The characters that must not occur in the values of a name, because another set of values could then give
/// the same name. Also whether the end of a value is ambiguous: no text separates it from the next, or a text
/// with a `%`, as in encoded bytes.
fn ambiguity(pieces: &[Piece]) -> (Vec<u8>, bool) {
    let values: Vec<usize> =
        (0..pieces.len()).filter(|&index| matches!(pieces[index], Piece::Value(_))).collect();
    let mut reserved = Vec::new();
    for pair in values.windows(2) {
        let Piece::Literal(between) = &pieces[pair[0] + 1] else { return (reserved, true) };
        if between.contains('%') {
            return (reserved, true);
        }
        // No value ever holds a character that is not safe.
        if !between.bytes().all(is_safe) {
            continue;
        }
        // If one of two values is a number, it ends where the text begins.
        let number =
            |index: usize| matches!(&pieces[index], Piece::Value(placeholder) if placeholder.is_number());
        let no_digit = |byte: Option<u8>| byte.is_some_and(|byte| !byte.is_ascii_digit());
        let told_apart = values.len() == 2
            && (number(pair[0]) && no_digit(between.bytes().next())
                || number(pair[1]) && no_digit(between.bytes().next_back()));
        if !told_apart {
            reserved.extend(between.bytes());
        }
    }
    (reserved, false)
}

impl PathTemplate {
    /// Every placeholder, in the order of the path.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.names.iter().flat_map(Name::placeholders)
    }

    /// The placeholders that have one file each, if the path depends on nothing else.
    pub(super) fn per(&self) -> Vec<PartitionKey<'_>> {
        self.names.iter().flat_map(Name::keys).collect()
    }

    /// The path as a policy writes it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The directory that exists before any launch.
    pub(crate) fn base(&self, runtime: &Path) -> PathBuf {
        let start = match &self.start {
            Start::At(directory) => directory,
            Start::Runtime => runtime,
        };
        start.join(&self.base)
    }

    /// The directories of its files that are the same for every launch: the base, and those below it.
    pub(crate) fn directories(&self, runtime: &Path) -> Vec<PathBuf> {
        let mut directory = self.base(runtime);
        let mut directories = vec![directory.clone()];
        let above_file = self.names.len().saturating_sub(1);
        for name in self.names.iter().take(above_file).map_while(Name::literal) {
            directory.push(name);
            directories.push(directory.clone());
        }
        directories
    }

    /// The file for the values that `value` gives.
    pub(crate) fn expand<E>(
        &self,
        runtime: &Path,
        mut value: impl FnMut(&Placeholder) -> Result<Vec<u8>, E>,
    ) -> Result<PathBuf, E> {
        let mut path = self.base(runtime);
        for name in &self.names {
            path.push(OsStr::from_bytes(name.expand(&mut value)?.as_bytes()));
        }
        Ok(path)
    }

    /// The file, if it is the same for every launch.
    pub(crate) fn fixed(&self, runtime: &Path) -> Option<PathBuf> {
        let mut path = self.base(runtime);
        for name in &self.names {
            path.push(name.literal()?);
        }
        Some(path)
    }

    /// Its start and the names below: the same for templates that always mean the same file, even if they are
    /// written differently.
    pub(crate) fn whole(&self) -> (Start, Vec<Name>) {
        let literal = |name: &OsStr| Name::new(vec![Piece::Literal(name.to_string_lossy().into_owned())]);
        (self.start.clone(), self.base.iter().map(literal).chain(self.names.iter().cloned()).collect())
    }
}

// Two templates can give one path: `a.{command}.lock` and `a.b.{uid}.lock`, for the command `b.4711`. Each is
// a row of steps, and the rows are walked side by side.

/// A byte of a path, or some bytes of a value.
#[derive(Clone, Copy)]
pub(super) enum Step<'t> {
    Byte(u8),
    /// The first byte of a value.
    First(Value<'t>),
    /// Any number of further ones.
    More(Value<'t>),
}

/// What the bytes of a value can be.
#[derive(Clone, Copy)]
pub(super) struct Value<'t> {
    placeholder: &'t Placeholder,
    reserved: &'t [u8],
}

impl Value<'_> {
    fn holds(self, byte: u8) -> bool {
        if self.placeholder.is_number() {
            return byte.is_ascii_digit();
        }
        byte == b'%' || is_safe(byte) && !self.reserved.contains(&byte)
    }

    fn begins_with(self, byte: u8) -> bool {
        match self.placeholder {
            // A slash, encoded.
            Placeholder::Directory => byte == b'%',
            _ => byte != b'.' && self.holds(byte),
        }
    }
}

impl Step<'_> {
    fn is(self, byte: u8) -> bool {
        match self {
            Step::Byte(own) => own == byte,
            Step::First(value) => value.begins_with(byte),
            Step::More(value) => value.holds(byte),
        }
    }
}

impl PathTemplate {
    /// Its path from the root, or from the caller's directory, step by step.
    pub(super) fn steps(&self) -> Vec<Step<'_>> {
        let start = self.base("{runtime}".as_ref());
        let mut steps: Vec<Step<'_>> = start.as_os_str().as_bytes().iter().copied().map(Step::Byte).collect();
        for name in &self.names {
            // A directory that is empty, or the root, ends in one.
            if !matches!(steps.last(), Some(Step::Byte(b'/'))) {
                steps.push(Step::Byte(b'/'));
            }
            let last = name.pieces.iter().rposition(|piece| matches!(piece, Piece::Value(_)));
            for (index, piece) in name.pieces.iter().enumerate() {
                match piece {
                    Piece::Literal(text) => steps.extend(text.bytes().map(Step::Byte)),
                    Piece::Value(placeholder) => {
                        let value = Value { placeholder, reserved: &name.reserved };
                        steps.extend([Step::First(value), Step::More(value)]);
                        if name.is_ended && Some(index) != last {
                            steps.extend(END_OF_VALUE.bytes().map(Step::Byte));
                        }
                    }
                }
            }
        }
        steps
    }
}

/// Whether one path can be that of both, which have the same first `alike` steps. Names that are cut because
/// of their length are not compared. Each pair of steps costs one of `left`; when none is left the answer is
/// yes.
pub(super) fn can_meet(one: &[Step<'_>], other: &[Step<'_>], alike: usize, left: &mut usize) -> bool {
    let behind = |step: Step<'_>, at: usize| if matches!(step, Step::More(_)) { at } else { at + 1 };
    let (mut seen, mut todo) = (BTreeSet::new(), vec![(alike, alike)]);
    while let Some((first, second)) = todo.pop() {
        if !seen.insert((first, second)) {
            continue;
        }
        let Some(fewer) = left.checked_sub(1) else { return true };
        *left = fewer;
        let pair = (one.get(first).copied(), other.get(second).copied());
        if let (None, None) = pair {
            return true;
        }
        if let (Some(Step::More(_)), _) = pair {
            todo.push((first + 1, second));
        }
        if let (_, Some(Step::More(_))) = pair {
            todo.push((first, second + 1));
        }
        if let (Some(own), Some(theirs)) = pair
            && (0..=u8::MAX).any(|byte| own.is(byte) && theirs.is(byte))
        {
            todo.push((behind(own, first), behind(theirs, second)));
        }
    }
    false
}

// Values of unknown origin as parts of file names. A user's text must not lead out of the directory, or to
// another user's file. So every byte that is not allowed in a name is written as `%` with two digits, as in
// URLs: different values always give different names, and a name can be read back.

/// How long the hash of a shortened name is, with the dash before it.
pub(super) const HASH_LENGTH: usize = 17;

/// The longest name, so that what others append to it still fits into the 255 bytes of a file system.
pub(super) const LONGEST_NAME: usize = 200;

/// A value that is empty. No digit of a byte follows the `%`.
const EMPTY: &str = "%_";

/// The separator behind a value if nothing else shows where it ends.
pub(super) const END_OF_VALUE: &str = "%.";

/// Whether a byte may be in a file name as it is.
pub(super) fn is_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// The value as it is written in a file name; `reserved` are the characters that must not occur because they
/// separate it from its neighbour.
pub(super) fn encoded(value: &[u8], reserved: &[u8]) -> String {
    if value.is_empty() {
        return EMPTY.to_owned();
    }
    let mut name = String::with_capacity(value.len());
    for (index, byte) in value.iter().enumerate() {
        let is_leading_dot = index == 0 && *byte == b'.';
        if is_safe(*byte) && !reserved.contains(byte) && !is_leading_dot {
            name.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name
}

/// The value of a part of a name, if it is one.
fn decoded(text: &str) -> Option<Vec<u8>> {
    if text == EMPTY {
        return Some(Vec::new());
    }
    let mut value = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(byte) = rest.bytes().next() {
        let length = first_length(rest);
        let (one, behind) = rest.split_at_checked(length)?;
        value.push(match byte {
            b'%' => u8::try_from(digits(one.get(1..)?, 16)?).ok()?,
            _ => Some(byte).filter(|byte| is_safe(*byte))?,
        });
        rest = behind;
    }
    Some(value)
}

/// The first place of `end` in a text that is not within the encoding of a byte.
pub(super) fn find(text: &str, end: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with(end) {
            return Some(at);
        }
        if rest.is_empty() {
            return None;
        }
        at += first_length(rest);
    }
}

/// The length of a value's first byte in a name.
fn first_length(text: &str) -> usize {
    if text.starts_with(EMPTY) || text.starts_with(END_OF_VALUE) {
        return EMPTY.len();
    }
    if text.starts_with('%') { 3 } else { text.chars().next().map_or(1, char::len_utf8) }
}

/// The replacement for values that make a name too long: a hash of the values, each separated. It uses FNV-1a
/// with 64 bits. The standard library's hasher may change from one version to the next, and these names must
/// survive an update.
pub(super) fn hash_suffix<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut feed = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for value in values {
        value.iter().copied().for_each(&mut feed);
        // No value holds a NUL: the system passes none.
        feed(0);
    }
    format!("-{hash:016x}")
}

// `per`: one file for each member; and `shared_by`: one slot for each group.

/// The members for which a repository has a file each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Per {
    User,
    Group,
    Host,
    Command,
    Directory,
}

/// One entry of `per`: a word, or the name of what rules capture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PartitionKey<'a> {
    Each(Per),
    Captured(&'a str),
}

impl PartitionKey<'_> {
    /// As a policy writes it.
    pub(super) fn text(self) -> String {
        match self {
            PartitionKey::Each(per) => per.word().to_owned(),
            PartitionKey::Captured(name) => format!("{{{name}}}"),
        }
    }
}

impl Keyword for Per {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("user", Per::User),
        ("group", Per::Group),
        ("host", Per::Host),
        ("command", Per::Command),
        ("directory", Per::Directory),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_stay_as_they_are() {
        for value in ["ann", "R2024a", "node-17.example_b", "x..y", "a-0123456789abcdef"] {
            assert_eq!(encoded(value.as_bytes(), b""), value);
        }
    }

    #[test]
    fn what_could_lead_elsewhere_or_be_taken_for_another_is_written_in_digits() {
        let cases: [(&[u8], &str); 8] = [
            (b"", "%_"),
            (b".", "%2E"),
            (b"..", "%2E."),
            (b"a/b", "a%2Fb"),
            (b"a b", "a%20b"),
            (b"50%", "50%25"),
            ("ü".as_bytes(), "%C3%BC"),
            (b"a\nb\xff", "a%0Ab%FF"),
        ];
        for (value, name) in cases {
            assert_eq!(encoded(value, b""), name);
            assert_eq!(decoded(name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(encoded(b"a.b", b"."), "a%2Eb");
    }

    #[test]
    fn a_byte_in_digits_is_not_looked_into() {
        assert_eq!(find("%2Fopt-2F", "2F"), Some(7));
        assert_eq!(find("%_.lock", ".lock"), Some(2));
        assert_eq!(find("a%.b", "%."), Some(1));
        assert_eq!(find("%25.%.b", "%."), Some(4));
        assert_eq!(find("abc", "x"), None);
    }

    #[test]
    fn what_no_value_gives_is_not_read() {
        for name in ["%", "%2", "%zz", "%+A", "%.", "a%_", "4711,make", "a b", "ü"] {
            assert_eq!(decoded(name), None, "{name}");
        }
    }

    /// A name that is too long is cut to the longest length exactly: so no other name is that long.
    #[test]
    fn a_name_that_is_cut_has_the_longest_length() {
        let pattern = Name::new(vec![Piece::Value(Placeholder::Command), Piece::Literal("ü".repeat(90))]);
        let expanded = |length: usize| {
            let value = &mut |_: &Placeholder| Ok::<Vec<u8>, ()>(vec![b'x'; length]);
            pattern.expand(value).expect("a value")
        };
        assert_eq!(expanded(19).len(), LONGEST_NAME - 1);
        // Before and within a character.
        for length in [20, 30, 31, 150, 151] {
            assert_eq!(expanded(length).len(), LONGEST_NAME, "{length}");
        }
        assert_ne!(expanded(20), expanded(21));
        assert_eq!([19, 20].map(|length| expanded(length).contains('-')), [false, true], "a hash");
    }

    /// What launches have in common is written with commas, which no value has.
    #[test]
    fn several_values_are_separated_by_commas() {
        let name = Name::of_values(&[PartitionKey::Each(Per::User), PartitionKey::Each(Per::Host)]);
        let mut values = [b"4711".to_vec(), b"ws1,a".to_vec()].into_iter();
        let text = name.expand(&mut |_: &Placeholder| values.next().ok_or(()));
        assert_eq!(text.as_deref(), Ok("4711,ws1%2Ca"));
    }

    /// The text behind the last value is kept in a name that is cut, if it is a quarter of the name at most.
    #[test]
    fn a_short_ending_is_kept() {
        let kept = |length: usize| {
            let ending = Piece::Literal("x".repeat(length));
            Name::new(vec![Piece::Value(Placeholder::Command), ending]).kept_ending().len()
        };
        assert_eq!([1, LONGEST_NAME / 4, LONGEST_NAME / 4 + 1].map(kept), [1, 50, 0]);
    }

    #[test]
    fn the_hash_is_the_same_for_ever() {
        assert_eq!(hash_suffix([]), "-cbf29ce484222325");
        assert_eq!(hash_suffix([b"a".as_slice()]), "-089be207b544f1e4");
        assert_eq!(hash_suffix([]).len(), HASH_LENGTH);
    }
}
