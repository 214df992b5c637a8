//! The whole terminal, for a program that redraws it: the only module that knows crossterm. However the
//! program ends, also by a panic, the terminal is restored.

use std::{
    env,
    io::{self, BufWriter, IsTerminal, Stdout, stdout},
    panic,
    sync::{
        Once,
        mpsc::{Receiver, channel},
    },
    thread,
    time::Instant,
};

use crate::sys::{Signal, TakenSignals, terminal};
pub use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{
    Frame, Terminal, TerminalOptions, Viewport,
    backend::{Backend, CrosstermBackend},
    crossterm::{
        cursor::Show,
        event, execute,
        terminal::{
            EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
            is_raw_mode_enabled,
        },
    },
    layout::Rect,
    style::Color,
};

/// The second screen of the terminal, released when dropped.
#[must_use = "the terminal is given back when this is dropped"]
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    colours: bool,
}

impl Screen {
    /// Whether standard input and output are a terminal that can put the cursor anywhere.
    pub fn is_possible() -> bool {
        let is_able = env::var_os("TERM").is_some_and(|kind| !kind.is_empty() && kind != "dumb");
        io::stdin().is_terminal() && stdout().is_terminal() && is_able
    }

    /// Takes the terminal, with or without colours.
    pub fn enter(colours: bool) -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |panicked| {
                leave();
                usual(panicked);
            }));
        });
        take().and_then(|()| blank()).map(|terminal| Self { terminal, colours }).inspect_err(|_| leave())
    }

    /// Takes the terminal again after another program had it, which may have changed its modes.
    pub fn take_again(&mut self) -> io::Result<()> {
        disable_raw_mode()?;
        take()?;
        self.clear()
    }

    /// Releases the terminal until it is taken again.
    pub fn give_back(&self) {
        leave();
    }

    /// Forgets the drawn screen, and queries the size again.
    pub fn clear(&mut self) -> io::Result<()> {
        self.terminal = blank()?;
        Ok(())
    }

    /// Draws; only what has changed is written.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame)) -> io::Result<()> {
        let colours = self.colours;
        let drawn = self.terminal.draw(|frame| {
            draw(frame);
            if !colours {
                for cell in &mut frame.buffer_mut().content {
                    (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
                }
            }
        });
        drawn.map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen)
}

/// Does nothing if the terminal was released already.
fn leave() {
    if is_raw_mode_enabled().unwrap_or(false) {
        // If the terminal is gone, nothing can be restored.
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
    }
}

/// An empty screen as large as the terminal is now. Ratatui's own `clear` queries the cursor position, and
/// would wait for an answer that the thread for keys has already read.
fn blank() -> io::Result<Terminal<CrosstermBackend<BufWriter<Stdout>>>> {
    let (columns, rows) = terminal::size();
    let mut backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, stdout()));
    backend.clear()?;
    let viewport = Viewport::Fixed(Rect::new(0, 0, columns, rows));
    Terminal::with_options(backend, TerminalOptions { viewport })
}

// The events of a full-screen program: a key, a signal, or the next second. One thread reads keys and another
// takes signals, so that neither interrupts the drawing of a screen.

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
        // Before any other thread is started, because each has its own mask.
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
