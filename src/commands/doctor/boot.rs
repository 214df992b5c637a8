//! What is gone after the next boot, and what makes it again: `/run` is empty then, and a directory that
//! nothing makes is one in which nobody can be counted.

use std::path::{Path, PathBuf};

use crate::{
    cli::Topic,
    commands::doctor::{
        examination::Examination,
        file_system,
        finding::{Finding, Health},
        jobs,
        page::counted,
        repositories::{self, INIT},
        section::Section,
        services,
        tmpfiles::{self, Line},
    },
    escape::Show,
    policy::Policy,
    sys::mount::Mount,
    terms::keeper::Keeper,
};

/// Lines of the administrator's own are theirs to take out.
const OF_LINE: &str = "Take the line out, then: rungate init --repositories";

/// What a boot takes away.
#[derive(Default)]
struct Gone {
    directories: Vec<PathBuf>,
    /// Lock files, each with the mode that its users need.
    files: Vec<(PathBuf, u32)>,
}

pub(super) fn look(examination: &Examination) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Boot);
    };
    let gone = Gone::of(policy, examination);
    if gone.directories.is_empty() {
        return Section::new(Topic::Boot, "nothing to make again: no lock file is gone then", Vec::new());
    }
    let directories: Vec<String> = gone.directories.iter().map(|path| path.shown().to_string()).collect();
    let files = match gone.files.len() {
        0 => String::new(),
        count => format!(" and {}", counted(count, "lock file")),
    };
    let summary = format!("to be made again: {}{files}", directories.join(", "));
    Section::new(Topic::Boot, summary, gone.findings())
}

impl Gone {
    fn of(policy: &Policy, examination: &Examination) -> Self {
        let runtime = &examination.situation.runtime;
        let mut gone = Self::default();
        for known in policy.repositories().iter().filter(|known| known.keeper() == Keeper::File) {
            let (base, layer) = (known.base(runtime), &policy.layers()[known.layer]);
            if !layer.is_of_system() || !Mount::is_gone_at_boot(&base) || base.starts_with(runtime) {
                continue;
            }
            let file = known.fixed_path(runtime).filter(|path| Mount::is_gone_at_boot(path));
            gone.files.extend(file.map(|path| (path, layer.create_mode())));
            gone.directories.push(base);
        }
        gone.files.sort();
        gone.files.dedup();
        gone.directories.sort();
        gone.directories.dedup();
        gone
    }

    fn findings(&self) -> Vec<Finding> {
        if let Some(job) = jobs::saying(INIT) {
            return vec![Finding::fine("boot", format!("{}: {INIT}", job.shown()))];
        }
        if !services::is_systemd() && file_system::is_container() {
            let text =
                "this container has no boot of its own: what starts it makes them, or lends the host's";
            return vec![Finding::note("boot-container", text).mend(format!("As its first command: {INIT}"))];
        }
        if !services::is_systemd() && !tmpfiles::are_read() {
            let text = "nothing here reads tmpfiles.d(5) at boot: launches that need them are refused (74) from then on";
            return vec![Finding::warning("boot-unread", text).mend(format!("As root at each boot: {INIT}"))];
        }
        let lines = tmpfiles::lines();
        let directories = self.directories.iter().filter_map(|path| of_directory(path, &lines));
        let mut findings: Vec<Finding> = directories.chain(self.of_files(&lines)).collect();
        if findings.is_empty() {
            findings.push(Finding::fine("boot", "lines of tmpfiles.d(5) make all of it"));
        }
        findings
    }

    /// Lock files that are not made, or made so that users cannot open them.
    fn of_files(&self, lines: &[Line]) -> Vec<Finding> {
        let unmade: Vec<&Path> = self
            .files
            .iter()
            .map(|(path, _)| path.as_path())
            .filter(|path| line_for(path, lines).is_none())
            .collect();
        let wrong = self.files.iter().filter_map(|(path, mode)| of_file(path, *mode, line_for(path, lines)?));
        unmade_files(&unmade).into_iter().chain(wrong).collect()
    }
}

fn line_for<'a>(path: &Path, lines: &'a [Line]) -> Option<&'a Line> {
    lines.iter().find(|line| line.path == path)
}

/// What users could not do in a directory with this mode, or could do with the lock files of others.
fn wrong_mode(mode: u32) -> Option<(Health, &'static str)> {
    if mode & 0o001 == 0 {
        Some((Health::Fault, "users cannot reach the lock files in it"))
    } else if repositories::lets_others_remove(mode) {
        Some((Health::Fault, repositories::OTHERS_REMOVE))
    } else if mode & 0o002 == 0 {
        Some((Health::Note, "users cannot create lock files in it, so that each has to be made beforehand"))
    } else {
        None
    }
}

fn of_directory(path: &Path, lines: &[Line]) -> Option<Finding> {
    let shown = path.shown();
    let Some(line) = line_for(path, lines) else {
        let text = format!(
            "nothing makes {shown} again: launches that need it are refused (74) after the next boot"
        );
        return Some(Finding::warning("boot-directory", text).mend(INIT));
    };
    let mode = line.mode?;
    let (health, what) = match wrong_mode(mode) {
        Some((health, what)) => (health, format!("with mode {mode:04o}: {what}")),
        None if line.is_roots() => return None,
        None => (Health::Warning, format!("{}'s, who can remove every lock file in it", line.owner.shown())),
    };
    let text = format!("{} makes {shown} {what}", line.place);
    Some(
        Finding { health: health.min(Health::Warning), ..Finding::fine("boot-directory", text) }
            .mend(OF_LINE),
    )
}

fn unmade_files(files: &[&Path]) -> Option<Finding> {
    let first = files.first()?.shown();
    let text = match files.len() {
        1 => format!(
            "nothing makes {first} again: after the next boot whoever is first will own it, and can remove it"
        ),
        count => format!(
            "nothing makes {count} lock files again ({first} is the first of them): after the next boot whoever comes \
             first will own them, and can remove them"
        ),
    };
    Some(Finding::warning("boot-lock-file", text).mend(INIT))
}

fn of_file(path: &Path, needed: u32, line: &Line) -> Option<Finding> {
    let mode = line.mode?;
    let what = if mode & needed != needed {
        format!("with mode {mode:04o}; the policy wants {needed:04o}")
    } else if line.is_roots() {
        return None;
    } else {
        format!("{}'s, who can remove it, and with it the count", line.owner.shown())
    };
    let text = format!("{} makes {} {what}", line.place, path.shown());
    Some(Finding::warning("boot-lock-file", text).mend(OF_LINE))
}

impl Line {
    fn is_roots(&self) -> bool {
        self.owner == "root" || self.owner == "0"
    }
}
