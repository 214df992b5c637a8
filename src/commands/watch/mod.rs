//! `rungate status --watch`: use, holders and waiting lines, looked at once a second, until somebody presses q. It takes
//! nothing and starts nothing; what it draws is made of a picture, a moment of all repositories, and a view, what the one
//! who looks has chosen.

mod columns;
mod drawing;
mod observer;
mod picture;
mod view;

use std::time::{Duration, Instant};

use crate::{
    cli::ListingArguments,
    commands::{
        situation::Situation,
        watch::{
            observer::Observer,
            view::{View, Wish},
        },
    },
    error::Error,
    exit_status::ExitStatus,
    output::{bar::Glyphs, full_screen::FullScreen, key::keys},
    sys::{
        child,
        failure::{Errno, Failure},
        occasions::{Occasion, Occasions},
        signal::Signal,
        supervised_signals,
    },
};

/// From one look to the next.
const INTERVAL: Duration = Duration::from_secs(1);

/// Shows the repositories that were asked for, until it is told to end.
pub(super) fn watch(arguments: &ListingArguments) -> Result<u8, Error> {
    if !FullScreen::is_possible() {
        let text = "status --watch needs a terminal on standard input and standard output";
        return Err(Error::new(ExitStatus::Usage, text)
            .advise("For scripts: rungate status --json. For one look: rungate status".to_owned()));
    }
    let mut observer = Observer::new(Situation::of_this_process()?, arguments)?;
    let shown = show(&mut observer).map_err(|failure| {
        Error::new(ExitStatus::System, format!("the terminal cannot be used: {failure}"))
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
    /// By a signal.
    Signal(Signal),
}

fn show(observer: &mut Observer) -> Result<End, Failure> {
    let occasions = Occasions::begin().map_err(Failure::of("signalfd"))?;
    let glyphs = Glyphs::of_locale();
    let mut view = View::default();
    let mut picture = observer.look();
    let mut looked = Instant::now();
    let mut screen = FullScreen::enter()?;
    loop {
        screen.draw(&drawing::rows(&picture, &mut view, screen.size(), glyphs))?;
        match occasions.next(looked + INTERVAL).map_err(Failure::of("poll"))? {
            Occasion::Input(bytes) if bytes.is_empty() => return Ok(End::Asked),
            Occasion::Input(bytes) => {
                for key in keys(&bytes) {
                    match view.press(key) {
                        Wish::Nothing => {}
                        Wish::Quit => return Ok(End::Asked),
                        Wish::Redraw => screen.forget(),
                        Wish::Stop => stop(&mut screen)?,
                    }
                }
            }
            Occasion::Signal(Signal::SIGTSTP) => stop(&mut screen)?,
            // Whoever had the terminal meanwhile may have changed it.
            Occasion::Signal(Signal::SIGCONT) => screen.take_again()?,
            Occasion::Signal(Signal::SIGWINCH) => screen.forget(),
            Occasion::Signal(signal) => return Ok(End::Signal(signal)),
            Occasion::Time => {}
        }
        if looked.elapsed() >= INTERVAL {
            picture = observer.look();
            looked = Instant::now();
        }
    }
}

/// Stops as Ctrl-Z stops any program, and takes the terminal again when it is continued.
fn stop(screen: &mut FullScreen) -> Result<(), Failure> {
    screen.give_back();
    supervised_signals::stop_too(Signal::SIGTSTP as i32);
    match screen.take_again() {
        // Continued in the background, without a terminal of its own.
        Err(Failure { errno: Errno::EINTR, .. }) => Ok(()),
        taken => taken,
    }
}
