//! The terminal session: entered once, left exactly once whatever ends the program.

use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste,
    EnableFocusChange, EnableMouseCapture,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};
use std::io::{self, Stdout, Write};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

/// The modes are on: whoever clears it leaves.
static ON: AtomicBool = AtomicBool::new(false);

/// The screen in our modes.
pub struct Session {
    /// Never dropped: its own drop writes to the terminal again, and complains on standard error where that is gone too.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    mouse: bool,
    /// What the terminal shows is not what we drew last: it was resized, or others wrote on it.
    stale: bool,
}

impl Session {
    /// Takes the terminal over. The panic hook is in place before the first mode is switched on.
    ///
    /// # Errors
    /// The terminal refuses raw mode or cannot be written to.
    pub fn enter(mouse: bool) -> io::Result<Self> {
        let terminal = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(io::stdout()))?);
        let mut session = Session {
            terminal,
            mouse,
            stale: false,
        };
        session.modes_on()?;
        Ok(session)
    }

    fn modes_on(&mut self) -> io::Result<()> {
        ON.store(true, Ordering::SeqCst);
        let result = self.switch();
        if result.is_err() {
            leave();
        }
        result
    }

    fn switch(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        let mut out = io::stdout();
        queue!(
            out,
            EnterAlternateScreen,
            EnableBracketedPaste,
            EnableFocusChange,
            cursor::Hide
        )?;
        if self.mouse {
            queue!(out, EnableMouseCapture)?;
        }
        queue!(out, Clear(ClearType::All))?;
        out.flush()
    }

    /// Draws one frame inside a synchronized update, so that no terminal shows half of it.
    ///
    /// # Errors
    /// The terminal cannot be written to.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame)) -> io::Result<()> {
        if std::mem::take(&mut self.stale) {
            // A new one has empty buffers, so all is drawn. `Terminal::clear` would ask the terminal where its cursor is, and the thread
            // that reads the input would get the answer.
            self.terminal = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(io::stdout()))?);
            queue!(
                self.terminal.backend_mut(),
                BeginSynchronizedUpdate,
                Clear(ClearType::All)
            )?;
        } else {
            queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        }
        // What `Terminal::draw` does, but the frame and the end of the update leave in one piece. The cursor is hidden, and stays so.
        if !self.fits() {
            self.terminal.autoresize()?;
        }
        render(&mut self.terminal.get_frame());
        self.terminal.flush()?;
        self.terminal.swap_buffers();
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        io::Write::flush(self.terminal.backend_mut())
    }

    /// Whether the screen has the size of the last frame, by one call; ratatui's own way opens the terminal anew. Where it cannot be told,
    /// ratatui is asked.
    fn fits(&mut self) -> bool {
        let now = rustix::termios::tcgetwinsize(io::stdout());
        let drawn = self.terminal.get_frame().area();
        now.is_ok_and(|now| (now.ws_col, now.ws_row) == (drawn.width, drawn.height))
    }

    /// The next frame draws everything anew. A window that was made smaller and larger again has lost what stood in between, although its
    /// size is the same.
    pub fn repaint(&mut self) {
        self.stale = true;
    }

    /// Comes back after a stop: modes on, everything drawn anew.
    ///
    /// # Errors
    /// The terminal cannot be written to.
    pub fn resume(&mut self) -> io::Result<()> {
        self.repaint();
        self.modes_on()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back. Callable from anywhere, also twice: only the first call after an entry does anything.
/// The order matters: what makes the terminal send bytes goes off before echo comes back, so that none is printed in the shell.
/// Write errors are ignored, the terminal may be gone.
pub fn leave() {
    if !ON.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = queue!(
        out,
        EndSynchronizedUpdate,
        DisableMouseCapture,
        DisableBracketedPaste,
        DisableFocusChange,
        cursor::SetCursorStyle::DefaultUserShape,
        cursor::Show,
        LeaveAlternateScreen
    );
    let _ = out.flush();
    let _ = disable_raw_mode();
}

/// Name of the thread that draws: only its panic ends the program.
pub const UI_THREAD: &str = "main";

/// Makes a panic of the drawing thread leave the terminal before its report is printed. Any other thread's panic goes to the log: its
/// report would be drawn over the screen.
pub fn install_panic_hook() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        if thread.name() == Some(UI_THREAD) || !ON.load(Ordering::SeqCst) {
            leave();
            report(info);
        } else {
            tracing::error!(thread = thread.name().unwrap_or("?"), "panic: {info}");
        }
    }));
}
