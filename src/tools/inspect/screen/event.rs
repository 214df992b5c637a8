//! What a full-screen program waits for: a key, a signal, or the next second. One thread reads keys and
//! another takes signals, so that neither interrupts the drawing of a screen.

use std::{
    io,
    sync::mpsc::{Receiver, channel},
    thread,
    time::Instant,
};

use ratatui::crossterm::event::{self, KeyEvent};

use crate::sys::signals::{Signal, TakenSignals};

/// What came first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    /// A signal came.
    Signal(Signal),
    /// The time is over.
    Time,
    /// No key can come any more.
    Closed,
}

/// The source of events; signals are taken until it is dropped.
pub struct Events {
    queue: Receiver<Event>,
    _signals: TakenSignals,
}

impl Events {
    /// Takes the signals and begins to read keys.
    pub fn begin() -> io::Result<Self> {
        let (sender, queue) = channel();
        let keys = sender.clone();
        // Before any other thread is there, because each has its own mask.
        let signals = TakenSignals::begin(move |signal| sender.send(Event::Signal(signal)).is_ok())?;
        thread::Builder::new().spawn(move || {
            while let Ok(event) = event::read() {
                if event.as_key_press_event().is_some_and(|key| keys.send(Event::Key(key)).is_err()) {
                    return;
                }
            }
            let _ = keys.send(Event::Closed);
        })?;
        Ok(Self { queue, _signals: signals })
    }

    /// Sleeps until something comes, or it is time.
    pub fn next(&self, until: Instant) -> Event {
        let left = until.saturating_duration_since(Instant::now());
        self.queue.recv_timeout(left).unwrap_or(Event::Time)
    }
}
