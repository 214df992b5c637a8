//! Policy text to decision. The bytes are the text of a policy file; the launches that it judges are made of
//! the words that stand in it, so that rules match.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    ops::RangeInclusive,
    path::Path,
};

use rungate::{
    judge::{
        Decision, Request, Verdict, decide,
        terms::{
            claim::{Claim, Demand},
            keyword::Admit,
            location::Location,
        },
    },
    policy::{LayerKind, LayerText, Policy, codes},
    text::diagnostic::SourceText,
};

use super::small_site::{FIRST, SmallSite};

/// What the system says where the text is a user's own policy, which may only tighten it.
const SYSTEM: &str = "[repository.system]\nlimit = 5\n[[rule]]\nacquire = [\"system\"]\n";

/// Longer texts only take longer.
const LONGEST: usize = 16 * 1024;

/// Reads the text as a policy of the system and as a user's own, and judges launches by it.
pub fn judge(data: &[u8]) {
    let Some(text) = data.get(..LONGEST.min(data.len())).and_then(|text| std::str::from_utf8(text).ok())
    else {
        return;
    };
    if let Some(policy) = read(&[(LayerKind::System, SYSTEM), (LayerKind::Own, text)]) {
        for_launches(text, |request| keeps_to_the_systems(&decide(&policy, request)));
    }
    let Some(policy) = read(&[(LayerKind::System, text)]) else { return };
    let printed: Vec<String> = policy.print().into_iter().map(|(_, text)| text).collect();
    let again = read(&[(LayerKind::System, &printed.concat())]);
    let again = again.unwrap_or_else(|| panic!("what is printed is no policy:\n{}", printed.concat()));
    for_launches(text, |request| {
        let (one, other) = (describe(&decide(&policy, request)), describe(&decide(&again, request)));
        assert_eq!(one, other, "what is printed decides otherwise:\n{}", printed.concat());
    });
}

/// None if the text has faults; those can be shown.
fn read(layers: &[(LayerKind, &str)]) -> Option<Policy> {
    let layer = |(kind, text): &(LayerKind, &str)| LayerText {
        kind: *kind,
        files: vec![SourceText::new("/etc/rungate/policy.toml", *text)],
    };
    let layers = || layers.iter().map(layer).collect();
    let read = Policy::of_layers(layers(), false);
    let checked = Policy::check_layers(layers(), false, &SmallSite);
    assert_eq!(
        read.is_err(),
        checked.is_err(),
        "the launch and policy check do not agree on what is a fault"
    );
    if let Err(faults) = &checked {
        assert!(faults.count() > 0 && faults.iter().all(|fault| codes().any(|code| code == fault.code)));
        let shown = faults.to_string();
        assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "a terminal would obey {shown:?}");
    }
    read.ok()
}

/// So much of what stands between quotes, and some words that are always tried.
pub fn words(text: &str, most: usize) -> Vec<&str> {
    let quoted = text.split('"').skip(1).step_by(2).flat_map(|words| words.split(['*', '?', '@', '%']));
    let mut words: Vec<&str> =
        quoted.filter(|word| !word.is_empty() && !word.contains('\0')).take(most).collect();
    words.extend(["matlab", "/usr/bin/mex", "ws17.example.org", "-np", "8"]);
    words
}

fn for_launches(text: &str, ask: impl FnMut(&Request<'_>)) {
    let words = words(text, 64);
    for_launches_of(&words, (0..4).map(|number| number * 7), ask);
}

/// Launches that are made of some words; each begins with another one.
pub fn for_launches_of(
    words: &[&str],
    first: impl Iterator<Item = usize>,
    mut ask: impl FnMut(&Request<'_>),
) {
    for (number, first) in first.enumerate() {
        let word = |index: usize| words[(first + index) % words.len()];
        let number = number % 4;
        let path = Path::new("/usr/bin").join(word(0));
        let arguments: Vec<OsString> = (1..5).map(|index| OsString::from(word(index))).collect();
        let groups: Vec<u32> = (FIRST..).take(number).collect();
        let second = 1_795_000_000 + 11 * 3600 * i64::try_from(number).unwrap_or(0);
        ask(&Request {
            typed: OsStr::new(word(0)),
            arguments: &arguments,
            path: &path,
            canonical: &path,
            uid: FIRST + u32::try_from(number).unwrap_or(0),
            gids: &groups,
            host: OsStr::new(word(5)),
            directory: &Path::new("/").join(word(6)),
            environment: &|name| (name.len() % 2 == number % 2).then(|| OsString::from(word(name.len()))),
            now: jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::UNIX_EPOCH),
            cpus: &|| 4,
            runtime: Path::new("/run/user/2000/rungate"),
            names: &SmallSite,
        });
    }
}

/// A user's own policy takes nothing away from what the system's demands.
fn keeps_to_the_systems(decision: &Decision<'_>) {
    let Verdict::Start(terms) = &decision.verdict else { return };
    assert!(terms.exempt.is_none(), "a user has exempted himself");
    let mut claims =
        terms.demands.iter().filter(|demand| matches!(demand, Demand::One(_))).flat_map(Demand::claims);
    let is_kept = |claim: &Claim| {
        claim.repository.split(' ').next() == Some("system")
            && claim.amount.effective_limit() <= 5
            && claim.amount.admit == Admit::WithinLimit
    };
    assert!(claims.any(is_kept), "a user has loosened the system's limit: {:?}", terms.demands);
}

/// What is decided, after a look at what must hold for every decision.
fn describe(decision: &Decision<'_>) -> String {
    let mut said = format!("{:?}\n", decision.trace.iter().map(|entry| &entry.outcome).collect::<Vec<_>>());
    match &decision.verdict {
        Verdict::Start(terms) => {
            for claim in terms.demands.iter().flat_map(Demand::claims) {
                let Location::File(file) = &claim.location else { panic!("no lock file: {claim:?}") };
                assert!(file.path.is_absolute() && file.path.starts_with(&file.creation.base), "{file:?}");
                assert!(file.path.components().all(|part| part.as_os_str() != ".."), "{file:?}");
                let within =
                    |zone: &RangeInclusive<u64>| *zone.start() >= 1 && *zone.end() <= claim.amount.limit;
                assert!(claim.amount.zones.iter().all(within), "{:?}", claim.amount);
                let _ = writeln!(
                    said,
                    "{:?} {:?} {:?} {:?} {:?} {:?}",
                    file.path, file.owner, claim.member, claim.amount, claim.wait, claim.queue
                );
            }
            let _ = write!(said, "{} {:?}", terms.exempt.is_some(), terms.hold);
        }
        Verdict::Denied { matches, rule } => {
            let _ = write!(said, "denied {:?} {matches}", rule.message());
        }
        Verdict::Unmatched => said.push_str("unmatched"),
        Verdict::LookupFailed { failure, .. } => said.push_str(&failure.to_string()),
    }
    said
}
