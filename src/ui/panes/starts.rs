//! This start over the last one, both counted from their first second: the memory of the selected card.

use super::super::pen::{Pen, from_column, row};
use super::super::widgets::time_chart::{LEFT, Series, TimeChart, TimeMark, dot_columns, plot};
use super::memory::{high, role};
use crate::app::model::Model;
use crate::app::window::{Start, overlay_length};
use crate::clock::hm;
use crate::theme::Role;
use crate::units::{mm_ss, thousands};
use ratatui::layout::Rect;

/// How the two are named beside their lines, the earlier one first.
const NAMES: [&str; 2] = ["last", "this"];

pub fn draw(pen: &mut Pen<'_>, area: Rect, model: &Model, starts: &[Start; 2]) {
    let place = model
        .gpu_scroll
        .min(model.rig.gpus.cards.len().saturating_sub(1));
    let Some(card) = model.rig.gpus.cards.get(place) else {
        return;
    };
    let length = overlay_length(starts, model.record().now);
    let hue = pen.theme.card(card.index);
    let styles = [pen.style(Role::Dim), hue];
    let blank = |name: &str, style| Series {
        style,
        sign: name.chars().next().unwrap_or('*'),
        name: name.to_string(),
        spans: Vec::new(),
        last: Some(String::new()),
        last_value: None,
    };
    let mut series: Vec<Series> = NAMES
        .iter()
        .zip(styles)
        .map(|(name, style)| blank(name, style))
        .collect();
    let columns = dot_columns(plot(area, TimeChart::right(&series)));
    let mut marks = Vec::new();
    let known = model.history.extent().map_or(0, |(_, last)| last);
    for ((one, start), name) in series.iter_mut().zip(starts).zip(NAMES) {
        let gib = |mib: u32| f64::from(mib) / 1024.0;
        let end = start.at.saturating_add(length);
        let spans = model.history.columns(place, start.at, end, columns);
        one.spans = spans
            .into_iter()
            .map(|span| span.map(|(low, high)| (gib(low), gib(high))))
            .collect();
        let last = model
            .history
            .reach(place, end.min(known).saturating_sub(5), 6);
        one.last_value = last.map(|reach| gib(reach.high));
        one.last = one.last_value.map(|gib| format!("{gib:4.1}"));
        if let Some((at, kind)) = start.end {
            let took = at.saturating_sub(start.at);
            let took = mm_ss(u64::try_from(took).unwrap_or(0).saturating_mul(1000));
            marks.push(TimeMark {
                at: at.saturating_sub(start.at),
                words: format!("{name} {} {took}", kind.word()),
                style: pen.style(role(kind)),
                minor: false,
            });
        }
    }
    marks.sort_by_key(|mark| mark.at);
    let chart = TimeChart {
        from: 0,
        to: length,
        zero: Some(0),
        cursor: None,
        high: high(model),
        unit: "GiB",
        series: &series,
        marks: &marks,
    };
    chart.draw(pen, area);
    let context = |start: &Start| start.context.map_or("?".to_string(), thousands);
    let at = |start: &Start| hm(start.at.saturating_mul(1000));
    let [last, this] = starts;
    let words = pen
        .words()
        .styled(hue, pen.glyphs().card)
        .strong(card.index.to_string())
        .gap(2)
        .styled(hue, format!("this start {} {}", at(this), context(this)))
        .dim(format!("   the last {} {}", at(last), context(last)));
    pen.put(from_column(row(area, 0), LEFT), words);
}
