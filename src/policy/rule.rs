//! A validated rule: what it selects, what it does, and its claims. It does not depend on the request; the
//! evaluator decides whether it applies.

use std::{
    ffi::OsStr,
    iter,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    END_OF_VALUE, HASH_LENGTH, LONGEST_NAME, Name, Piece, Placeholder, Repository, Selectors, Share,
    place::Place,
    template::{encoded, find},
};
pub(super) use crate::judge::terms::Slots;
use crate::{
    judge::terms::{Hold, Keyword, Member, Origin, Wait, rule_title},
    text::visible,
};

/// The effect of a counting rule on the launch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Action {
    /// It acquires its claims.
    #[default]
    Limit,
    /// It acquires its claims, if necessary beyond the limits.
    Count,
    /// It refuses the launch.
    Deny,
    /// It lets the launch start without a slot, or without slots of the named repositories.
    Exempt,
}

impl Keyword for Action {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("limit", Action::Limit),
        ("count", Action::Count),
        ("deny", Action::Deny),
        ("exempt", Action::Exempt),
    ];
}

impl Action {
    /// Whether a rule with this action acquires slots.
    pub(crate) fn acquires(self) -> bool {
        matches!(self, Action::Limit | Action::Count)
    }
}

/// What happens to a launch whose command line has no number where `slots_from` expects one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum IfUnclear {
    /// It counts as if the argument were missing.
    Absent,
    Refuse,
}

impl Keyword for IfUnclear {
    const WORDS: &'static [(&'static str, Self)] =
        &[("absent", IfUnclear::Absent), ("refuse", IfUnclear::Refuse)];
}

#[derive(Debug)]
pub struct Rule {
    pub(super) name: String,
    pub(super) shown_name: Arc<str>,
    pub(super) place: Place,
    /// The index of its layer.
    pub(crate) layer: usize,
    pub(crate) selectors: Selectors,
    /// Whether its selectors capture anything.
    pub(crate) captures: bool,
    /// Any of these excludes the rule, regardless of its own selectors.
    pub(crate) except: Vec<Selectors>,
    /// The family whose first matching rule counts; the number is unique among all layers.
    pub(crate) family: Option<usize>,
    pub(super) first_of: Option<String>,
    pub(super) order: i64,
    pub(super) action: Action,
    pub(super) message: Option<Arc<str>>,
    /// The contact, if it names one.
    pub(super) contact: Option<Arc<str>>,
    /// The contact of its layer.
    pub(super) default_contact: Option<Arc<str>>,
    pub(crate) acquire: Vec<Acquisition>,
    /// The repositories that an exempt rule exempts from, by index; `None` is from everything.
    pub(crate) from: Option<Vec<usize>>,
    pub(crate) enforce: Option<bool>,
    pub(crate) wait: Option<Wait>,
    pub(crate) hold: Option<Hold>,
    /// Whether a file of a repository it acquires depends on the groups of the rule that the caller is in.
    pub(crate) needs_groups: bool,
}

impl Rule {
    /// The name in the file, or its number if it has none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name to show: with the file's if two files use it.
    pub fn shown_name(&self) -> &str {
        &self.shown_name
    }

    /// Its name in a sentence.
    pub fn title(&self) -> String {
        rule_title(&self.shown_name)
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The rule as the reason for a claim.
    pub fn origin(&self) -> Origin {
        Origin {
            rule: Arc::clone(&self.shown_name),
            place: Some(self.place.clone()),
            message: self.message.clone(),
            contact: self.contact.as_ref().or(self.default_contact.as_ref()).cloned(),
        }
    }

    /// What it does.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The author's message for the users that it refuses.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// The contact for its refusals: its own, else that of the defaults.
    pub fn contact(&self) -> Option<&str> {
        self.contact.as_deref().or(self.default_contact.as_deref())
    }

    /// How long its launches may wait, if it sets that.
    pub fn wait(&self) -> Option<Wait> {
        self.wait
    }

    /// What keeps its launches' slots, if it sets that.
    pub fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// Whether its launches are counted and never refused.
    pub(crate) fn is_always_admitted(&self) -> bool {
        self.action == Action::Count
    }

    /// The names of commands that are neither paths nor patterns: those that can have a shim.
    pub fn literal_commands(&self) -> impl Iterator<Item = &str> {
        self.selectors.commands.iter().flatten().filter_map(|command| command.literal_name())
    }

    /// The paths among its commands and those of its exceptions, and patterns of paths. Each has its
    /// directory, of a pattern as far as nothing is special in it.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = iter::once(&self.selectors).chain(&self.except);
        let commands = all.flat_map(|selectors| selectors.commands.iter().flatten());
        commands.filter_map(|command| Some((command.pattern.text(), command.directory()?)))
    }
}

// The validated claims of a rule: repositories are indices, numbers are within their limits.

/// One entry of `acquire`.
#[derive(Debug)]
pub(crate) enum Acquisition {
    One(ClaimTerms),
    /// The first alternative that is completely available.
    AnyOf(Vec<Vec<ClaimTerms>>),
}

impl Acquisition {
    /// Its claims, the alternatives one after the other.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &ClaimTerms> {
        let (only, alternatives) = match self {
            Acquisition::One(terms) => (Some(terms), None),
            Acquisition::AnyOf(alternatives) => (None, Some(alternatives)),
        };
        only.into_iter().chain(alternatives.into_iter().flatten().flatten())
    }
}

/// The claim on one repository.
#[derive(Debug)]
pub(crate) struct ClaimTerms {
    /// Its index among the repositories of the policy.
    pub(crate) repository: usize,
    pub(crate) ceiling: Option<Share>,
    /// 0 if only the command line can request any.
    pub(crate) slots: Slots,
    pub(crate) slots_from: Option<SlotsFrom>,
    pub(crate) wait: Option<Wait>,
    /// Whether it makes no claim, and only sets a ceiling for claims of others.
    pub(crate) lowers: bool,
}

impl ClaimTerms {
    /// Whether this is certainly available whenever the other is: the same or fewer slots of the same
    /// repository, and no lower limit.
    pub(super) fn wants_no_more_than(&self, other: &ClaimTerms) -> bool {
        // A share and a number are not compared.
        let no_lower = match (other.ceiling, self.ceiling) {
            (_, None) => true,
            (Some(Share::Slots(less)), Some(Share::Slots(more)))
            | (Some(Share::Percent(less)), Some(Share::Percent(more))) => less <= more,
            _ => false,
        };
        self.repository == other.repository
            && self.slots <= other.slots
            && self.slots_from == other.slots_from
            && no_lower
    }
}

/// Where the command line has the number of slots.
#[derive(Debug, PartialEq)]
pub(crate) struct SlotsFrom {
    /// The arguments before the numbers, which add up; never empty.
    pub(crate) after: Vec<String>,
    /// No more than this, whatever the number is.
    pub(crate) most: Option<u32>,
    /// The slots for each number, in ascending order of the numbers; empty if the number is the number of
    /// slots.
    pub(crate) table: Vec<(u32, u32)>,
    pub(crate) unclear: IfUnclear,
}

impl SlotsFrom {
    /// The default for an unclear command line: with a table the launch is refused, because tables are for
    /// exact counts.
    pub(super) fn default_unclear(table: &[(u32, u32)]) -> IfUnclear {
        if table.is_empty() { IfUnclear::Absent } else { IfUnclear::Refuse }
    }

    /// The slots for a number; the greatest number of the table if the number is above it.
    pub(crate) fn slots_for(&self, number: u32) -> Result<u32, u32> {
        let Some((greatest, _)) = self.table.last().filter(|_| number > 0) else { return Ok(number) };
        let entry = self.table.iter().find(|(entry, _)| *entry >= number);
        entry.map(|(_, slots)| *slots).ok_or(*greatest)
    }
}

// Finds the lock files of a repository with one for each member by their names: the path template is applied
// backwards.

impl Repository {
    /// The directory below which its files are.
    pub fn base(&self, runtime: &Path) -> PathBuf {
        self.path.base(runtime)
    }

    /// That directory, and those below it that are the same for every launch.
    pub fn directories(&self, runtime: &Path) -> Vec<PathBuf> {
        self.path.directories(runtime)
    }

    /// The number of names in its path below the base: those of directories, and that of the file.
    pub fn depth(&self) -> usize {
        self.path.names.len()
    }

    /// The placeholders of its path, in order.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.path.placeholders()
    }

    /// The member in a name at this depth; none if it is not a name of this repository.
    pub fn read_name(&self, depth: usize, name: &str) -> Option<Vec<Member>> {
        self.path.names.get(depth)?.read(name)
    }

    /// Whether the name of its files has more than placeholders, so that few other files have such a name.
    pub(crate) fn has_text_in_file_name(&self) -> bool {
        let pieces = self.path.names.last().map_or(&[][..], |name| &name.pieces);
        pieces.iter().any(|piece| piece.literal_length() > 0)
    }
}

impl Name {
    fn read(&self, name: &str) -> Option<Vec<Member>> {
        if name.len() == LONGEST_NAME {
            return self.read_shortened(name);
        }
        let (members, rest) = self.read_values(name, false)?;
        (members.len() == self.placeholders().count() && rest.is_empty()).then_some(members)
    }

    /// For a shortened name: its first values, the beginning of the one that was cut, and the hash of all
    /// values, so that all members look different.
    fn read_shortened(&self, name: &str) -> Option<Vec<Member>> {
        let kept = name.strip_suffix(self.kept_ending())?;
        let (kept, hash) = kept.split_at_checked(kept.len().checked_sub(HASH_LENGTH)?)?;
        let is_hash = hash.strip_prefix('-')?.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (mut members, cut) = self.read_values(kept, true)?;
        let placeholder = self.placeholders().nth(members.len())?;
        if !cut.is_empty() && !may_begin(placeholder, cut) {
            return None;
        }
        // The first digit of an encoded byte may be left.
        let value = (0..=cut.len().min(2)).find_map(|less| {
            let (whole, left) = cut.split_at_checked(cut.len() - less)?;
            Some([&self.value(whole)?, left.as_bytes()].concat())
        });
        let value = [&value.unwrap_or_else(|| cut.as_bytes().to_vec()), hash.as_bytes()].concat();
        members.push(member_of(placeholder, value));
        is_hash.then_some(members)
    }

    /// The values as far as they can be separated, and the rest of the name. If it was cut, the last value is
    /// in the rest. None for a name of another repository.
    fn read_values<'a>(&self, name: &'a str, is_cut: bool) -> Option<(Vec<Member>, &'a str)> {
        let is_pair = self.placeholders().count() == 2;
        let mut members = Vec::new();
        let mut rest = name;
        let mut pieces = self.pieces.as_slice();
        while let [piece, left @ ..] = pieces {
            pieces = left;
            let placeholder = match piece {
                Piece::Literal(text) => match rest.strip_prefix(text.as_str()) {
                    Some(behind) => {
                        rest = behind;
                        continue;
                    }
                    // Only the one in which the name was cut may lack something.
                    None => {
                        let is_beginning = is_cut && text.starts_with(rest.trim_end_matches('_'));
                        return is_beginning.then_some((members, rest));
                    }
                },
                Piece::Value(placeholder) => placeholder,
            };
            let is_last = !left.iter().any(|piece| matches!(piece, Piece::Value(_)));
            let is_ended = self.is_ended && !is_last;
            let end = match left {
                _ if is_ended => find(rest, END_OF_VALUE),
                _ if is_last && is_cut => None,
                [] => Some(rest.len()),
                [Piece::Literal(last)] => rest.len().checked_sub(last.len()),
                // If the second of two values is a number, it has none of these characters, but the first may
                // have them.
                [Piece::Literal(next), Piece::Value(number), behind @ ..]
                    if is_pair && number.is_number() =>
                {
                    let ending = if is_cut { 0 } else { behind.iter().map(Piece::literal_length).sum() };
                    rest.len().checked_sub(ending).and_then(|end| rest.get(..end)?.rfind(next))
                }
                [Piece::Literal(next), ..] => find(rest, next),
                [Piece::Value(_), ..] => None,
            };
            let read = end.and_then(|end| rest.split_at_checked(end)).and_then(|(value, behind)| {
                let behind = if is_ended { behind.strip_prefix(END_OF_VALUE)? } else { behind };
                Some((self.member(placeholder, value)?, behind))
            });
            let Some((member, behind)) = read else { return Some((members, rest)) };
            members.push(member);
            rest = behind;
        }
        Some((members, rest))
    }

    /// A member by its text in a name. Users can create lock files too, and of two texts of one member the
    /// second would look like the first.
    fn member(&self, placeholder: &Placeholder, part: &str) -> Option<Member> {
        let number = || part.parse().ok().filter(|number: &u32| number.to_string() == part);
        match placeholder {
            Placeholder::Uid => number().map(Member::User),
            Placeholder::Gid => number().map(Member::Group),
            _ if !may_begin(placeholder, part) => None,
            _ => self.value(part).map(|value| member_of(placeholder, value)),
        }
    }
}

/// Whether the text of a value may begin so, as when the policy is checked for names that could meet: a
/// directory begins with a slash, encoded.
fn may_begin(placeholder: &Placeholder, part: &str) -> bool {
    !matches!(placeholder, Placeholder::Directory) || part.starts_with('%')
}

/// A member by its value. Different values never look the same: what is no text, or cannot be seen, is an
/// escape, and so are the backslash and a comma before a blank, which separate members. The names of accounts
/// are shown as they are everywhere else, if they can be, and otherwise as in the lock file's name.
pub(crate) fn member_of(placeholder: &Placeholder, value: Vec<u8>) -> Member {
    let escaped = |text: &[u8]| {
        let parts: Vec<&[u8]> = text.split(|byte| *byte == b'\\').collect();
        visible(OsStr::from_bytes(&parts.join(&br"\\"[..])))
    };
    let shown = match placeholder {
        Placeholder::User | Placeholder::Group => String::from_utf8(value.clone())
            .ok()
            .filter(|name| visible(name) == *name && !name.contains([',', '%']))
            .unwrap_or_else(|| encoded(&value, &[])),
        // They are joined by NUL, and shown with blanks.
        Placeholder::Arguments => {
            let each = value.split(|byte| *byte == 0).map(|one| escaped(one).replace(' ', r"\ "));
            each.collect::<Vec<_>>().join(" ").replace(", ", r"\, ")
        }
        _ => escaped(&value).replace(", ", r"\, "),
    };
    Member::Text { value, shown }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ANN: &[u8] = b"4711";

    fn name(pieces: &[Option<Placeholder>], between: &str) -> Name {
        let piece = |piece: &Option<Placeholder>| match piece {
            Some(value) => Piece::Value(value.clone()),
            None => Piece::Literal(between.to_owned()),
        };
        Name::new(pieces.iter().map(piece).chain([Piece::Literal(".lock".to_owned())]).collect())
    }

    /// The values that are read back from the name of these values.
    fn read(pattern: &Name, values: &[&[u8]]) -> Vec<Member> {
        let mut left = values.iter();
        let value = &mut |_: &Placeholder| left.next().map(|value| value.to_vec()).ok_or(());
        let name = pattern.expand(value).expect("as many values as there are");
        pattern.read(&name).unwrap_or_else(|| panic!("each name of a repository is found to be one: {name}"))
    }

    fn text(text: &str) -> Member {
        member_of(&Placeholder::Directory, text.as_bytes().to_vec())
    }

    #[test]
    fn values_are_read_as_they_were() {
        use Placeholder::{Argument, Command, Directory, Gid, Uid};
        let path = "/opt/my_lab 50%/bin/ü";
        assert_eq!(read(&name(&[Some(Directory)], ""), &[path.as_bytes()]), [text(path)]);
        assert_eq!(read(&name(&[Some(Gid)], ""), &[b"100"]), [Member::Group(100)]);
        let ann = || Member::User(4711);
        for between in [",", "-", "_", ".", "2F", "%", "x%y", " "] {
            let pattern = name(&[Some(Uid), None, Some(Directory)], between);
            assert_eq!(read(&pattern, &[ANN, path.as_bytes()]), [ann(), text(path)], "{between}");
            let pattern = name(&[Some(Command), None, Some(Uid)], between);
            assert_eq!(read(&pattern, &[b"run.-,2Fsh", ANN]), [text("run.-,2Fsh"), ann()], "{between}");
            let pattern = name(&[Some(Argument(1)), None, Some(Argument(2)), None, Some(Uid)], between);
            for (one, two) in [("", "a"), ("a", ""), ("2F", "/"), ("%41", "-2F."), ("x%", "%.")] {
                let values = [one.as_bytes(), two.as_bytes(), ANN];
                assert_eq!(read(&pattern, &values), [text(one), text(two), ann()], "{between}");
            }
        }
        let pattern = name(&[Some(Uid), Some(Command), Some(Directory)], "");
        assert_eq!(read(&pattern, &[ANN, b"make", b"/"]), [ann(), text("make"), text("/")]);
    }

    /// The names of one repository are not those of another in the same directory, also if they were
    /// shortened.
    #[test]
    fn names_of_another_repository_are_not_read() {
        use Placeholder::Directory;
        let of = |text: &str| {
            let pieces = [Piece::Literal(text.to_owned()), Piece::Value(Directory)];
            Name::new(pieces.into_iter().chain([Piece::Literal(".lock".to_owned())]).collect())
        };
        let [seats, big, other] = ["seats.", "seats.big.", "b."].map(of);
        for path in ["/tmp".to_owned(), "/tmp/x".repeat(60)] {
            let name =
                |of: &Name| of.expand(&mut |_| Ok::<_, ()>(path.clone().into_bytes())).expect("a value");
            for (own, others) in
                [(&seats, [&big, &other]), (&big, [&seats, &other]), (&other, [&seats, &big])]
            {
                assert!(own.read(&name(own)).is_some(), "{path}");
                assert!(others.iter().all(|of| of.read(&name(own)).is_none()), "{path}");
            }
        }
    }

    /// Members that differ never look the same.
    #[test]
    fn members_look_different() {
        let case = |placeholder: &Placeholder, value: &[u8], expected: &str| {
            let Member::Text { shown, .. } = member_of(placeholder, value.to_vec()) else {
                panic!("{expected} is no number");
            };
            assert_eq!(shown, expected);
        };
        for (value, expected) in [
            (&b"M\xfcller"[..], r"M\xfcller"),
            (b"M\xf6ller", r"M\xf6ller"),
            ("M\u{fffd}ller".as_bytes(), "M\u{fffd}ller"),
            (br"M\xfcller", r"M\\xfcller"),
            (b"a\nb", r"a\nb"),
            (br"a\nb", r"a\\nb"),
            (br"a\\nb", r"a\\\\nb"),
            ("a\u{200b}b".as_bytes(), r"a\u{200b}b"),
            (b"a b", "a b"),
            (b"a, b", r"a\, b"),
            (br"a\, b", r"a\\\, b"),
        ] {
            case(&Placeholder::Directory, value, expected);
        }
        for (value, expected) in [
            (&b"a b"[..], r"a\ b"),
            (b"a\0b", "a b"),
            (br"a\0b", r"a\\0b"),
            (br"a\ b", r"a\\\ b"),
            (b"a\0\0b", "a  b"),
            (b"a,\0b", r"a\, b"),
            (b"a, b", r"a,\ b"),
        ] {
            case(&Placeholder::Arguments, value, expected);
        }
        for (value, expected) in [
            (&br"CORP\ann"[..], r"CORP\ann"),
            (b"domain users", "domain users"),
            (b"M\xfcller", "M%FCller"),
            (b"M%FCller", "M%25FCller"),
            (b"a\nb", "a%0Ab"),
            (b"a, b", "a%2C%20b"),
        ] {
            case(&Placeholder::User, value, expected);
        }
    }

    #[test]
    fn another_name_is_none_of_the_repository() {
        let pattern = name(&[Some(Placeholder::Uid), None, Some(Placeholder::Host)], ",");
        for other in [
            "ann,ws17.lock",
            "+4711,ws17.lock",
            "04711,ws17.lock",
            "4711,ws%317.lock",
            "4711,ws%2f.lock",
            "4711,.ws17.lock",
            "4711.lock",
            "4711,ws17",
            "4711,%zz.lock",
            "4711,ws17.lock.old",
            ".lock",
        ] {
            assert_eq!(pattern.read(other), None, "{other}");
        }
    }

    /// A name of the longest length is one that was shortened only if it has a hash.
    #[test]
    fn a_name_without_a_hash_was_not_shortened() {
        let pattern = name(&[Some(Placeholder::Directory)], "");
        let value = &mut |_: &Placeholder| Ok::<Vec<u8>, ()>([b"/".as_slice(), &b"x".repeat(300)].concat());
        let shortened = pattern.expand(value).expect("a value");
        assert!(pattern.read(&shortened).is_some(), "{shortened}");
        let hash = shortened.len() - ".lock".len() - HASH_LENGTH;
        for (at, other) in [(hash, "_"), (hash + 1, "g"), (hash + HASH_LENGTH - 1, "g")] {
            let mut changed = shortened.clone();
            changed.replace_range(at..=at, other);
            assert_eq!(pattern.read(&changed), None, "{changed}");
        }
    }

    #[test]
    fn of_a_name_that_was_shortened_the_beginning_is_read() {
        use Placeholder::{Directory, Uid};
        let long = |length: usize| [b"/".as_slice(), &b"x".repeat(length)].concat();
        let pattern = name(&[Some(Uid), None, Some(Directory)], ",");
        let of = |length: usize| read(&pattern, &[ANN, &long(length)]);
        assert_eq!(of(300)[0], Member::User(4711));
        assert!(of(300)[1].value().starts_with(b"/xxxx"), "{:?}", of(300));
        assert_ne!(of(300), of(301));
        // If the number itself is cut, the rest of it must not be taken for another user.
        let pattern = name(&[Some(Directory), None, Some(Uid)], ",");
        for (length, uid) in (150..220).flat_map(|length| [(length, 4711), (length, 4_000_000_123)]) {
            let read = read(&pattern, &[&long(length), uid.to_string().as_bytes()]);
            assert!(
                read.iter().all(|member| !matches!(member, Member::User(other) if *other != uid)),
                "{read:?}"
            );
        }
    }

    /// Users can create lock files with any name. Two of them never look the same.
    #[test]
    fn names_that_were_shortened_look_different() {
        use Placeholder::{Command, Directory};
        let look = |pattern: &Name, name: &str| {
            pattern.read(name).map(|read| {
                let shown = |member: &Member| match member {
                    Member::Text { shown, .. } => shown.clone(),
                    Member::User(id) | Member::Group(id) => id.to_string(),
                };
                read.iter().map(shown).collect::<Vec<_>>().join(", ")
            })
        };
        for pattern in [name(&[Some(Directory)], ""), name(&[Some(Command), None, Some(Directory)], ", ")] {
            let mut left = pattern.placeholders().count();
            let value = &mut |_: &Placeholder| {
                left -= 1;
                Ok::<_, ()>(if left == 0 { "/,x".repeat(60) } else { "make".to_owned() }.into_bytes())
            };
            let shortened = pattern.expand(value).expect("values");
            let hash = shortened.len() - ".lock".len() - HASH_LENGTH;
            let at = shortened.find("%2F").expect("a slash");
            let spellings = ["%2F", "%2f", "/", "%", "%_", "%.", "abc", "%61"];
            let mut names: BTreeSet<String> = BTreeSet::new();
            for spelling in spellings {
                for place in [at, hash - 3] {
                    let mut changed = shortened.clone();
                    changed.replace_range(place..place + 3, &format!("{spelling:x<3}"));
                    names.insert(changed);
                }
            }
            let looks: Vec<String> = names.iter().filter_map(|name| look(&pattern, name)).collect();
            assert!(looks.len() > spellings.len(), "{looks:?}");
            assert_eq!(looks.iter().collect::<BTreeSet<_>>().len(), looks.len(), "{shortened}");
        }
    }
}
