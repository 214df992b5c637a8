//! Faults on purpose, for the tests that show that whoever watches would see them. Only a build with the
//! feature `deliberate-faults` has any, and only where its environment asks for one; no release build can be
//! made with it.

#[cfg(all(feature = "deliberate-faults", not(debug_assertions)))]
compile_error!(
    "the feature deliberate-faults is for tests: a release build with it would not keep its promises"
);

/// The variable that says which.
const VARIABLE: &str = "RUNGATE_DELIBERATE_FAULT";

/// What goes wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DeliberateFault {
    /// Nobody takes the mutex of a file, and between a look and what comes of it there is time.
    NoMutex,
    /// One more than the limit is admitted.
    OneTooMany,
    /// A second descriptor of a lock file is closed, which drops the locks of the process.
    StrayDescriptor,
    /// A supervisor does not give its slots back.
    KeptSlot,
    /// A launch that does not wait does not see those who do.
    Overtaking,
    /// Limits that different policies gave are compared.
    OnePolicy,
    /// Nobody finds out who is silent.
    NoLooks,
    /// A lock that came with somebody else's descriptor proves a job.
    DonatedProof,
    /// Links that strangers made are followed.
    StrangersLinks,
    /// A wait never runs out.
    NoDeadline,
    /// Who loses the site does not end what has to be gone before others get its slots.
    NoMargin,
    /// What is taken of the site is not proved.
    NoProof,
    /// That nobody older stands in line is not proved, nor that there is room in it.
    NoLineProof,
    /// The mirror of the site is never told of changes.
    StaleMirror,
    /// The keys of the mirror are counted, and not compared.
    CountedMirror,
    /// What a host that is gone had is deleted, whosever it is by now.
    WhoeversSlot,
    /// A transaction of which nobody knows whether it was done is taken for one that was not.
    BlindRetry,
}

impl DeliberateFault {
    /// Whether it is wanted.
    pub(crate) fn is_on(self) -> bool {
        cfg!(feature = "deliberate-faults") && std::env::var(VARIABLE).is_ok_and(|name| name == self.name())
    }

    fn name(self) -> &'static str {
        match self {
            Self::NoMutex => "no-mutex",
            Self::OneTooMany => "one-too-many",
            Self::StrayDescriptor => "stray-descriptor",
            Self::KeptSlot => "kept-slot",
            Self::Overtaking => "overtaking",
            Self::OnePolicy => "one-policy",
            Self::NoLooks => "no-looks",
            Self::DonatedProof => "donated-proof",
            Self::StrangersLinks => "strangers-links",
            Self::NoDeadline => "no-deadline",
            Self::NoMargin => "no-margin",
            Self::NoProof => "no-proof",
            Self::NoLineProof => "no-line-proof",
            Self::StaleMirror => "stale-mirror",
            Self::CountedMirror => "counted-mirror",
            Self::WhoeversSlot => "whoevers-slot",
            Self::BlindRetry => "blind-retry",
        }
    }
}
