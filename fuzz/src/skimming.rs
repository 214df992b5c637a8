//! Policies that are read only as far as they can matter to a command. The bytes are the texts of a few
//! files; where a launch may skim them, nothing is wrong with the whole, and it says the same.

use std::{collections::BTreeSet, ffi::OsStr, fmt::Write as _};

use rungate::{
    judge::{Decision, Request, Verdict, decide, terms::claim::Claim},
    policy::{Invocation, LayerKind, LayerText, Policy},
    text::diagnostic::SourceText,
};

use super::policy::{for_launches_of, words};

/// What stands between two files.
pub const NEXT_FILE: &str = "# next file\n";

/// Longer texts only take longer.
const LONGEST: usize = 64 * 1024;

/// How often rules were left out, and how often the whole had to be read.
#[derive(Debug, Default)]
pub struct Tally {
    /// Launches that were judged by a skimmed policy.
    pub skimmed: usize,
    /// Rules that those did not read.
    pub omitted: usize,
    /// Launches for which the whole has to be read, because of a fault or because it was not written plainly.
    pub whole: usize,
    /// Those among them whose policy has no fault.
    pub plain: usize,
}

/// Judges some launches by the skimmed texts and by the whole ones.
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
        let whole = Policy::of_layers(layers(text), caller_is_root);
        for_launches_of(&words, first.iter().copied(), |request| {
            let command = Invocation::new(request.typed, request.path, request.canonical);
            let Some(skimmed) = Policy::skimmed(layers(text), caller_is_root, &command) else {
                tally.whole += 1;
                tally.plain += usize::from(whole.is_ok());
                return;
            };
            let whole = whole.as_ref().unwrap_or_else(|faults| panic!("skimming misses\n{faults}\n{text}"));
            assert_eq!(told(whole, request), told(&skimmed, request), "{:?} in\n{text}", request.typed);
            tally.skimmed += 1;
            tally.omitted += whole.rules().len() - skimmed.rules().len();
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

fn add(claim: &Claim<'_>, said: &mut String) {
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
    } = claim;
    let _ = writeln!(said, "{repository} {member:?} {location:?} {amount:?} {pace:?} {nested:?}");
    let _ = writeln!(said, "{limit_of:?} {kept:?} {reserved:?} {names:?} {out_of_order} {wait:?} {queue:?}");
    for origin in origins {
        let place = origin.place.map(ToString::to_string);
        let _ = writeln!(said, "{} {place:?} {:?}", origin.rule, origin.message);
    }
}
