//! The programs of rungate: whether every user can start them, and only their owner can change them.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    command_line::command,
    context::Context,
    finding::{Finding, Section},
    repositories::{Want, barrier},
};
use crate::{
    cli::Topic,
    launch::{installation::TOOLS, program::Search},
    sys::{accounts, executable, mount::Mount, ordinary_user::as_ordinary_user},
    text::escape::{Show, visible},
};

pub(super) fn look(examination: &Context) -> Section {
    let is_launcher = |path: &PathBuf| path.is_absolute() && path.file_name() != Some(OsStr::new(TOOLS));
    let Some(launcher) = executable::own_path().filter(is_launcher) else {
        let finding = Finding::warning("launcher-unknown", "the launcher, rungate, is not beside its tools")
            .mend("Install both programs again, from one package.");
        return Section::new(
            Topic::Installation,
            concat!("rungate ", env!("CARGO_PKG_VERSION")),
            vec![finding],
        );
    };
    let summary = format!("rungate {}, {}", env!("CARGO_PKG_VERSION"), launcher.shown());
    let mut findings = of_launcher(&launcher, examination.is_root());
    findings.extend(others_in_path());
    findings.extend(hidden_processes(examination.is_root()));
    findings.extend(untried());
    Section::new(Topic::Installation, summary, findings)
}

/// In some containers root cannot become another user.
fn untried() -> Option<Finding> {
    as_ordinary_user(|| ()).is_none().then(|| {
        let text = "root cannot become nobody here: what users can do with files was not tested";
        Finding::note("not-tried", text).mend("Ask a user to run: rungate doctor")
    })
}

fn of_launcher(launcher: &Path, is_root: bool) -> Vec<Finding> {
    let Ok(status) = fs::metadata(launcher) else { return Vec::new() };
    let shown = launcher.shown();
    let mut findings = Vec::new();
    if status.mode() & 0o6000 != 0 {
        let text = format!("{shown} is set-user-id or set-group-id, and refuses to run");
        findings.push(Finding::fault("launcher-set-id", text).mend(command("chmod ug-s", launcher)));
    }
    if status.mode() & 0o022 != 0 {
        let text = format!(
            "{shown} has mode {:04o}: others can replace what everybody starts",
            status.mode() & 0o7777
        );
        findings.push(Finding::warning("launcher-writable", text).mend(command("chmod go-w", launcher)));
    }
    if is_root && status.uid() != 0 {
        let text = format!(
            "{shown} belongs to {}, who can replace what everybody starts",
            accounts::shown(status.uid())
        );
        findings.push(Finding::note("launcher-owner", text).mend(command("chown root:root", launcher)));
    }
    if let Some(barrier) = barrier(launcher, Want::Execute).filter(|_| is_root) {
        let text = format!("{}: users cannot start rungate", barrier.text());
        findings.push(Finding::fault("launcher-closed", text).mend(barrier.mend()));
    }
    if findings.is_empty() {
        findings.push(Finding::fine("launcher", format!("{shown}: everybody can start it")));
    }
    findings
}

/// Another rungate that comes before this one in `PATH`, or after it.
fn others_in_path() -> Vec<Finding> {
    let search = Search::of_environment();
    let places = search.entries().iter().map(|entry| entry.join("rungate"));
    let others =
        places.filter(|path| executable::check(path).is_ok_and(|found| Some(found) != executable::own()));
    let others: Vec<PathBuf> = others.collect();
    others.iter().map(|other| other_in_path(other)).collect()
}

fn other_in_path(other: &Path) -> Finding {
    let text =
        format!("{} is a different rungate; two versions can read one policy differently", visible(other));
    Finding::warning("second-rungate", text).mend("Keep one of them: the package's, or that of /usr/local.")
}

/// With unseen holders, which a refusal cannot name.
fn hidden_processes(is_root: bool) -> Option<Finding> {
    let proc = Mount::of(Path::new("/proc/."))?;
    (!is_root && proc.options.iter().any(|option| hides(option))).then(|| {
        Finding::note(
            "hidden-processes",
            "/proc hides the processes of others (hidepid): holders are shown only by their records",
        )
        .mend("To see the holders that the kernel proves, run as root: rungate list")
    })
}

/// By its number, or as newer kernels have it, by its word.
fn hides(option: &str) -> bool {
    option.strip_prefix("hidepid=").is_some_and(|value| value != "0" && value != "off")
}

#[cfg(test)]
mod tests {
    use crate::tools::doctor::installation::*;

    #[test]
    fn each_kernel_has_its_words_for_what_is_hidden() {
        for option in ["hidepid=1", "hidepid=2", "hidepid=invisible", "hidepid=ptraceable"] {
            assert!(hides(option), "{option}");
        }
        for option in ["hidepid=0", "hidepid=off", "rw", "gid=0"] {
            assert!(!hides(option), "{option}");
        }
    }
}
