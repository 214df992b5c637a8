//! `[repository.NAME.outside]`: how the use by other programs is measured.

use std::time::Duration;

use crate::{
    judge::terms::{Counts, Keeper, Keyword, Of, WhenStale, show_duration},
    policy::{
        Keys, LayerKind, Placeholder, Section, Shape, Written,
        fault::Fault,
        key::key,
        toml_text::{inline_table, list, string},
    },
};

pub(in crate::policy) static OUTSIDE: Keys = Keys {
    what: "outside",
    groups: &[&[
        key(
            "command",
            Shape::Texts,
            "The program that measures, with its arguments: one line of JSON for each user and host.",
            "Every outside: rungate measure runs it.",
        )
        .required()
        .filled(),
        key(
            "counts",
            Shape::OneOf(Counts::words),
            "Whether the command counts our own programs too (\"all\") or only \"others\".",
            "Commands that see the programs of this host, and leave out those with a slot.",
        ),
        key(
            "of",
            Shape::OneOf(Of::words),
            "Whether the command answers for all hosts (\"site\") or only for its own (\"host\").",
            "GPUs and programs of this host: lines without a host are about it.",
        ),
        key(
            "every",
            Shape::Duration,
            "How often rungate measure runs it; default: \"15s\".",
            "Slow servers.",
        ),
        key(
            "stale_after",
            Shape::Duration,
            "The age at which a sample no longer counts; default: \"2m\", or four times every if that is longer.",
            "Commands that run seldom.",
        ),
        key(
            "when_stale",
            Shape::OneOf(WhenStale::words),
            "What happens to launches without a fresh sample: \"refuse\" or \"ignore\".",
            "Programs that must start even if nobody knows what else runs.",
        ),
        key(
            "settle",
            Shape::Duration,
            "How long a program may take to fetch its licence; default: \"30s\".",
            "Programs that check out their licence late.",
        ),
    ]],
    together: &[],
};

const EVERY: Duration = Duration::from_secs(15);
/// The default of `stale_after` if samples are taken often.
const STALE_AFTER: Duration = Duration::from_secs(120);
const SETTLE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Measuring {
    pub(crate) command: Vec<String>,
    pub(crate) counts: Counts,
    pub(crate) of: Of,
    pub(crate) every: Duration,
    pub(crate) stale_after: Duration,
    pub(crate) when_stale: WhenStale,
    pub(crate) settle: Duration,
}

/// The default of `stale_after`: some measurements can fail before no sample counts.
fn usual_stale_after(every: Duration) -> Duration {
    STALE_AFTER.max(every.saturating_mul(4))
}

fn value<T: Default>(written: Option<Written<T>>) -> T {
    written.map(|written| written.value).unwrap_or_default()
}

impl Measuring {
    /// Reads the key of a repository. `placeholders` are those of its path and of its groups.
    pub(in crate::policy) fn read<'p>(
        section: &Section<'_>,
        keeper: Keeper,
        layer: LayerKind,
        mut placeholders: impl Iterator<Item = &'p Placeholder>,
    ) -> Option<Self> {
        let outside = section.section("outside", &OUTSIDE)?;
        let command = outside.require("command")?.filled_texts("name the program")?;
        if let Some(program) = command.first().filter(|program| !program.value.starts_with('/')) {
            outside.fault(program.at, Fault::RelativePath { key: "command" });
        }
        if keeper == Keeper::Site {
            outside.fault(outside.at, Fault::Contradiction { key: "outside", other: "keeper = \"site\"" });
        }
        if layer == LayerKind::Delegated {
            outside.fault(outside.at, Fault::OutsideOfDelegation);
        }
        let is_measured = |placeholder: &Placeholder| {
            matches!(placeholder, Placeholder::User | Placeholder::Uid | Placeholder::Host)
        };
        if placeholders.any(|placeholder| !is_measured(placeholder)) {
            outside.fault(outside.at, Fault::OutsideOfWhom);
        }
        let duration = |key, otherwise| outside.duration(key).map_or(otherwise, |written| written.value);
        let (written, stale_after) = (outside.duration("every"), outside.duration("stale_after"));
        let every = written.as_ref().map_or(EVERY, |written| written.value).max(Duration::from_secs(1));
        // Between two samples, none would count. Without "every", a timer may run the command at other times.
        if let Some(short) = stale_after.as_ref().filter(|short| written.is_some() && short.value < every) {
            outside.fault(short.at, Fault::TooShort { key: "stale_after", least: every });
        }
        Some(Measuring {
            command: command.into_iter().map(|word| word.value.to_owned()).collect(),
            counts: value(outside.choice("counts")),
            of: value(outside.choice("of")),
            every,
            stale_after: stale_after.map_or(usual_stale_after(every), |written| written.value),
            when_stale: value(outside.choice("when_stale")),
            settle: duration("settle", SETTLE),
        })
    }

    /// As an inline table, without default values.
    pub(in crate::policy) fn printed(&self) -> String {
        let Self { command, counts, of, every, stale_after, when_stale, settle } = self;
        let mut keys = vec![("command", list(command.iter().map(|word| string(word))))];
        keys.extend(counts.unless_default().map(|word| ("counts", string(word))));
        keys.extend(of.unless_default().map(|word| ("of", string(word))));
        let usual = usual_stale_after(*every);
        for (name, duration, default) in
            [("every", every, EVERY), ("stale_after", stale_after, usual), ("settle", settle, SETTLE)]
        {
            if *duration != default {
                keys.push((name, string(&show_duration(*duration))));
            }
        }
        keys.extend(when_stale.unless_default().map(|word| ("when_stale", string(word))));
        inline_table(keys)
    }
}
