//! What rules do to each other: one that never counts because another always stands before it, or takes
//! everything back. Only `policy check` asks; a launch has no use for it.

use crate::policy::{
    keyword::Hold,
    layer::{Layer, LayerKind},
    place::At,
    repository::Repository,
    rule::{Acquisition, Action, Rule},
    warning::Warning,
};

/// Programs that close the descriptors they inherited, and with them the lock, when they start.
const CLOSERS: &[&str] = &["autossh", "mosh", "scp", "sftp", "ssh", "sudo"];

/// Programs that leave a process behind and end, and with them the lock.
const LEAVERS: &[&str] =
    &["daemonize", "dtach", "gpg-agent", "screen", "ssh-agent", "start-stop-daemon", "systemd-run", "tmux"];

/// What there is to say about each rule, with its index.
pub(super) fn advise(
    layers: &[Layer],
    rules: &[Rule],
    places: &[At],
    sequence: &[usize],
    repositories: &[Repository],
) -> Vec<(At, Warning)> {
    let mut advice = Vec::new();
    let mut weak: Vec<Weak<'_>> = Vec::new();
    for (position, &index) in sequence.iter().enumerate() {
        let rule = &rules[index];
        if !rule.enabled {
            continue;
        }
        if rule.except.iter().any(|except| except.cover(&rule.selectors)) {
            let because = "an exception matches whatever its selectors match".to_owned();
            advice.push((places[index], Warning::NeverMatches { because }));
            continue;
        }
        let always = |other: &&usize| {
            let other = &rules[**other];
            // What is delegated is for some only, whatever its selectors say.
            let is_for_all = layers[other.layer].kind != LayerKind::Delegated || other.layer == rule.layer;
            is_for_all && other.enabled && other.except.is_empty() && other.selectors.cover(&rule.selectors)
        };
        let before = &sequence[..position];
        let sibling = before
            .iter()
            .filter(|&&other| rule.family.is_some() && rules[other].family == rule.family)
            .find(always);
        if let Some(&other) = sibling {
            let by = rules[other].shown_name().to_owned();
            advice.push((places[index], Warning::Shadowed { by, first: places[other] }));
            continue;
        }
        if rule.action() == Action::Limit
            && let Some(&other) =
                sequence.iter().filter(|&&other| overrules(&rules[other], rule)).find(always)
        {
            let by = rules[other].shown_name().to_owned();
            advice.push((places[index], Warning::Overruled { by, first: places[other] }));
        }
        let of_rule = weak_holds(rule, repositories, layers);
        weak.extend(of_rule.map(|(command, ending)| Weak { index, command, ending }));
    }
    for ending in ["supervisor", "tree"] {
        advice.extend(of_weak_holds(rules, places, weak.iter().filter(|weak| weak.ending == ending), ending));
    }
    advice
}

/// A command of a rule that lets go of its slot while it still runs.
struct Weak<'r> {
    index: usize,
    command: &'r str,
    ending: &'static str,
}

/// All that the same key would mend, as one.
fn of_weak_holds<'w>(
    rules: &[Rule],
    places: &[At],
    weak: impl Iterator<Item = &'w Weak<'w>>,
    ending: &'static str,
) -> Option<(At, Warning)> {
    let weak: Vec<&Weak<'_>> = weak.collect();
    let first = weak.first()?.index;
    let (mut commands, mut names): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let add = |all: &mut Vec<String>, name: &str| {
        if !all.iter().any(|known| known == name) {
            all.push(name.to_owned());
        }
    };
    for weak in weak {
        add(&mut commands, weak.command);
        add(&mut names, rules[weak.index].shown_name());
    }
    Some((places[first], Warning::WeakHold { commands, rules: names, ending }))
}

/// Whether a rule takes back all that a limit wants, wherever both match.
fn overrules(other: &Rule, rule: &Rule) -> bool {
    let counts_alone = other.family.is_none() && other.layer >= rule.layer;
    match other.action() {
        Action::Exempt => counts_alone && other.from.is_none(),
        Action::Deny => counts_alone && other.enforce != Some(false),
        Action::Limit => false,
    }
}

/// The commands of a rule that let go of their slots while they still run, each with what would keep it.
fn weak_holds<'r>(
    rule: &'r Rule,
    repositories: &[Repository],
    layers: &[Layer],
) -> impl Iterator<Item = (&'r str, &'static str)> {
    let claimed =
        || rule.acquire.iter().flat_map(Acquisition::terms).map(|terms| &repositories[terms.repository]);
    let said = claimed().filter_map(|repository| repository.settings.hold).chain(rule.hold()).max();
    let hold = said.or(layers[rule.layer].hold).unwrap_or_default();
    let claims = claimed().next().is_some();
    rule.literal_commands().filter(move |_| claims).filter_map(move |name| {
        let ending = if CLOSERS.contains(&name) && hold < Hold::Supervisor {
            "supervisor"
        } else if LEAVERS.contains(&name) && hold < Hold::Tree {
            "tree"
        } else {
            return None;
        };
        Some((name, ending))
    })
}
