//! The part of a refusal or prediction about waiting: how long, how long at most, and why not.

use std::ffi::OsStr;

use crate::{
    acquire::{
        refusal::{Alternative, Reason, Refusal, Refused, Unmet},
        unwaited::Unwaited,
    },
    judge::terms::{
        claim::{Claim, LAST_SLOT},
        keyword::Queue,
    },
    policy::{Wait, show_duration},
    sys::credentials::own_uid,
    text::escape::visible,
};

/// Why the launch does not wait for a full claim, after its numbers. Without a requested wait no reason is
/// needed.
pub(crate) fn not_waited_for(refused: &Refused<'_>) -> Option<String> {
    Some(match refused.unwaited? {
        Unwaited::Never if refused.claim.wait.is_forbidden() => ", never waited for".to_owned(),
        Unwaited::Never => return None,
        Unwaited::Over(_) => {
            let wait = refused.claim.wait;
            let longest = wait.bound.filter(|longest| *longest == wait.resolve())?;
            format!(", waited for no longer than {longest}")
        }
        Unwaited::Queue { waiting, most } => format!(", and {waiting} of {most} wait"),
        Unwaited::OwnQueue { waiting, most } => format!(", and {waiting} of {most} of yours wait"),
    })
}

/// Why there can never be enough slots for a claim.
pub(crate) fn never(claim: &Claim<'_>) -> String {
    if let Some(unclear) = &claim.unclear {
        return unclear.why.to_string();
    }
    let slots = if claim.amount.wanted() == 1 { "slot" } else { "slots" };
    format!("{} {slots} wanted of {}", wanted(claim), claim.amount.effective_limit())
}

/// How many slots are wanted; a number that no limit reaches is not repeated.
pub(crate) fn wanted(claim: &Claim<'_>) -> String {
    match claim.amount.wanted() {
        _ if claim.unclear.is_some() => "?".to_owned(),
        wanted if wanted > LAST_SLOT => format!("more than {LAST_SLOT}"),
        wanted => wanted.to_string(),
    }
}

/// The message to a caller whose wait the policy shortens, claim by claim.
pub(crate) fn cut(command: &OsStr, claim: &Claim<'_>, asked: Option<Wait>) -> Option<String> {
    let (longest, asked) = (claim.wait.cut(asked)?, asked?);
    let (command, name) = (visible(command), visible(claim.repository.as_ref()));
    Some(format!(
        "rungate: {command}: waits for {name} no longer than {longest}, not {asked}: repository {name} has max_wait = \"{longest}\""
    ))
}

/// Whether its queue is full, for all or for the user, also for a launch that does not wait.
pub(crate) fn is_at_the_end(refused: &Refused<'_>) -> bool {
    let Queue { most, per_user } = refused.claim.queue;
    let reached = |most: Option<u32>, waiting: &dyn Fn() -> usize| {
        most.is_some_and(|most| waiting() >= usize::try_from(most).unwrap_or(usize::MAX))
    };
    match (&refused.reason, refused.unwaited) {
        (_, Some(Unwaited::Queue { .. } | Unwaited::OwnQueue { .. })) => true,
        (Reason::Full(full), Some(Unwaited::Never)) => {
            reached(most, &|| full.waiting()) || reached(per_user, &|| full.waiting_of(own_uid()))
        }
        _ => false,
    }
}

/// The longest possible wait of the launch; none if it may not wait.
pub(crate) fn longest_wait(refusal: &Refusal<'_>) -> Option<Wait> {
    wait_by(refusal, &|refused| refused.claim.wait.bound.unwrap_or(Wait::Forever))
}

/// Whether a launch that has waited could have requested a longer wait.
pub(crate) fn could_wait_longer(refusal: &Refusal<'_>) -> bool {
    longest_wait(refusal) > wait_by(refusal, &|refused| refused.claim.wait.resolve())
}

fn wait_by(refusal: &Refusal<'_>, of_claim: &dyn Fn(&Refused<'_>) -> Wait) -> Option<Wait> {
    let of_alternative = |alternative: &Alternative<'_>| {
        let is_in_vain = |refused: &Refused<'_>| refused.is_final() || is_at_the_end(refused);
        if alternative.refused.iter().any(is_in_vain) {
            return Some(Wait::NONE);
        }
        alternative.refused.iter().map(of_claim).min()
    };
    let of_demand = |unmet: &Unmet<'_>| unmet.alternatives.iter().filter_map(of_alternative).max();
    refusal.unmet.iter().filter_map(of_demand).min().filter(|wait| *wait != Wait::NONE)
}

/// How a launch that is refused as full would wait, in words.
pub(crate) fn foretold(refusal: &Refusal<'_>) -> String {
    if let Some(wait) = refusal.wait() {
        return at_most(wait);
    }
    let unwaited = refusal.unmet.iter().find(|unmet| unmet.is_unwaited() && !unmet.is_final());
    let why = unwaited.into_iter().flat_map(Unmet::claims).find_map(|refused| {
        let name = visible(refused.claim.repository.as_ref());
        match refused.unwaited? {
            Unwaited::Never => refused.claim.wait.is_forbidden().then(|| format!("{name} allows no wait")),
            Unwaited::Over(_) => None,
            Unwaited::Queue { waiting, most } => Some(format!("{waiting} of {most} wait for {name}")),
            Unwaited::OwnQueue { waiting, most } => {
                Some(format!("{waiting} of {most} of yours wait for {name}"))
            }
        }
    });
    why.map_or_else(|| "none".to_owned(), |why| format!("none: {why}"))
}

/// `; with -w up to 2h`, if the policy allows a longer wait than it gives, and names the longest.
pub(crate) fn with_option(refusal: &Refusal<'_>) -> String {
    match longest_wait(refusal) {
        Some(longest @ Wait::For(_)) if could_wait_longer(refusal) => {
            format!("; with -w {}", at_most(longest))
        }
        _ => String::new(),
    }
}

/// `none`, `up to 2h`, `until it is its turn`.
pub(crate) fn at_most(wait: Wait) -> String {
    match wait {
        Wait::NONE => "none".to_owned(),
        Wait::For(longest) => format!("up to {}", show_duration(longest)),
        Wait::Forever => "until it is its turn".to_owned(),
    }
}

/// `neither drc + lvs (lvs 3 of 3) nor bundle (2 of 2)`, if claims belong together; none if each alternative
/// is one claim.
pub(crate) fn neither(unmet: &Unmet<'_>) -> Option<String> {
    if unmet.alternatives.iter().all(|alternative| alternative.claims.len() == 1) {
        return None;
    }
    let shown: Vec<String> = unmet.alternatives.iter().map(alternative).collect();
    let (last, others) = shown.split_last()?;
    Some(format!("neither {} nor {last}", others.join(", ")))
}

fn alternative(alternative: &Alternative<'_>) -> String {
    let names = alternative.claims.iter().map(|claim| visible(claim.repository.as_ref()));
    let names = names.collect::<Vec<_>>().join(" + ");
    let is_alone = alternative.claims.len() == 1;
    let why = alternative.refused.iter().map(|refused| {
        let limit = refused.claim.amount.effective_limit();
        let numbers = match &refused.reason {
            Reason::Full(full) => format!("{} of {limit}", full.used()),
            Reason::Never => format!("{} wanted of {limit}", wanted(refused.claim)),
            Reason::TooSoon { .. } => "too soon".to_owned(),
        };
        let name = visible(refused.claim.repository.as_ref());
        if is_alone { numbers } else { format!("{name} {numbers}") }
    });
    format!("{names} ({})", why.collect::<Vec<_>>().join(", "))
}
