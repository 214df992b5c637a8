//! `rungate doctor`: checks this host, and names the command that fixes each fault. Each topic has a file
//! that returns findings; the page and the JSON only show them. It changes nothing and takes nothing.

mod boot;
mod experience;
mod finding;
mod installation;
mod log;
mod names;
mod policy;
mod repositories;
mod site;
mod ways;

use self::{
    finding::{Health, NO_POLICY, Section},
    repositories::{INIT, Want},
};

use clap::ValueEnum;

pub(super) use self::finding::{Context, Finding};
use crate::{
    cli::{DoctorArguments, Topic},
    launch::Situation,
    sys::terminal,
    text::{Error, ExitStatus, print},
};

/// No line is longer, however wide the terminal is.
const WIDEST: usize = 110;

/// Checks everything, or the requested topics, and reports what is wrong.
pub(super) fn run(arguments: &DoctorArguments, situation: Situation) -> Result<u8, Error> {
    let examination = Context::begin(situation);
    let wanted = |topic: &&Topic| arguments.topics.is_empty() || arguments.topics.contains(topic);
    let sections: Vec<Section> =
        Topic::value_variants().iter().filter(wanted).map(|topic| look(*topic, &examination)).collect();
    let text = if arguments.json {
        self::finding::to_json(&sections)
    } else {
        let columns = usize::from(terminal::size().0).min(WIDEST);
        self::finding::page(&sections, arguments.verbose, examination.is_root(), columns)
    };
    print(&text)?;
    let worst = sections.iter().map(Section::health).max().unwrap_or(Health::Fine);
    Ok(if worst == Health::Fault { ExitStatus::Failure } else { ExitStatus::Success } as u8)
}

/// The parts of the policy that do not work on this host, or will not last: for `policy check`.
pub(super) fn concerning_policy(examination: &Context) -> Vec<Finding> {
    let unreadable = if examination.is_root() { policy::unreadable(examination) } else { Vec::new() };
    let found = unreadable.into_iter().chain(repositories::missing(examination));
    let found = found.chain(repositories::on_nfs(examination));
    let found = found
        .chain(self::installation::all_missing(examination))
        .chain(self::installation::all_misspelt(examination))
        .chain(self::installation::all_linked(examination));
    let found = found.chain(log::unwritable(examination));
    found.filter(Finding::is_wrong).collect()
}

fn look(topic: Topic, examination: &Context) -> Section {
    match topic {
        Topic::Installation => installation::look(examination),
        Topic::Policy => policy::look(examination),
        Topic::Repositories => repositories::look(examination),
        Topic::Boot => boot::look(examination),
        Topic::Programs => self::installation::look_at_programs(examination),
        Topic::Shims => self::ways::look_at_shims(examination),
        Topic::Ways => ways::look(examination),
        Topic::Names => names::look(examination),
        Topic::Log => log::look(examination),
        Topic::Expiry => self::boot::look_at_expiry(examination),
        Topic::Agent => self::site::look_at_agent(examination),
        Topic::Site => site::look(examination),
    }
}
