//! `rungate status --watch`: use, holders and waiting lines, looked at once a second until somebody presses
//! q. It takes no slot. What it draws is made of a snapshot of all repositories and of a view, which is what
//! the user has chosen.

mod bar;
mod details;
mod drawing;
mod observer;
mod processes;
mod repositories;
mod snapshot;
mod view;

use std::{
    io,
    time::{Duration, Instant},
};

use self::{
    bar::Glyphs,
    observer::Observer,
    view::{Action, View},
};
use super::screen::{Event, Events, Screen};
use crate::launch::situation::Situation;
use crate::{
    cli::ListingArguments,
    sys::{
        child,
        failure::errno_of,
        signals::{self, Signal},
    },
    text::{error::Error, exit_status::ExitStatus, style},
};

/// From one look to the next.
const INTERVAL: Duration = Duration::from_secs(1);

/// Shows the repositories that were asked for, until it is told to end.
pub(crate) fn run(arguments: &ListingArguments, situation: Situation) -> Result<u8, Error> {
    if !Screen::is_possible() {
        let text = "status --watch needs a terminal on standard input and standard output";
        return Err(Error::new(ExitStatus::Usage, text)
            .advise("For scripts: rungate status --json. For one look: rungate status".to_owned()));
    }
    let mut observer = Observer::new(situation, arguments)?;
    let shown = show(&mut observer).map_err(|error| {
        let why = errno_of(&error).desc();
        Error::new(ExitStatus::System, format!("the terminal cannot be used: {why}"))
    })?;
    Ok(match shown {
        End::Asked => ExitStatus::Success as u8,
        // Whoever sent it shall see that it was obeyed.
        End::Signal(signal) => child::die_of(signal as i32),
    })
}

enum End {
    /// By a key.
    Asked,
    Signal(Signal),
}

fn show(observer: &mut Observer) -> io::Result<End> {
    let events = Events::begin()?;
    let glyphs = Glyphs::of_locale();
    let mut view = View::default();
    let mut snapshot = observer.snapshot();
    let mut looked = Instant::now();
    let mut screen = Screen::enter(style::is_on())?;
    loop {
        screen.draw(|frame| drawing::draw(frame, &snapshot, &mut view, glyphs))?;
        match events.next(looked + INTERVAL) {
            Event::Key(key) => match view.press(key) {
                Action::None => {}
                Action::Quit => return Ok(End::Asked),
                Action::Redraw => screen.clear()?,
                Action::Stop => stop(&mut screen)?,
            },
            Event::Signal(Signal::SIGTSTP) => stop(&mut screen)?,
            // Whoever had the terminal meanwhile may have changed it.
            Event::Signal(Signal::SIGCONT) => screen.take_again()?,
            Event::Signal(Signal::SIGWINCH) => screen.clear()?,
            Event::Signal(signal) => return Ok(End::Signal(signal)),
            Event::Time => {}
            Event::Closed => return Ok(End::Asked),
        }
        if looked.elapsed() >= INTERVAL {
            snapshot = observer.snapshot();
            looked = Instant::now();
        }
    }
}

/// Stops as Ctrl-Z stops any program, and takes the terminal again when it is continued.
fn stop(screen: &mut Screen) -> io::Result<()> {
    screen.give_back();
    signals::stop_too(Signal::SIGTSTP as i32);
    match screen.take_again() {
        // Continued in the background, without a terminal of its own.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        taken => taken,
    }
}
