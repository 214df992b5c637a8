//! A real terminal, with somebody who types: a shell in tmux(1).

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::deadline::eventually;
use super::site::Site;
use super::test::Test;

/// A terminal with an interactive shell, whose prompt is `$ `.
pub(crate) struct Terminal {
    tmux: Test,
}

impl Terminal {
    /// Opens one, 100 characters wide, in the environment of the site's commands.
    #[track_caller]
    pub(crate) fn open(site: &Site) -> Self {
        Self::open_for(site.test(), (100, 40))
    }

    /// Opens one for whoever would run this command, so many columns wide and so many rows high.
    #[track_caller]
    pub(crate) fn open_for(someone: Test, size: (usize, usize)) -> Self {
        static OPENED: AtomicUsize = AtomicUsize::new(0);
        let socket = format!("$DIR/work/terminal-{}", OPENED.fetch_add(1, Ordering::Relaxed));
        let tmux = someone
            .program("/usr/bin/tmux")
            .args(["-S", &socket, "-f", "/dev/null"])
            .env("PS1", "$ ")
            .env("LC_ALL", "C.UTF-8");
        let (columns, rows) = (size.0.to_string(), size.1.to_string());
        let session = tmux.clone().args(["new-session", "-d", "-x", &columns, "-y", &rows]);
        session.args(["bash", "--norc", "--noprofile", "-i"]).status(0);
        let terminal = Self { tmux };
        terminal.shows("$");
        terminal
    }

    /// Types a line and ends it.
    #[track_caller]
    pub(crate) fn enter(&self, line: &str) {
        self.type_text(line);
        self.press("Enter");
    }

    /// Gives the shell a command, once it reads: what is typed before, the terminal throws away.
    #[track_caller]
    pub(crate) fn command(&self, line: &str) {
        self.shell_reads();
        self.type_text(line);
        // Else the prompt that exists now could be taken for the one that comes after the command.
        self.shows_when("the shell has the line", |screen| !screen.trim_end().ends_with('$'));
        self.press("Enter");
    }

    /// Presses Ctrl-C and waits until the shell reads again.
    #[track_caller]
    pub(crate) fn interrupt(&self) {
        self.press("C-c");
        self.shell_reads();
    }

    /// Waits for the prompt, and then until the shell edits its line itself, which it tells the terminal.
    #[track_caller]
    pub(crate) fn shell_reads(&self) {
        self.shows_when("the prompt", |screen| screen.trim_end().ends_with('$'));
        let name = self.tmux.clone().args(["display-message", "-p", "#{pane_tty}"]).outcome().stdout;
        eventually("the shell reads", || {
            let modes =
                Command::new("stty").args(["-a", "-F", name.trim_end()]).output().expect("stty starts");
            String::from_utf8_lossy(&modes.stdout).contains(" -icanon").then_some(())
        });
    }

    /// Presses a key, by its name in tmux(1): `C-c`, `Enter`.
    #[track_caller]
    pub(crate) fn press(&self, key: &str) {
        self.tmux.clone().args(["send-keys", key]).status(0);
    }

    /// Makes it another size.
    #[track_caller]
    pub(crate) fn resize(&self, columns: usize, rows: usize) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux.clone().args(["resize-window", "-x", &columns, "-y", &rows]).status(0);
    }

    /// Types text and does not end the line.
    #[track_caller]
    pub(crate) fn type_text(&self, text: &str) {
        self.tmux.clone().args(["send-keys", "-l", text]).status(0);
    }

    /// What is on the screen, with the control sequences that make it look so.
    #[track_caller]
    pub(crate) fn painted_screen(&self) -> String {
        self.tmux.clone().args(["capture-pane", "-p", "-e"]).outcome().stdout
    }

    /// Types lines until a program that repeats what it reads has repeated one: what is typed while the shell
    /// still has the terminal never reaches it.
    #[track_caller]
    pub(crate) fn is_repeated(&self, word: &str) {
        let mut looks = 0;
        self.shows_when(&format!("a program repeats {word:?}"), |screen| {
            let tries = looks / 20;
            if looks % 20 == 0 {
                self.enter(&format!("{word}-{tries}"));
            }
            looks += 1;
            screen.contains(&format!("\n{word}-{tries}\n{word}-{tries}\n"))
        });
    }

    /// What is on the screen.
    #[track_caller]
    pub(crate) fn screen(&self) -> String {
        self.tmux.clone().args(["capture-pane", "-p"]).outcome().stdout
    }

    /// Returns when the screen shows this text.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) -> String {
        self.shows_when(&format!("the screen shows {text:?}"), |screen| screen.contains(text))
    }

    /// Returns when the screen is as it must be.
    #[track_caller]
    pub(crate) fn shows_when(&self, what: &str, mut is_right: impl FnMut(&str) -> bool) -> String {
        let mut last = String::new();
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(what, || {
                last = self.screen();
                is_right(&last).then(|| last.clone())
            })
        }));
        found.unwrap_or_else(|_| panic!("{what}:\n{last}"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux.clone().args(["kill-server"]).outcome();
    }
}
