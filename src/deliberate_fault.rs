//! Faults on purpose, for the tests that show that whoever watches would see them. Only a build with the feature
//! `deliberate-faults` has any, and only where its environment asks for one; no release build can be made with it.

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
    /// A wait never runs out.
    NoDeadline,
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
            Self::NoDeadline => "no-deadline",
        }
    }
}
