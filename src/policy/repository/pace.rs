//! Too soon and too late: when a repository may be used again, and how long its slots may be held.

use crate::{
    judge::terms::{ElapsedFrom, ExpireKill, Expiry, Hold, Keyword, Pace, Pause, TooSoon, show_duration},
    policy::{
        Aliases, At, Key, Section, Shape, Table, Written, fault::Fault, key::key, toml_text::string,
        warning::Warning,
    },
};

pub(in crate::policy) const KEYS: &[Key] = &[
    key(
        "if_elapsed",
        Shape::Duration,
        "Do not start again within this time.",
        "Jobs of cron and of monitoring that start too often.",
    ),
    key(
        "if_elapsed_from",
        Shape::OneOf(ElapsedFrom::words),
        "Whether `if_elapsed` counts from the start or from the end.",
        "Jobs that run longer than their pause.",
    ),
    key(
        "too_soon",
        Shape::OneOf(TooSoon::words),
        "Whether a start that comes too soon is refused or silently skipped.",
        "cron, which mails every failure.",
    ),
    key(
        "expire_after",
        Shape::Duration,
        "End a holder older than this when its slot is wanted.",
        "Jobs that hang.",
    ),
    key(
        "expire_grace",
        Shape::Duration,
        "Time between two signals to an overdue holder.",
        "Programs that need minutes to write their data.",
    ),
    key(
        "expire_kill",
        Shape::OneOf(ExpireKill::words),
        "Whether to end the process or its process group.",
        "Shell scripts whose children do the work.",
    ),
];

/// Reads the keys of a repository. Rules and the command line may name a weaker hold than the repository's,
/// but the strongest counts.
pub(in crate::policy) fn read(section: &Section<'_>, hold: Option<Hold>, aliases: &Aliases<'_>) -> Pace {
    let if_elapsed = section.duration("if_elapsed");
    let if_elapsed_from: Option<Written<ElapsedFrom>> = section.choice("if_elapsed_from");
    let too_soon: Option<Written<TooSoon>> = section.choice("too_soon");
    let expire_after = section.duration("expire_after");
    let expire_grace = section.duration("expire_grace");
    let expire_kill: Option<Written<ExpireKill>> = section.choice("expire_kill");
    let needs = |at: Option<At>, there: bool, key, needs| {
        if let Some(at) = at.filter(|_| !there) {
            section.fault(at, Fault::NeedsKey { key, needs });
        }
    };
    needs(if_elapsed_from.map(|from| from.at), if_elapsed.is_some(), "if_elapsed_from", "\"if_elapsed\"");
    needs(too_soon.map(|too_soon| too_soon.at), if_elapsed.is_some(), "too_soon", "\"if_elapsed\"");
    needs(expire_grace.map(|grace| grace.at), expire_after.is_some(), "expire_grace", "\"expire_after\"");
    needs(expire_kill.map(|kill| kill.at), expire_after.is_some(), "expire_kill", "\"expire_after\"");
    if let Some(Written { value: ElapsedFrom::End, at }) = if_elapsed_from
        && hold.is_none_or(|hold| hold < Hold::Supervisor)
    {
        section.fault(at, Fault::EndNeedsSupervisor);
    }
    if let (Some(elapsed), Some(expire)) = (if_elapsed, expire_after)
        && expire.value <= elapsed.value
    {
        aliases.warn(expire.at, || Warning::ExpireNotAboveElapsed);
    }
    Pace {
        pause: if_elapsed.map(|length| Pause {
            length: length.value,
            from: if_elapsed_from.map(|from| from.value).unwrap_or_default(),
            too_soon: too_soon.map(|too_soon| too_soon.value).unwrap_or_default(),
        }),
        expiry: expire_after.map(|after| Expiry {
            after: after.value,
            grace: expire_grace.map_or(Expiry::GRACE, |grace| grace.value),
            kill: expire_kill.map(|kill| kill.value).unwrap_or_default(),
        }),
    }
}

/// The settings that differ from the default.
pub(in crate::policy) fn print(pace: &Pace, text: &mut Table) {
    let Pace { pause, expiry } = *pace;
    let duration = |duration| string(&show_duration(duration));
    if let Some(Pause { length, from, too_soon }) = pause {
        text.set("if_elapsed", duration(length));
        text.set_some("if_elapsed_from", from.unless_default().map(string));
        text.set_some("too_soon", too_soon.unless_default().map(string));
    }
    if let Some(Expiry { after, grace, kill }) = expiry {
        text.set("expire_after", duration(after));
        text.set_some("expire_grace", (grace != Expiry::GRACE).then(|| duration(grace)));
        text.set_some("expire_kill", kill.unless_default().map(string));
    }
}
