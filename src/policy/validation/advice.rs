//! What rules do to each other: one that never counts because another always stands before it, or takes everything
//! back. Only `policy check` asks; a launch has no use for it.

use crate::policy::{
    acquisition::Acquisition,
    hold::Hold,
    layer::Layer,
    place::At,
    repository::Repository,
    rule::{Action, Rule},
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
            other.enabled && other.except.is_empty() && other.selectors.cover(&rule.selectors)
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
        if let Some((command, ending)) = weak_hold(rule, repositories, layers) {
            advice.push((places[index], Warning::WeakHold { command, ending }));
        }
    }
    advice
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

/// A command of the rule that lets go of its slot while it still runs, and what would keep it.
fn weak_hold(rule: &Rule, repositories: &[Repository], layers: &[Layer]) -> Option<(String, &'static str)> {
    let claimed =
        || rule.acquire.iter().flat_map(Acquisition::terms).map(|terms| &repositories[terms.repository]);
    let said = claimed().filter_map(|repository| repository.hold).chain(rule.hold()).max();
    let hold = said.or(layers[rule.layer].hold).unwrap_or_default();
    claimed().next()?;
    let named = |known: &[&str]| rule.literal_commands().find(|name| known.contains(name)).map(str::to_owned);
    let closer = named(CLOSERS).filter(|_| hold < Hold::Supervisor);
    let leaver = || named(LEAVERS).filter(|_| hold < Hold::Tree);
    closer.map(|name| (name, "supervisor")).or_else(|| leaver().map(|name| (name, "tree")))
}
