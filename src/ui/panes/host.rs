//! The server's machine in one line.

use super::super::pen::Pen;
use super::super::words::{Words, safe};
use crate::app::model::Model;
use crate::host::vitals::Room;
use crate::reading::{Absent, Reading};
use crate::theme::Role;
use crate::units::{GIB, gib};

/// Share of memory or disk from which on it is worth a look.
const TIGHT: f64 = 0.9;

/// Processors, memory, swap, the server's own memory and the disk. What is not known says why. Nothing before the first look.
pub fn line<'t>(pen: &Pen<'t>, model: &Model) -> Option<Words<'t>> {
    let seen = match &model.rig.host {
        Reading::Value(seen) | Reading::Stale { value: seen, .. } => seen,
        Reading::Absent(Absent::Pending) => return None,
        Reading::Absent(why) => {
            let why = safe(format!("not known: {why}"));
            return Some(pen.words().dim("host ").role(Role::Warn, why));
        }
    };
    let cpu = part(pen, "CPU", &seen.cpu, |words, share| {
        words.text(format!("{:.0} %", share * 100.0))
    });
    let memory = part(pen, "RAM", &seen.memory, |words, room| {
        words
            .role(role(*room), gib(room.used))
            .dim(format!("/{} GiB", gib(room.total)))
    });
    let swap = part(pen, "swap", &seen.swap, |words, room| match room.total {
        0 => words.dim("none"),
        total => words
            .text(gib(room.used))
            .dim(format!("/{} GiB", gib(total))),
    });
    let server = part(pen, "server", &seen.server, |words, bytes| {
        // A small one is no nothing.
        if *bytes < GIB as u64 / 10 {
            words.text((bytes >> 20).to_string()).dim(" MiB RSS")
        } else {
            words.text(gib(*bytes)).dim(" GiB RSS")
        }
    });
    let disk = part(pen, "disk", &seen.disk, |words, room| {
        words.role(role(*room), gib(room.free())).dim(" GiB free")
    });
    let parts = [cpu, memory, swap, server, disk];
    Some(
        pen.words()
            .dim("host ")
            .join(parts.into_iter().flatten(), 2),
    )
}

/// A figure with its name, or why there is none; nothing while it is only not read yet.
fn part<'t, T>(
    pen: &Pen<'t>,
    name: &str,
    reading: &Reading<T>,
    show: impl Fn(Words<'t>, &T) -> Words<'t>,
) -> Option<Words<'t>> {
    let words = pen.words().dim(format!("{name} "));
    match (reading.known(), reading.absent()) {
        (Some(value), _) => Some(show(words, value)),
        (None, None | Some(Absent::Pending)) => None,
        (None, Some(why)) => Some(words.dim(safe(format!("({why})")))),
    }
}

fn role(room: Room) -> Role {
    match room.total {
        0 => Role::Text,
        total if room.used as f64 / total as f64 >= TIGHT => Role::Warn,
        _ => Role::Text,
    }
}
