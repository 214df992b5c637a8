//! Reads the policy when the agent starts and at each SIGHUP (`systemctl reload`), and logs what has changed.
//! This is a separate thread, because the disk may be slow. Launches do not depend on it: judges notice a
//! change of the files by themselves.

use std::{path::PathBuf, sync::Arc, thread};

use super::{Level, PolicyReader, Topic, load, log::log};
use crate::{
    judge::terms::Keeper,
    policy::{AgentFile, Difference, Policy},
    sys::{Failure, HangUps},
};

/// What the agent reads again.
pub(super) struct Reload {
    pub(super) policies: Arc<PolicyReader>,
    /// The settings in force.
    pub(super) settings: AgentFile,
    /// Their path, if it is not the default.
    pub(super) path: Option<PathBuf>,
}

impl Reload {
    /// Starts the thread. `hang_ups` were blocked before any other thread existed.
    pub(super) fn start(self, hang_ups: HangUps) -> Result<(), Failure> {
        let serve = move || {
            let mut last = None;
            loop {
                self.read(&mut last);
                if hang_ups.next().is_err() {
                    return;
                }
                self.check_settings();
            }
        };
        let thread = thread::Builder::new().name("reload".to_owned()).spawn(serve);
        thread.map(drop).map_err(Failure::of_io("clone"))
    }

    /// Reads the policy, and logs how it differs from the last one without faults.
    fn read(&self, last: &mut Option<Arc<Policy>>) {
        match self.policies.read() {
            Ok(policy) => {
                match &last {
                    None => log(Level::Info, Topic::Policy, &summary(&policy)),
                    Some(last) => log(Level::Notice, Topic::Policy, &change(last, &policy)),
                }
                for (_, faults) in policy.withheld() {
                    let text = "a delegated file has faults, and launches that it applies to are refused:";
                    log(Level::Error, Topic::Policy, &format!("{text}\n{}", faults.to_string().trim_end()));
                }
                *last = Some(policy);
            }
            Err(faults) => log(
                Level::Error,
                Topic::Policy,
                &format!(
                    "the policy has faults, and launches are refused until they are corrected. Programs keep \
                        their slots, and waiting launches their places.\n{faults}"
                ),
            ),
        }
    }

    /// Settings count from the start of the agent on.
    fn check_settings(&self) {
        match load(self.path.as_deref()) {
            Ok(settings) if settings == self.settings => {}
            Ok(_) => log(
                Level::Warning,
                Topic::Start,
                "the settings have changed, and the former ones are in force: systemctl restart rungate-agent",
            ),
            Err(fatal) => log(
                Level::Error,
                Topic::Start,
                &format!("the settings cannot be used, and the former ones are in force: {fatal}"),
            ),
        }
    }
}

/// What there is for the agent.
fn summary(policy: &Policy) -> String {
    let count = |keeper| policy.repositories().iter().filter(|known| known.keeper() == keeper).count();
    format!(
        "policy: files: {}, rules: {}, repositories with keeper = \"agent\": {}, with keeper = \"site\": {}",
        policy.files().count(),
        policy.rules().len(),
        count(Keeper::Agent),
        count(Keeper::Site)
    )
}

fn change(last: &Policy, policy: &Policy) -> String {
    let difference = Difference::between(last, policy);
    if difference.is_empty() {
        return "the policy was read again: nothing has changed".to_owned();
    }
    format!("the policy was read again:\n{}", difference.to_string().trim_end())
}
