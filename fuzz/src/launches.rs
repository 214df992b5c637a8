//! Policies of which a launch keeps only the rules that may be for its command. The bytes are the texts of a
//! few files: such a policy has the faults of the whole without its tests, and says the same.

use std::{collections::BTreeSet, ffi::OsStr, fmt::Write as _};

use rungate::{
    judge::{Decision, Request, Verdict, decide, terms::claim::Claim},
    policy::{Invocation, LayerKind, LayerText, Policy, Purpose},
    text::diagnostic::SourceText,
};

use super::policy::{for_launches_of, words};

/// What stands between two files.
pub const NEXT_FILE: &str = "# next file\n";

/// Longer texts only take longer.
const LONGEST: usize = 64 * 1024;

/// How often rules were left out.
#[derive(Debug, Default)]
pub struct Tally {
    /// Launches that were judged.
    pub judged: usize,
    /// Rules that those did not keep.
    pub omitted: usize,
    /// Launches under a policy with faults.
    pub faulty: usize,
}

/// Judges some launches by the policy that is kept for each, and by the whole one.
pub fn judge(data: &[u8]) {
    let Some(text) = data.get(..LONGEST.min(data.len())).and_then(|text| std::str::from_utf8(text).ok())
    else {
        return;
    };
    compare(text, (0..64).step_by(11), &mut Tally::default());
}

/// The files of a text: the system's with a drop-in, which is delegated where the first says so of any; a
/// given one, the caller's own.
fn layers(text: &str) -> Vec<LayerText> {
    let paths = ["/etc/rungate/policy.toml", "/etc/rungate/policy.d/20-cad.toml", "/given.toml", "/own.toml"];
    let mut files = text.split(NEXT_FILE).zip(paths).map(|(text, path)| SourceText::new(path, text));
    let mut system: Vec<SourceText> = files.by_ref().take(2).collect();
    let delegates = system.first().is_some_and(|main| main.text().contains("[delegate."));
    let delegated = if delegates { system.split_off(1) } else { Vec::new() };
    let delegated = delegated.into_iter().map(|file| (file, LayerKind::Delegated));
    let added = delegated.chain(files.zip([LayerKind::Given, LayerKind::Own]));
    let added = added.map(|(file, kind)| LayerText { kind, files: vec![file] });
    std::iter::once(LayerText { kind: LayerKind::System, files: system }).chain(added).collect()
}

/// The same for launches that begin with certain words of the text.
pub fn compare(text: &str, first: impl Iterator<Item = usize>, tally: &mut Tally) {
    let (words, first) = (words(text, usize::MAX), first.collect::<Vec<usize>>());
    for caller_is_root in [false, true] {
        let read = |purpose: Purpose<'_>| Policy::of_layers_for(layers(text), caller_is_root, purpose);
        let whole = read(Purpose::Launches(None));
        // Tests add faults, and nothing else.
        match (&whole, read(Purpose::Review)) {
            (Ok(whole), Ok(with_tests)) => assert_eq!(whole.print(), with_tests.print()),
            (_, Err(_)) => {}
            (Err(faults), Ok(_)) => panic!("{faults} in\n{text}"),
        }
        for_launches_of(&words, first.iter().copied(), |request| {
            let command = Invocation::new(request.typed, request.path, request.canonical);
            let (whole, kept) = match (&whole, read(Purpose::Launches(Some(&command)))) {
                (Ok(whole), Ok(kept)) => (whole, kept),
                (Err(whole), Err(kept)) => {
                    assert_eq!(whole.to_string(), kept.to_string(), "{:?} in\n{text}", request.typed);
                    tally.faulty += 1;
                    return;
                }
                (whole, kept) => panic!("{:?} and {:?} in\n{text}", whole.is_ok(), kept.is_ok()),
            };
            assert_eq!(told(whole, request), told(&kept, request), "{:?} in\n{text}", request.typed);
            tally.judged += 1;
            tally.omitted += whole.rules().len() - kept.rules().len();
        });
    }
}

/// All that a launch learns from a policy.
fn told(policy: &Policy, request: &Request<'_>) -> String {
    let decision = decide(policy, request);
    let mut said = verdict(&decision);
    for entry in decision.trace.iter().filter(|entry| entry.matches()) {
        let rule = entry.rule;
        let outcome = format!("{:?}", entry.outcome);
        let kind = outcome.split('(').next().unwrap_or_default();
        let _ = writeln!(said, "{} {} {:?} {kind}", rule.shown_name(), rule.place(), rule.message());
    }
    let repositories = policy.repositories().iter();
    let named: BTreeSet<_> =
        repositories.map(|known| (known.shown_name(), known.place().to_string())).collect();
    let _ = writeln!(said, "{named:?} {:?}", policy.layers());
    let _ = writeln!(said, "{:?} {:?}", policy.times_at(request.now), policy.generation(request.now));
    let _ = writeln!(
        said,
        "{:?} {:?}",
        policy.executable(request.typed),
        policy.executable(OsStr::new("matlab"))
    );
    let _ = writeln!(said, "{:?}", policy.logs().collect::<Vec<_>>());
    said
}

fn verdict(decision: &Decision<'_>) -> String {
    match &decision.verdict {
        Verdict::Start(start) => {
            let mut said = format!("{:?}\n", start.hold);
            let _ = writeln!(said, "{:?}", start.exempt.map(rungate::policy::Rule::shown_name));
            let _ = writeln!(said, "{}", start.would_refuse.len());
            for demand in &start.demands {
                for alternative in demand.alternatives() {
                    said.push_str("all of\n");
                    for claim in alternative {
                        add(claim, &mut said);
                    }
                }
            }
            said
        }
        Verdict::Denied { rule, matches } => format!("denied by {} {matches}\n", rule.shown_name()),
        Verdict::Unmatched => "unmatched\n".to_owned(),
        Verdict::LookupFailed { rule, failure } => format!("{} {failure}\n", rule.shown_name()),
    }
}

fn add(claim: &Claim, said: &mut String) {
    let Claim {
        repository,
        member,
        origins,
        location,
        amount,
        limit_of,
        kept,
        names,
        out_of_order,
        pace,
        nested,
        wait,
        queue,
        reserved,
        unclear,
        outside,
    } = claim;
    let _ = writeln!(said, "{repository} {member:?} {location:?} {amount:?} {pace:?} {nested:?}");
    let _ =
        writeln!(said, "{limit_of:?} {kept:?} {reserved:?} {names:?} {out_of_order:?} {wait:?} {queue:?}");
    let _ = writeln!(said, "{unclear:?} {outside:?}");
    for origin in origins {
        let place = origin.place.as_ref().map(ToString::to_string);
        let _ = writeln!(said, "{} {place:?} {:?}", origin.rule, origin.message);
    }
}
