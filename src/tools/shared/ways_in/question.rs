//! A question to a shell. What its startup files print besides the answer is passed over, and one that does
//! not answer in time is left alone.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{BufRead, BufReader},
    os::unix::{ffi::OsStringExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::sys::credentials;

/// How long a shell may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the line begins with that tells.
const MARK: &[u8] = b"rungate finds PATH=";

/// The question, as each of these shells understands it.
pub(super) const QUESTION: &str = r#"printf '\nrungate finds PATH=%s\n' "$PATH""#;

/// A user and a group who own nothing.
const NOBODY: u32 = 65_534;

/// A program that is to start as in a new session of the caller's; of root's, as in one of a user who has no
/// startup files.
pub(super) fn prepared(program: &Path, path: &OsStr) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", path).env("TERM", "dumb").stdin(Stdio::null()).stderr(Stdio::null());
    if credentials::is_root() {
        command.uid(NOBODY).gid(NOBODY).env("HOME", "/nonexistent").env("USER", "nobody");
    } else {
        let kept = ["HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "ZDOTDIR"];
        command.envs(kept.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    }
    command.current_dir("/");
    command
}

/// What a shell that is asked the question answers, if it does so in time.
pub(super) fn answer(shell: &mut Command) -> Option<OsString> {
    let mut child = shell.stdout(Stdio::piped()).spawn().ok()?;
    let output = child.stdout.take()?;
    let (tell, told) = mpsc::channel();
    // What the startup files left running may keep the pipe open for ever, so nobody waits for this thread.
    thread::spawn(move || {
        let mut lines = BufReader::new(output).split(b'\n').map_while(Result::ok);
        let marked = lines.find_map(|line| line.strip_prefix(MARK).map(<[u8]>::to_owned));
        let _ = tell.send(marked);
    });
    let marked = told.recv_timeout(PATIENCE).ok().flatten();
    end(&mut child);
    marked.map(OsString::from_vec)
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
