//! Placeholders, filled with whatever a user can type.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path, PathBuf},
};

use proptest::{collection::vec, prelude::*, sample::select};
use rungate::{
    judge::{
        Request, Verdict, decide,
        terms::{
            claim::Demand,
            claim::{LookupError, Names},
            location::Location,
        },
    },
    policy::Policy,
};

/// Nobody has a name.
struct Nobody;

impl Names for Nobody {
    fn user_name(&self, _: u32) -> Result<Option<String>, LookupError> {
        Ok(None)
    }

    fn user_id(&self, _: &str) -> Result<Option<u32>, LookupError> {
        Ok(None)
    }

    fn group_id(&self, _: &str) -> Result<Option<u32>, LookupError> {
        Ok(None)
    }

    fn group_name(&self, _: u32) -> Result<Option<String>, LookupError> {
        Ok(None)
    }

    fn in_netgroup(&self, _: &str, _: &str, _: &str) -> Result<bool, LookupError> {
        Ok(false)
    }
}

/// Templates of every kind: one value, several with and without text between them, several names.
const TEMPLATES: &[&str] = &[
    "{arg1}",
    "{arg1}.lock",
    ".{arg1}",
    "..{arg1}",
    "a-{arg1}-b",
    "{arg1}{arg2}",
    "{arg1}-{arg2}",
    "{arg1}.{arg2}.lock",
    "{arg1}_{arg2}",
    "{arg1},{arg2}",
    "{arg1}/{arg2}",
    "{arg1}-x/{arg2}.lock",
    "{uid}{arg1}",
    "{uid}.{arg1}",
    "{arg1}.{uid}",
    "{arg1}.{uid}.{arg2}",
    "{args}",
    "{args}.lock",
    "{arg1}-{args}",
];

/// What a user can type: bytes without a NUL, mostly those that could do harm.
fn values() -> impl Strategy<Value = OsString> {
    let harmful = select(vec![b'/', b'.', b'-', b'_', b',', b'a', b'0', b' ', b'\n', 0xff, b'%']);
    let hash =
        vec(select(b"0123456789abcdef".to_vec()), 16).prop_map(|digits| [b"a-".to_vec(), digits].concat());
    prop_oneof![
        4 => vec(harmful, 0..8),
        2 => vec(1..=255u8, 0..12),
        1 => hash,
        1 => (150..400usize).prop_map(|length| vec![b'x'; length]),
        1 => (150..400usize).prop_map(|length| vec![b'/'; length]),
    ]
    .prop_map(OsString::from_vec)
}

/// A launch: its uid and its arguments.
fn launches() -> impl Strategy<Value = (u32, Vec<OsString>)> {
    (select(vec![1u32, 12, 112]), vec(values(), 2))
}

fn path(template: &str, (uid, arguments): &(u32, Vec<OsString>)) -> PathBuf {
    let text = format!("[repository.r]\nlimit = 1\npath = \"{template}\"\n[[rule]]\nacquire = [\"r\"]\n");
    let policy = Policy::of_text("/p.toml", text).expect("a policy");
    let decision = decide(
        &policy,
        &Request {
            typed: OsStr::new("x"),
            arguments,
            path: Path::new("/bin/x"),
            canonical: Path::new("/bin/x"),
            uid: *uid,
            gids: &[],
            host: OsStr::new("h"),
            directory: Path::new("/"),
            environment: &|_| None,
            now: jiff::Timestamp::UNIX_EPOCH,
            cpus: &|| 1,
            runtime: Path::new("/r"),
            names: &Nobody,
        },
    );
    let Verdict::Start(terms) = &decision.verdict else { panic!("it does not start") };
    let Some(Demand::One(claim)) = terms.demands.first() else { panic!("it claims nothing") };
    let Location::File(file) = &claim.location else { panic!("it is kept in no file") };
    file.path.clone()
}

/// What of a launch a template asks about.
fn asked<'a>(template: &str, (uid, arguments): &'a (u32, Vec<OsString>)) -> (Option<u32>, Vec<&'a OsString>) {
    let first = arguments.iter().take(usize::from(template.contains("{arg1}")));
    let second = arguments.iter().skip(1).take(usize::from(template.contains("{arg2}")));
    let all = arguments.iter().take(if template.contains("{args}") { arguments.len() } else { 0 });
    (template.contains("{uid}").then_some(*uid), first.chain(second).chain(all).collect())
}

proptest! {
    #![proptest_config(super::cases(300))]

    #[test]
    fn a_path_never_leaves_its_directory(template in select(TEMPLATES), launch in launches()) {
        let path = path(template, &launch);
        let below = path.strip_prefix("/run/rungate").expect("below the directory");
        prop_assert_eq!(below.components().count(), template.split('/').count(), "{:?}", path);
        for component in below.components() {
            let Component::Normal(name) = component else { panic!("{path:?} goes elsewhere") };
            prop_assert!(name.len() <= 200);
            prop_assert!(name.as_bytes().iter().all(u8::is_ascii_graphic), "{:?}", name);
        }
    }

    #[test]
    fn two_values_never_share_a_file(template in select(TEMPLATES), one in launches(), other in launches()) {
        let same = path(template, &one) == path(template, &other);
        prop_assert_eq!(same, asked(template, &one) == asked(template, &other));
    }

    #[test]
    fn what_one_value_becomes_is_not_what_another_is(template in select(TEMPLATES), launch in launches()) {
        let name = path(template, &launch).file_name().expect("a name").to_owned();
        let posing = (launch.0, vec![name, launch.1[1].clone()]);
        let same = path(template, &posing) == path(template, &launch);
        prop_assert_eq!(same, asked(template, &posing) == asked(template, &launch));
    }
}
