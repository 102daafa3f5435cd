//! The only place that draws and touches the world: one loop over signals, input, actors and time.

mod beat;
mod effects;
mod input;
pub mod keeper;
mod notify;
mod restart;
mod server;
mod services;
mod setup;
mod signals;
pub mod terminal;

pub use services::service;
pub use setup::{Setup, SetupError, Which, keymap, session, theme, tried, who};

use crate::app::keys;
use crate::app::model::Model;
use crate::app::msg::Msg;
use crate::app::update::update;
use crate::clock::Clock;
use crate::gpu;
use crate::keymap::{Action, Code, Context, Key, Keymap};
use crate::theme::Theme;
use crate::ui::{self, ViewState, text::Editor};
use beat::Beat;
use input::Input;
use signals::{Asked, Signals};
use std::io;
use std::time::{Duration, Instant};
use terminal::Session;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

/// At most one frame in so many milliseconds.
const FRAME_GAP: Duration = Duration::from_millis(16);
/// Messages of the actors that may wait.
const QUEUE: usize = 1_024;
/// How often the cards are read: with and without the terminal's attention.
const GPU_PERIOD: Duration = Duration::from_secs(1);
const GPU_PERIOD_AWAY: Duration = Duration::from_secs(5);

/// What has to happen to the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Redraw {
    None,
    /// With the next second: telemetry need not wake the terminal by itself.
    WithTick,
    Now,
}

/// Opens the cockpit and stays until it ends. Gives the exit code.
///
/// # Errors
/// The terminal or the system refuses what the cockpit needs; the terminal is given back before.
pub fn run(setup: Setup) -> io::Result<i32> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let code = runtime.block_on(async {
        let mut cockpit = Cockpit::open(setup)?;
        let code = cockpit.go().await;
        cockpit.close().await;
        code
    });
    // A driver call may hang for good: nobody waits for threads at the end.
    runtime.shutdown_background();
    code
}

struct Cockpit {
    model: Model,
    view: ViewState,
    theme: Theme,
    keymap: Keymap,
    editor: Editor,
    clock: Clock,
    session: Option<Session>,
    hands: effects::Hands,
    messages: Receiver<Msg>,
    inputs: Receiver<Input>,
    gpus: watch::Receiver<gpu::Snapshot>,
    gpu_control: gpu::watch::Control,
    signals: Signals,
    redraw: Redraw,
    drawn: Option<Instant>,
    exit: i32,
}

impl Cockpit {
    fn open(setup: Setup) -> io::Result<Self> {
        let clock = setup.clock;
        let (say, messages) = channel(QUEUE);
        let (typed, inputs) = channel(256);
        let signals = Signals::new()?;
        let (gpus, gpu_control) = gpu::watch::watch(setup.gpu_source, clock, GPU_PERIOD);
        let model = Model::new(
            clock.now(),
            setup.who,
            setup.settings,
            setup.profile,
            setup.restored,
        );
        let hands = effects::Hands::new(
            &model,
            setup.host,
            setup.places,
            setup.store,
            say,
            gpus.clone(),
            clock,
        )?;
        let session = Session::enter(setup.mouse)?;
        input::read_events(typed.clone())?;
        input::watch_hangup(typed)?;
        Ok(Cockpit {
            model,
            view: ViewState::default(),
            theme: setup.theme,
            keymap: setup.keymap,
            editor: Editor::default(),
            clock,
            session: Some(session),
            hands,
            messages,
            inputs,
            gpus,
            gpu_control,
            signals,
            redraw: Redraw::Now,
            drawn: None,
            exit: 0,
        })
    }

    async fn go(&mut self) -> io::Result<i32> {
        self.draw()?;
        self.apply(Msg::Started);
        self.second();
        let mut beat = Beat::new(Instant::now());
        let mut load = self.hands.load();
        while !self.model.quit {
            let wait = self.until_frame();
            tokio::select! {
                biased;
                asked = self.signals.next() => self.signal(asked)?,
                Some(input) = self.inputs.recv() => self.input(input)?,
                Some(msg) = self.messages.recv() => self.apply(msg),
                Ok(()) = self.gpus.changed() => {
                    let snapshot = self.gpus.borrow_and_update().clone();
                    self.apply(Msg::Gpus(snapshot));
                    if beat.cards(Instant::now()) {
                        self.second();
                    }
                }
                Ok(()) = changed(&mut load) => {
                    if let Some(load) = &mut load {
                        let newest = load.borrow_and_update().clone();
                        self.apply(Msg::Load(newest));
                    }
                }
                () = tokio::time::sleep_until(beat.due().into()) => {
                    beat.timer(Instant::now());
                    self.second();
                }
                () = tokio::time::sleep(wait), if self.redraw == Redraw::Now => {}
            }
            self.drain()?;
            if self.redraw == Redraw::Now && self.until_frame().is_zero() && !self.model.quit {
                self.draw()?;
            }
        }
        Ok(self.exit)
    }

    /// What happens each second.
    fn second(&mut self) {
        self.hands.beat();
        self.apply(Msg::Tick);
        self.age();
        if let Some(msg) = self.hands.post_mortem(&self.model) {
            self.apply(msg);
        }
    }

    /// Takes what is queued already: a burst becomes one frame.
    fn drain(&mut self) -> io::Result<()> {
        for _ in 0..QUEUE {
            if let Ok(input) = self.inputs.try_recv() {
                self.input(input)?;
            } else if let Ok(msg) = self.messages.try_recv() {
                self.apply(msg);
            } else {
                break;
            }
            if self.model.quit {
                break;
            }
        }
        Ok(())
    }

    fn until_frame(&self) -> Duration {
        self.drawn
            .map_or(Duration::ZERO, |at| FRAME_GAP.saturating_sub(at.elapsed()))
    }

    fn apply(&mut self, msg: Msg) {
        let redraw = match &msg {
            Msg::Gpus(_) | Msg::Load(_) | Msg::Log(_) | Msg::Host(_) | Msg::Tenant(_) => {
                Redraw::WithTick
            }
            Msg::Drawn => Redraw::None,
            _ => Redraw::Now,
        };
        self.redraw = self.redraw.max(redraw);
        let effects = update(&mut self.model, self.clock.now(), msg);
        for effect in effects {
            if let Some(wish) = self.hands.carry_out(effect, &self.model) {
                self.here(wish);
            }
        }
    }

    /// What only the loop itself can do.
    fn here(&mut self, wish: effects::Here) {
        match wish {
            effects::Here::Suspend => {
                if let Err(error) = self.suspend() {
                    tracing::error!("suspend: {error}");
                    self.model.quit = true;
                    self.exit = 1;
                }
            }
            effects::Here::Say(msg) => self.apply(*msg),
        }
    }

    /// A driver that hangs sends nothing: what it said last grows old.
    fn age(&mut self) {
        let aged = {
            let (last, now, period) = (
                self.gpus.borrow(),
                self.clock.now(),
                self.gpu_control.period(),
            );
            last.is_old(now, period).then(|| last.aged(now, period))
        };
        if let Some(aged) = aged {
            self.apply(Msg::Gpus(aged));
        }
    }

    fn signal(&mut self, asked: Asked) -> io::Result<()> {
        match asked {
            Asked::End(number) => {
                self.exit = 128 + number;
                self.apply(Msg::Terminate);
            }
            Asked::Stop => self.suspend()?,
            Asked::Continued => {
                if let Some(session) = &mut self.session {
                    session.resume()?;
                }
                self.redraw = Redraw::Now;
            }
        }
        Ok(())
    }

    /// Stops as Ctrl-Z does, and comes back with everything drawn anew. What the actors report meanwhile waits.
    fn suspend(&mut self) -> io::Result<()> {
        terminal::leave();
        signals::stop_group();
        if let Some(session) = &mut self.session {
            session.resume()?;
        }
        self.redraw = Redraw::Now;
        Ok(())
    }

    fn input(&mut self, input: Input) -> io::Result<()> {
        match input {
            Input::Key(key) => self.key(key),
            Input::Paste(text) => {
                if let Some(edit) = keys::edit(&self.model) {
                    let one_line = !keys::text_is_multiline(&self.model);
                    let edit = self.editor.paste(edit, &text, one_line);
                    self.apply(Msg::Edited(edit));
                }
            }
            Input::Click(x, y) => {
                if self.model.dialogs.is_empty()
                    && let Some(hit) = self.view.hit(x, y)
                {
                    self.apply(
                        hit.line
                            .map_or(Msg::Focus(hit.pane), |line| Msg::Select(hit.pane, line)),
                    );
                }
            }
            Input::Wheel(x, y, by) => {
                if let Some(hit) = self
                    .view
                    .hit(x, y)
                    .filter(|_| self.model.dialogs.is_empty())
                {
                    self.apply(Msg::Scroll(hit.pane, by));
                }
            }
            Input::Resized => {
                if let Some(session) = &mut self.session {
                    session.repaint();
                }
                self.redraw = Redraw::Now;
            }
            Input::Attention(here) => {
                self.hands.attention(here);
                self.gpu_control
                    .set_period(if here { GPU_PERIOD } else { GPU_PERIOD_AWAY });
            }
            Input::HungUp => {
                self.exit = 129;
                self.model.quit = true;
            }
        }
        Ok(())
    }

    /// A text gets the key first; the keymap has only what leaves it.
    fn key(&mut self, key: Key) {
        let context = keys::context(&self.model);
        let action = self.keymap.lookup(context, key);
        let own = match action {
            Some(Action::Submit) => keys::text_is_multiline(&self.model) && key.code == Code::Enter,
            Some(_) => false,
            None => matches!(context, Context::Text | Context::List),
        };
        match (own, action, keys::edit(&self.model)) {
            (true, _, Some(edit)) => {
                let one_line = !keys::text_is_multiline(&self.model);
                let edit = self.editor.key(edit, key, one_line);
                self.apply(Msg::Edited(edit));
            }
            (_, Some(action), _) => self.apply(Msg::Do(action)),
            _ => {}
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let (model, view, theme, keymap) = (&self.model, &mut self.view, &self.theme, &self.keymap);
        session.draw(|frame| ui::draw(model, view, theme, keymap, frame))?;
        self.drawn = Some(Instant::now());
        self.redraw = Redraw::None;
        if !self.model.dialogs.is_empty() && self.view.asked() {
            self.apply(Msg::Drawn);
        }
        Ok(())
    }

    /// Gives the terminal back and lets go of everything. The server goes on; only the demo's own ends with it.
    async fn close(&mut self) {
        self.session = None;
        self.hands.close(&self.model).await;
    }
}

/// Waits for a change, for ever where there is nothing to change.
async fn changed<T>(
    receiver: &mut Option<watch::Receiver<T>>,
) -> Result<(), watch::error::RecvError> {
    match receiver {
        Some(receiver) => receiver.changed().await,
        None => std::future::pending().await,
    }
}

/// The sender of messages to the loop.
type Say = Sender<Msg>;
