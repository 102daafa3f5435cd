//! Where a thread waits: for bytes on all its connections, for moments, and for its own futures, in one call to the kernel. What
//! comes in is read, stamped and decoded on the spot; a future is polled once for a whole answer, never for an event.

use super::connection::{Connection, Room, Woke};
use super::now_ns;
use rustix::event::{Timespec, epoll};
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::task::Waker;

/// Events that one wait may bring.
const EVENTS: usize = 1024;
/// What the kernel calls the one source that is not in a slot: the bell of the thread's futures.
const BELL: u64 = u64::MAX;

thread_local! {
    static HERE: RefCell<Option<Rc<Reactor>>> = const { RefCell::new(None) };
}

/// The sources of one thread.
pub struct Reactor {
    poll: OwnedFd,
    slots: RefCell<Slots>,
    /// No deadline of any connection is over before this.
    due_ns: Cell<u64>,
    ready: RefCell<Ready>,
}

/// What a turn works with.
struct Ready {
    events: Vec<epoll::Event>,
    room: Room,
    /// Connections that had more than one read takes.
    again: Vec<(usize, epoll::EventFlags)>,
    wakers: Vec<Waker>,
}

#[derive(Debug, Default)]
struct Slots {
    all: Vec<Slot>,
    free: Vec<usize>,
}

impl std::fmt::Debug for Reactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reactor").finish_non_exhaustive()
    }
}

impl Slots {
    /// A place that is free, and stays so until it is [`Slots::put`] to use.
    fn room(&mut self) -> usize {
        self.free.last().copied().unwrap_or(self.all.len())
    }

    fn put(&mut self, key: usize, slot: Slot) {
        match self.all.get_mut(key) {
            Some(place) => {
                *place = slot;
                self.free.pop();
            }
            None => self.all.push(slot),
        }
    }
}

#[derive(Debug)]
pub enum Slot {
    Free,
    Connection(Box<Connection>),
    Alarm(Option<Waker>),
}

impl Reactor {
    /// The one of this thread, which its first user makes.
    pub fn here() -> io::Result<Rc<Reactor>> {
        HERE.with_borrow_mut(|here| {
            if let Some(reactor) = here {
                return Ok(reactor.clone());
            }
            let reactor = Rc::new(Reactor {
                poll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
                slots: RefCell::default(),
                due_ns: Cell::new(u64::MAX),
                ready: RefCell::new(Ready {
                    events: Vec::with_capacity(EVENTS),
                    room: Room::default(),
                    again: Vec::new(),
                    wakers: Vec::new(),
                }),
            });
            Ok(here.insert(reactor).clone())
        })
    }

    /// Watches a connection and keeps it until [`Reactor::remove`].
    pub fn add_connection(&self, connection: Connection) -> io::Result<usize> {
        let key = self.slots.borrow_mut().room();
        self.watch(&connection, key as u64)?;
        self.slots
            .borrow_mut()
            .put(key, Slot::Connection(Box::new(connection)));
        Ok(key)
    }

    /// Watches a timer until [`Reactor::remove`]; the timer itself stays with the caller.
    pub fn add_alarm(&self, timer: impl AsFd) -> io::Result<usize> {
        let key = self.slots.borrow_mut().room();
        self.watch(timer, key as u64)?;
        self.slots.borrow_mut().put(key, Slot::Alarm(None));
        Ok(key)
    }

    /// Wakes this thread's wait whenever `bell` is written to.
    pub fn watch_bell(&self, bell: impl AsFd) -> io::Result<()> {
        self.watch(bell, BELL)
    }

    /// Each source says once when there is something new: what it brought must be taken until there is no more.
    fn watch(&self, source: impl AsFd, key: u64) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let flags = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
        Ok(epoll::add(
            &self.poll,
            source,
            epoll::EventData::new_u64(key),
            flags,
        )?)
    }

    /// Gives back what was kept, which closes it.
    pub fn remove(&self, key: usize) {
        let mut slots = self.slots.borrow_mut();
        let Some(slot) = slots.all.get_mut(key) else {
            return;
        };
        let kept = std::mem::replace(slot, Slot::Free);
        slots.free.push(key);
        // It may hold the last handle of a future, which may own connections itself.
        drop(slots);
        drop(kept);
    }

    /// Works with what is kept under `key`. Nothing of this reactor may be used in `work`.
    pub fn with<T>(&self, key: usize, work: impl FnOnce(&mut Slot) -> T) -> Option<T> {
        self.slots.borrow_mut().all.get_mut(key).map(work)
    }

    /// A deadline of some connection ends at `due_ns`.
    pub fn expect(&self, due_ns: u64) {
        self.due_ns.set(self.due_ns.get().min(due_ns));
    }

    /// Takes what has come, and waits for something to come if `may_wait`. `awake` is called when the wait is over.
    pub fn turn(&self, may_wait: bool, awake: impl FnOnce()) {
        let mut ready = self.ready.borrow_mut();
        let ready = &mut *ready;
        let wait = self.patience(may_wait && ready.again.is_empty());
        ready.events.clear();
        let into = rustix::buffer::spare_capacity(&mut ready.events);
        // It fails only if a signal ends it: then nothing has come, and the next one waits on.
        let _ = epoll::wait(&self.poll, into, wait.as_ref());
        awake();
        let woke = Woke::now();
        let mut slots = self.slots.borrow_mut();
        let again = std::mem::take(&mut ready.again);
        let new = ready.events.iter().filter_map(|event| {
            let key = event.data.u64();
            (key != BELL).then_some((key as usize, event.flags))
        });
        for (key, flags) in again.into_iter().chain(new) {
            match slots.all.get_mut(key) {
                Some(Slot::Connection(connection)) => {
                    if connection.on_event(flags, &mut ready.room, &woke, &self.due_ns) {
                        ready.again.push((key, flags));
                    }
                    ready.wakers.extend(connection.take_waker());
                }
                Some(Slot::Alarm(waker)) => ready.wakers.extend(waker.take()),
                Some(Slot::Free) | None => {}
            }
        }
        if self.due_ns.get() != u64::MAX {
            self.enforce(&mut slots, &mut ready.wakers);
        }
        drop(slots);
        ready.wakers.drain(..).for_each(Waker::wake);
    }

    /// Ends what is over its time.
    fn enforce(&self, slots: &mut Slots, wakers: &mut Vec<Waker>) {
        let now_ns = now_ns();
        if now_ns < self.due_ns.get() {
            return;
        }
        let mut next = u64::MAX;
        for slot in &mut slots.all {
            let Slot::Connection(connection) = slot else {
                continue;
            };
            next = next.min(connection.enforce(now_ns));
            wakers.extend(connection.take_waker());
        }
        self.due_ns.set(next);
    }

    /// How long to wait: to the next deadline, in whole milliseconds, or for ever.
    fn patience(&self, may_wait: bool) -> Option<Timespec> {
        let ms = match self.due_ns.get() {
            _ if !may_wait => 0,
            u64::MAX => return None,
            due_ns => due_ns.saturating_sub(now_ns()).div_ceil(1_000_000),
        };
        Some(Timespec {
            tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
            tv_nsec: (ms % 1000 * 1_000_000) as i64,
        })
    }
}
