//! A terminal that a test looks at and types into.

use super::place::Process;
use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Keys that are not letters, as a terminal sends them.
pub mod key {
    pub const ENTER: &str = "\r";
    pub const ESC: &str = "\x1b";
    pub const TAB: &str = "\t";
    pub const UP: &str = "\x1b[A";
    pub const DOWN: &str = "\x1b[B";
    pub const RIGHT: &str = "\x1b[C";
    pub const LEFT: &str = "\x1b[D";
    pub const BACKSPACE: &str = "\x7f";
    pub const CTRL_C: &str = "\x03";
    pub const CTRL_S: &str = "\x13";
    pub const CTRL_U: &str = "\x15";
    pub const CTRL_Z: &str = "\x1a";
}

/// The private mode of a synchronized update.
const SYNCHRONIZED: u16 = 2026;

type Writer = Arc<Mutex<Option<Box<dyn Write + Send>>>>;

struct State {
    parser: vt100::Parser<Modes>,
    /// Everything the program wrote.
    raw: Vec<u8>,
    /// When it last wrote.
    last: Instant,
    /// The program's side is closed.
    closed: bool,
    /// The test gives up its side.
    leave: bool,
}

/// Private modes that the screen itself does not follow (synchronized output, focus events), and questions to the terminal.
#[derive(Default)]
struct Modes {
    private: BTreeMap<u16, bool>,
    answers: Vec<u8>,
}

impl vt100::Callbacks for Modes {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _: Option<u8>,
        parameters: &[&[u16]],
        last: char,
    ) {
        let numbers = parameters.iter().filter_map(|p| p.first()).copied();
        match (first, last) {
            (Some(b'?'), 'h' | 'l') => {
                for number in numbers {
                    self.private.insert(number, last == 'h');
                }
            }
            (None, 'c') => self.answers.extend(b"\x1b[?62c"),
            (None, 'n') if numbers.clone().any(|n| n == 6) => {
                let (row, column) = screen.cursor_position();
                let answer = format!("\x1b[{};{}R", row + 1, column + 1);
                self.answers.extend(answer.as_bytes());
            }
            _ => {}
        }
    }
}

#[derive(Clone)]
struct Shared(Arc<(Mutex<State>, Condvar)>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap()
    }
}

/// A program in a terminal. It is killed when this goes.
pub struct Term {
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Writer,
    child: Box<dyn Child + Send + Sync>,
    reader: Option<JoinHandle<()>>,
    shared: Shared,
    modes_before: String,
}

impl Term {
    pub fn start(command: CommandBuilder, columns: u16, rows: u16) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let modes_before = line_modes(pair.master.as_ref());
        let source = pair.master.try_clone_reader().unwrap();
        let writer: Writer = Arc::new(Mutex::new(Some(pair.master.take_writer().unwrap())));
        let shared = Shared(Arc::new((
            Mutex::new(State {
                parser: vt100::Parser::new_with_callbacks(rows, columns, 0, Modes::default()),
                raw: Vec::new(),
                last: Instant::now(),
                closed: false,
                leave: false,
            }),
            Condvar::new(),
        )));
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let reader = std::thread::spawn({
            let (shared, writer) = (shared.clone(), writer.clone());
            move || read_all(source, &shared, &writer)
        });
        Term {
            master: Some(pair.master),
            writer,
            child,
            reader: Some(reader),
            shared,
            modes_before,
        }
    }

    /// The program's process.
    pub fn process(&self) -> Process {
        let pid = self.child.process_id().expect("the program has a pid");
        Process::of(pid).unwrap_or(Process {
            pid,
            arguments: Vec::new(),
        })
    }

    /// What stands on the screen, a line each, without blanks at the ends.
    pub fn screen(&self) -> String {
        let state = self.whole_frame();
        let columns = state.parser.screen().size().1;
        let rows: Vec<String> = state
            .parser
            .screen()
            .rows(0, columns)
            .map(|row| row.trim_end().to_string())
            .collect();
        rows.join("\n")
    }

    /// Looks at the screen with its colours.
    pub fn look<T>(&self, at: impl FnOnce(&vt100::Screen) -> T) -> T {
        at(self.whole_frame().parser.screen())
    }

    /// The state outside a synchronized update, as a terminal would show it: never half a frame.
    fn whole_frame(&self) -> MutexGuard<'_, State> {
        let drawing =
            |state: &mut State| state.parser.callbacks().private.get(&SYNCHRONIZED) == Some(&true);
        let patience = Duration::from_millis(500);
        let waited = self
            .shared
            .0
            .1
            .wait_timeout_while(self.shared.lock(), patience, drawing);
        waited.unwrap().0
    }

    /// Everything the program wrote so far.
    pub fn raw(&self) -> Vec<u8> {
        self.shared.lock().raw.clone()
    }

    /// How often `bytes` were written so far.
    pub fn written(&self, bytes: &str) -> usize {
        let raw = self.raw();
        raw.windows(bytes.len())
            .filter(|w| *w == bytes.as_bytes())
            .count()
    }

    /// Types `keys`.
    pub fn keys(&self, keys: &str) {
        if let Some(writer) = self.writer.lock().unwrap().as_mut() {
            writer.write_all(keys.as_bytes()).unwrap();
            writer.flush().unwrap();
        }
    }

    /// Waits until the screen has `text`.
    pub fn wait_for(&self, text: &str, patience: Duration) {
        self.wait_until(&format!("{text:?} on the screen"), patience, |screen| {
            screen.contains(text)
        });
    }

    /// Waits until the screen has `text` no more.
    pub fn wait_gone(&self, text: &str, patience: Duration) {
        self.wait_until(&format!("{text:?} off the screen"), patience, |screen| {
            !screen.contains(text)
        });
    }

    /// Waits until the screen is as wanted; fails with the screen as it is.
    pub fn wait_until(&self, what: &str, patience: Duration, done: impl Fn(&str) -> bool) {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if done(&screen) {
                return;
            }
            let left = patience.saturating_sub(start.elapsed());
            let state = self.shared.lock();
            assert!(
                !left.is_zero() && !state.closed,
                "{}: {what}\n{screen}",
                if state.closed {
                    "the program has ended"
                } else {
                    "waited in vain"
                }
            );
            // A change between the look and the lock is seen a moment later.
            let _ = self
                .shared
                .0
                .1
                .wait_timeout(state, left.min(Duration::from_millis(200)))
                .unwrap();
        }
    }

    /// Waits until the program has written nothing for `quiet` from now on.
    pub fn settle(&self, quiet: Duration) {
        let mut since = Instant::now();
        loop {
            std::thread::sleep(quiet.saturating_sub(since.elapsed()));
            let last = self.shared.lock().last;
            if last <= since {
                return;
            }
            since = last;
        }
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        self.shared
            .lock()
            .parser
            .screen_mut()
            .set_size(rows, columns);
        if let Some(master) = &self.master {
            master.resize(size(columns, rows)).unwrap();
        }
    }

    pub fn signal(&self, signal: Signal) {
        self.process().signal(signal);
    }

    /// Takes the terminal away, as a lost connection does. The program must write something when its window changes: the reader
    /// blocks until then.
    pub fn hang_up(&mut self) {
        self.shared.lock().leave = true;
        let (rows, columns) = self.look(vt100::Screen::size);
        self.resize(columns + 1, rows);
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.writer.lock().unwrap().take();
        self.master.take();
    }

    /// Whether the program has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for the program's end.
    pub fn wait_exit(&mut self, patience: Duration) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                // What it wrote last is still on the way.
                if self.master.is_some() {
                    let gone = Instant::now();
                    while !self.shared.lock().closed && gone.elapsed() < Duration::from_secs(2) {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                }
                return status;
            }
            assert!(
                start.elapsed() < patience,
                "the program does not end\n{}",
                self.screen()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Checks that the terminal is as the program found it: main screen, cursor, no mouse, no paste brackets, line modes.
    pub fn assert_restored(&self) {
        let state = self.shared.lock();
        let screen = state.parser.screen();
        let private = &state.parser.callbacks().private;
        let on: Vec<u16> = private
            .iter()
            .filter(|(_, on)| **on)
            .map(|(n, _)| *n)
            .collect();
        assert!(!screen.alternate_screen(), "still on the alternate screen");
        assert!(!screen.hide_cursor(), "the cursor is hidden");
        assert!(!screen.bracketed_paste(), "paste is bracketed");
        assert!(
            !screen.application_cursor(),
            "cursor keys are in application mode"
        );
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert!(on.is_empty(), "private modes still on: {on:?}");
        if let Some(master) = &self.master {
            assert_eq!(
                line_modes(master.as_ref()),
                self.modes_before,
                "line modes changed"
            );
        }
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols: columns,
        pixel_width: 0,
        pixel_height: 0,
    }
}

fn line_modes(master: &dyn MasterPty) -> String {
    format!("{:?}", master.get_termios())
}

fn read_all(mut source: Box<dyn Read + Send>, shared: &Shared, writer: &Writer) {
    let mut buffer = [0; 65_536];
    loop {
        let read = source.read(&mut buffer).unwrap_or(0);
        let mut state = shared.lock();
        if read == 0 || state.leave {
            state.closed = true;
            shared.0.1.notify_all();
            return;
        }
        let bytes = &buffer[..read];
        state.parser.process(bytes);
        state.raw.extend(bytes);
        state.last = Instant::now();
        let answers = std::mem::take(&mut state.parser.callbacks_mut().answers);
        drop(state);
        shared.0.1.notify_all();
        if !answers.is_empty()
            && let Some(writer) = writer.lock().unwrap().as_mut()
        {
            // The program may be gone before it reads the answer.
            let _ = writer.write_all(&answers);
        }
    }
}
