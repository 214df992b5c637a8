//! What makes a way look into a directory of shims first: a line, and the file that it goes to. Root is told
//! of the system's files, everybody else of their own, where they have one.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::{Way, shells::Shell};
use crate::text::escape::Show;

/// The rest of a search path, where a setting has to name all of it.
const USUAL: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the caller can do to have this directory looked into first.
pub(super) fn of(way: Way, shims: &Path, is_root: bool) -> String {
    let before = format!("PATH={}:$PATH", shims.shown());
    let whole = format!("PATH={}:{USUAL}", shims.shown());
    match way {
        Way::Login(shell) | Way::Ssh(shell @ (Shell::Zsh | Shell::Fish | Shell::Tcsh)) => {
            of_shell(shell, shims, is_root)
        }
        // Debian's ends early where nobody types.
        Way::Ssh(Shell::Bash) if !is_root => prepend(&before, "~/.bashrc"),
        Way::Ssh(Shell::Sh | Shell::Bash) | Way::Su => for_root(is_root, append(&whole, "/etc/environment")),
        Way::Desktop if is_root => append(&whole, "/etc/environment"),
        Way::Desktop => append(&before, "~/.xsessionrc"),
        Way::UserUnit if is_root => append(&before, "/etc/environment.d/99-rungate.conf"),
        Way::UserUnit => append(&before, "~/.config/environment.d/99-rungate.conf"),
        Way::Service => format!("in the unit: ExecStart={}/NAME", shims.shown()),
        Way::Cron if is_root => format!("on top of each crontab: {whole}"),
        Way::Cron => format!("crontab -e, and on top: {whole}"),
        Way::Sudo => {
            let line = format!("Defaults secure_path=\"{}:{USUAL}\"", shims.shown());
            let file = "/etc/sudoers.d/rungate";
            for_root(is_root, format!("{} && chmod 0440 {file}", append(&line, file)))
        }
    }
}

/// What each shell reads whenever it starts, or as sh and bash do, when somebody logs in.
fn of_shell(shell: Shell, shims: &Path, is_root: bool) -> String {
    let shims = shims.shown();
    let (line, system, own) = match shell {
        Shell::Sh => (format!("PATH={shims}:$PATH"), "/etc/profile", "~/.profile"),
        Shell::Bash => (
            format!("PATH={shims}:$PATH"),
            "/etc/profile",
            first(&["~/.bash_profile", "~/.bash_login"], "~/.profile"),
        ),
        Shell::Zsh => (
            format!("path=({shims} ${{path:#{shims}}})"),
            if Path::new("/etc/zsh").is_dir() { "/etc/zsh/zshenv" } else { "/etc/zshenv" },
            "~/.zshenv",
        ),
        Shell::Fish => (
            format!("set -gxp PATH {shims}"),
            "/etc/fish/conf.d/rungate.fish",
            "~/.config/fish/conf.d/rungate.fish",
        ),
        Shell::Tcsh => {
            (format!("set path = ({shims} $path:q)"), "/etc/csh.cshrc", first(&["~/.tcshrc"], "~/.cshrc"))
        }
    };
    append(&line, if is_root { system } else { own })
}

/// The file that a shell reads of several: the first that is there.
fn first(files: &[&'static str], otherwise: &'static str) -> &'static str {
    let home = env::var_os("HOME").map(PathBuf::from);
    let is_there = |file: &&&str| {
        let name = file.trim_start_matches("~/");
        home.as_ref().is_some_and(|home| home.join(name).exists())
    };
    files.iter().find(is_there).copied().unwrap_or(otherwise)
}

fn prepend(line: &str, file: &str) -> String {
    format!("{{ echo '{line}'; cat {file} 2>/dev/null; }} >{file}.new; mv {file}.new {file}")
}

fn append(line: &str, file: &str) -> String {
    // Directories that nothing else need have made.
    let directory = ["environment.d", "conf.d"].iter().find_map(|part| {
        let (directory, _) = file.rsplit_once('/')?;
        directory.ends_with(part).then(|| format!("mkdir -p {directory} && "))
    });
    format!("{}echo '{line}' >>{file}", directory.unwrap_or_default())
}

fn for_root(is_root: bool, remedy: String) -> String {
    if is_root { remedy } else { format!("as root: {remedy}") }
}
