//! What is set on this host for those who come without a shell of their own, and for shells before their
//! startup files: read where login, PAM, cron, sudo, the desktop and systemd read it.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::Path,
    process::{Command, Stdio},
};

use super::{
    Way,
    question::{QUESTION, answer, prepared},
};
use crate::sys::credentials;

/// What Debian's login gives to users.
const LOGIN: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games";

/// What Debian's sshd gives to users.
const SSH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/games";

/// What cron gives to its jobs.
const CRON: &str = "/usr/bin:/bin";

/// What systemd gives to its services.
const SYSTEMD: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";

const GENERATOR: &str = "/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator";

/// How the shell that begins a session on X reads what packages have for it; of these, only what is about
/// shims.
const SNIPPETS: &str = r#"for part in /etc/X11/Xsession.d/*rungate*; do [ ! -r "$part" ] || . "$part"; done"#;

/// Whether this host has such a way.
pub(super) fn is_there(way: Way) -> bool {
    let places: &[&str] = match way {
        Way::Login(_) | Way::Ssh(_) => return true,
        Way::Su => &["/bin/su"],
        Way::Cron => &["/usr/sbin/cron", "/usr/sbin/crond"],
        Way::Sudo => &["/usr/bin/sudo"],
        Way::Desktop => &["/etc/X11/Xsession", "/usr/share/xsessions", "/usr/share/wayland-sessions"],
        Way::UserUnit => &[GENERATOR],
        Way::Service => &["/run/systemd/system"],
    };
    places.iter().any(|place| Path::new(place).exists())
}

/// The `PATH` on a way that leads through no shell.
pub(super) fn path(way: Way) -> Option<OsString> {
    match way {
        Way::Login(_) | Way::Ssh(_) => None,
        // su keeps what its caller has.
        Way::Su => of_pam().or_else(|| env::var_os("PATH")),
        Way::Cron => Some(cron_path()),
        Way::Sudo => sudo_path(),
        Way::Desktop => desktop_path(),
        Way::UserUnit => user_unit_path(),
        Way::Service => Some(said("systemctl", &["show-environment"], b"PATH=").unwrap_or(SYSTEMD.into())),
    }
}

/// What a shell finds that somebody logs in to.
pub(super) fn login_path() -> OsString {
    let set = of_pam().or_else(|| in_file("/etc/login.defs", "ENV_PATH"));
    set.unwrap_or_else(|| LOGIN.into())
}

/// What a shell finds that sshd starts.
pub(super) fn ssh_path() -> OsString {
    of_pam().unwrap_or_else(|| SSH.into())
}

/// What PAM gives to whoever comes in.
fn of_pam() -> Option<OsString> {
    in_file("/etc/environment", "PATH")
}

fn cron_path() -> OsString {
    let own = || said("crontab", &["-l"], b"PATH=").filter(|_| !credentials::is_root());
    let system = || in_file("/etc/crontab", "PATH").filter(|_| credentials::is_root());
    own().or_else(system).unwrap_or_else(|| CRON.into())
}

/// sudo tells it to root alone; whoever else asks has to give a password, or is reported.
fn sudo_path() -> Option<OsString> {
    let is_root = credentials::is_root();
    is_root.then(|| said("sudo", &["-V"], b"Value to override user's $PATH with: "))?
}

/// In a session it is there to be seen; outside of one, what the session will begin with.
fn desktop_path() -> Option<OsString> {
    let is_root = credentials::is_root();
    // Root has come to be root in the session of somebody else.
    if !is_root && ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some()) {
        return env::var_os("PATH");
    }
    let mut session = prepared(Path::new("/bin/sh"), &login_path());
    let path = answer(session.args(["-c", &format!("{SNIPPETS}; {QUESTION}")]))?;
    // This file may start whatever it likes, so it is only read.
    let own = env::var_os("HOME").map(|home| Path::new(&home).join(".xsessionrc"));
    let set = own.filter(|_| !is_root).and_then(|own| in_file(own, "PATH"));
    Some(set.map_or(path.clone(), |set| with_rest(&set, &path)))
}

/// A search path that was written with the one before in it.
fn with_rest(path: &OsStr, before: &OsStr) -> OsString {
    let entries = path.as_bytes().split(|byte| *byte == b':');
    let entries = entries.map(|entry| match entry {
        b"$PATH" | b"${PATH}" => before.as_bytes(),
        entry => entry,
    });
    OsString::from_vec(entries.collect::<Vec<_>>().join(&b':'))
}

/// What the user's own systemd has, or would have.
fn user_unit_path() -> Option<OsString> {
    let running = || said("systemctl", &["--user", "show-environment"], b"PATH=");
    let mut generator = prepared(Path::new(GENERATOR), OsStr::new(SYSTEMD));
    let generated = || line_after(&generator.output().ok()?.stdout, b"PATH=");
    (!credentials::is_root()).then(running).flatten().or_else(generated).or_else(|| Some(SYSTEMD.into()))
}

/// What a program of the system prints after these words on a line.
fn said(program: &str, words: &[&str], before: &[u8]) -> Option<OsString> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output();
    line_after(&output.ok()?.stdout, before)
}

/// The value of a variable in a file of the system: `PATH=a:b`, `PATH="a:b"` or `ENV_PATH PATH=a:b`. The last
/// one counts.
fn in_file(file: impl AsRef<Path>, name: &str) -> Option<OsString> {
    let text = fs::read(file).ok()?;
    let value = |line: &[u8]| {
        let line = line.trim_ascii();
        let rest = line.strip_prefix(b"export ").unwrap_or(line).strip_prefix(name.as_bytes())?;
        let rest = rest.trim_ascii_start();
        let rest = rest.strip_prefix(b"PATH").unwrap_or(rest).trim_ascii_start();
        Some(unquoted(rest.strip_prefix(b"=")?.trim_ascii()).to_owned())
    };
    text.split(|byte| *byte == b'\n').filter_map(value).next_back().map(OsString::from_vec)
}

fn line_after(text: &[u8], before: &[u8]) -> Option<OsString> {
    let found = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(before))?;
    Some(OsStr::from_bytes(unquoted(found)).to_owned())
}

fn unquoted(text: &[u8]) -> &[u8] {
    let between = |quote: &[u8; 1]| text.strip_prefix(quote)?.strip_suffix(quote);
    between(b"\"").or_else(|| between(b"'")).unwrap_or(text)
}
