//! The steady part of a cell. In a closed loop from when all requests are in flight to when the first place stays empty; in an open
//! one from when the first request has ended, so that those of all ages are there, to when the last one is sent.

/// Follows how many requests are in flight. Times are nanoseconds of the client's clock, counts are events with tokens so far.
#[derive(Debug, Default)]
pub struct Window {
    /// Requests in flight that are the steady state; `None` in an open loop.
    wanted: Option<u32>,
    in_flight: u32,
    changed_ns: u64,
    /// Requests in flight times nanoseconds, since `opened`.
    area: f64,
    opened: Option<(u64, u64)>,
    closed: Option<(u64, u64)>,
}

/// What the steady part measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steady {
    pub seconds: f64,
    /// Events with tokens.
    pub chunks: u64,
    /// Requests in flight on average.
    pub in_flight: f64,
}

impl Window {
    /// Of a closed loop that keeps so many requests in flight.
    pub fn closed(concurrency: u32) -> Self {
        Window {
            wanted: Some(concurrency),
            ..Window::default()
        }
    }

    pub fn open() -> Self {
        Window::default()
    }

    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// A request is about to be written.
    pub fn started(&mut self, at_ns: u64, chunks: u64) {
        self.advance(at_ns);
        self.in_flight += 1;
        if self.wanted.is_some_and(|wanted| self.in_flight >= wanted) {
            self.begin(at_ns, chunks);
        }
    }

    /// A request has ended; `last` if no other takes its place.
    pub fn ended(&mut self, at_ns: u64, chunks: u64, last: bool) {
        self.advance(at_ns);
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.wanted.is_none() {
            self.begin(at_ns, chunks);
        } else if last {
            self.close(at_ns, chunks);
        }
    }

    fn begin(&mut self, at_ns: u64, chunks: u64) {
        if self.opened.is_none() {
            self.opened = Some((at_ns, chunks));
            self.area = 0.0;
        }
    }

    /// The steady part ends here.
    pub fn close(&mut self, at_ns: u64, chunks: u64) {
        if self.closed.is_none() {
            self.advance(at_ns);
            self.closed = Some((at_ns, chunks));
        }
    }

    fn advance(&mut self, at_ns: u64) {
        let at_ns = at_ns.max(self.changed_ns);
        if self.closed.is_none() {
            self.area += f64::from(self.in_flight) * (at_ns - self.changed_ns) as f64;
        }
        self.changed_ns = at_ns;
    }

    /// The steady part, if there was one.
    pub fn steady(&self) -> Option<Steady> {
        let (from, before) = self.opened?;
        let (to, after) = self.closed?;
        let ns = to.checked_sub(from).filter(|ns| *ns > 0)? as f64;
        let chunks = after.checked_sub(before).filter(|n| *n > 0)?;
        Some(Steady {
            seconds: ns / 1e9,
            chunks,
            in_flight: self.area / ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn ramp_and_drain_are_cut_off() {
        let mut window = Window::closed(2);
        window.started(S, 0);
        window.started(3 * S, 40);
        window.ended(5 * S, 100, false);
        window.started(6 * S, 110);
        window.ended(7 * S, 200, true);
        window.ended(9 * S, 260, true);
        let steady = window.steady().unwrap();
        assert_eq!((steady.seconds, steady.chunks), (4.0, 160));
        // Two in flight but for one second of the four.
        assert!((steady.in_flight - 1.75).abs() < 1e-9);
        assert_eq!(window.in_flight(), 0);
    }

    #[test]
    fn an_open_loop_is_steady_from_its_first_end_to_its_last_start() {
        let mut window = Window::open();
        window.started(S, 0);
        window.started(2 * S, 10);
        window.ended(3 * S, 30, false);
        window.started(4 * S, 40);
        window.close(5 * S, 50);
        window.ended(9 * S, 90, true);
        let steady = window.steady().unwrap();
        assert_eq!((steady.seconds, steady.chunks), (2.0, 20));
        assert!((steady.in_flight - 1.5).abs() < 1e-9);
    }

    #[test]
    fn without_full_load_there_is_no_steady_part() {
        let mut window = Window::closed(3);
        window.started(S, 0);
        window.ended(2 * S, 10, true);
        assert_eq!(window.steady(), None);
    }
}
