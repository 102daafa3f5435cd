//! Charts as inline SVG. Colours are stand-ins that the page's style sheet turns into those of its light or dark side.

use crate::bench::plan::Cell;
use crate::bench::point::{Point, Validity};
use crate::units::short_count;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::BTreeSet;

const SIZE: (u32, u32) = (620, 340);
const INK: RGBColor = RGBColor(1, 1, 1);
const LINE: RGBColor = RGBColor(1, 1, 2);
/// Stand-in, light side, dark side of each line, in order.
const HUES: [(RGBColor, &str, &str); 6] = [
    (RGBColor(2, 0, 0), "#2f6fde", "#79a8ff"),
    (RGBColor(2, 0, 1), "#c2571a", "#f2a065"),
    (RGBColor(2, 0, 2), "#1a7f6b", "#56cfb4"),
    (RGBColor(2, 0, 3), "#8d4bc7", "#c79bf2"),
    (RGBColor(2, 0, 4), "#7d7420", "#d6cb5e"),
    (RGBColor(2, 0, 5), "#b83a6f", "#f08cb6"),
];

/// The rules that give the charts their colours.
pub fn css() -> String {
    let rule = |stand_in: RGBColor, colour: &str| {
        let RGBColor(r, g, b) = stand_in;
        let name = format!("#{r:02X}{g:02X}{b:02X}");
        format!(
            "svg [fill=\"{name}\"] {{ fill: {colour} }} svg [stroke=\"{name}\"] {{ stroke: {colour} }}\n"
        )
    };
    let side = |dark: bool| -> String {
        HUES.iter()
            .map(|(stand_in, light, deep)| rule(*stand_in, if dark { deep } else { light }))
            .collect()
    };
    format!(
        "{}{}{}@media (prefers-color-scheme: dark) {{\n{}}}\n",
        rule(INK, "var(--faint)"),
        rule(LINE, "var(--line)"),
        side(false),
        side(true)
    )
}

/// One line of a chart: its name and its points, by place on the axis.
type Line = (String, Vec<(f64, f64)>);

struct Chart<'a> {
    unit: &'a str,
    /// What stands under each place of the x axis.
    places: Vec<String>,
    x_name: &'a str,
    lines: Vec<Line>,
}

/// Title and picture of what the points show; nothing where there is no axis to show it on.
pub fn charts(points: &[Point]) -> Vec<(String, String)> {
    let counted: Vec<&Point> = points
        .iter()
        .filter(|point| point.validity != Validity::Void && !point.repeat)
        .collect();
    let inputs: BTreeSet<u64> = counted.iter().map(|point| point.cell.input).collect();
    let loads: BTreeSet<Load> = counted.iter().map(|point| Load::of(&point.cell)).collect();
    let mut all = Vec::new();
    let mut add = |title: &str, chart: Chart<'_>| {
        if chart.lines.iter().any(|(_, line)| line.len() > 1)
            && let Some(svg) = draw(&chart)
        {
            all.push((title.to_string(), svg));
        }
    };
    if loads.len() > 1 {
        let by_load = |of: &dyn Fn(&Point) -> Option<f64>| {
            let name = |input: &u64| format!("{} in", short_count(*input));
            lines(
                &counted,
                &inputs,
                &loads,
                name,
                |p| p.cell.input,
                |p| Load::of(&p.cell),
                of,
            )
        };
        let places: Vec<String> = loads.iter().map(Load::words).collect();
        let rates = loads.iter().any(|load| load.rate > 0);
        let x_name = if rates {
            "requests a second"
        } else {
            "concurrency"
        };
        for (title, unit, of) in figures(true) {
            add(
                title,
                Chart {
                    unit,
                    places: places.clone(),
                    x_name,
                    lines: by_load(&of),
                },
            );
        }
    }
    if inputs.len() > 1 {
        let by_input = |of: &dyn Fn(&Point) -> Option<f64>| {
            lines(
                &counted,
                &loads,
                &inputs,
                Load::title,
                |p| Load::of(&p.cell),
                |p| p.cell.input,
                of,
            )
        };
        let places: Vec<String> = inputs.iter().map(|input| short_count(*input)).collect();
        for (title, unit, of) in figures(false) {
            add(
                title,
                Chart {
                    unit,
                    places: places.clone(),
                    x_name: "input tokens",
                    lines: by_input(&of),
                },
            );
        }
    }
    all
}

type Figure = fn(&Point) -> Option<f64>;

fn figures(by_load: bool) -> Vec<(&'static str, &'static str, Figure)> {
    let output: (&str, &str, Figure) = ("Output of all requests", "tok/s", |p| p.output_tok_s);
    let mut all: Vec<(&str, &str, Figure)> = vec![
        ("Time to first token, median", "ms", |p| p.ttft_ms.p50),
        ("Decode rate of one request", "tok/s", |p| {
            p.decode_tok_s.filter(|_| p.speed_counts())
        }),
    ];
    if by_load {
        all.insert(0, output);
    }
    all
}

/// One line for each of `names`, over the places of `axis`.
fn lines<N: Ord, A: Ord>(
    points: &[&Point],
    names: &BTreeSet<N>,
    axis: &BTreeSet<A>,
    name: impl Fn(&N) -> String,
    name_of: impl Fn(&Point) -> N,
    place_of: impl Fn(&Point) -> A,
    of: &dyn Fn(&Point) -> Option<f64>,
) -> Vec<Line> {
    names
        .iter()
        .map(|wanted| {
            let line = axis.iter().enumerate().filter_map(|(at, place)| {
                let point = points
                    .iter()
                    .find(|p| name_of(p) == *wanted && place_of(p) == *place)?;
                Some((at as f64, of(point)?))
            });
            (name(wanted), line.collect())
        })
        .collect()
}

/// What a cell keeps up, in an order: closed loops by concurrency, open ones by rate in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    rate: u64,
    concurrency: u32,
}

impl Load {
    fn of(cell: &Cell) -> Self {
        match cell.arrivals.rate() {
            Some(rate) => Load {
                rate: (rate.per_second() * 1e3).round() as u64,
                concurrency: 0,
            },
            None => Load {
                rate: 0,
                concurrency: cell.concurrency,
            },
        }
    }

    fn words(&self) -> String {
        if self.rate > 0 {
            format!("{}", self.rate as f64 / 1e3)
        } else {
            self.concurrency.to_string()
        }
    }

    fn title(&self) -> String {
        let words = self.words();
        if self.rate > 0 {
            format!("{words}/s")
        } else {
            format!("{words} at once")
        }
    }
}

/// The picture; `None` only if a chart of this size cannot be laid out.
fn draw(chart: &Chart<'_>) -> Option<String> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        picture(chart, &area).ok()?;
        area.present().ok()?;
    }
    Some(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn picture(chart: &Chart<'_>, area: &Area<'_>) -> Drawn {
    let most = chart
        .lines
        .iter()
        .flat_map(|(_, line)| line.iter().map(|(_, y)| *y))
        .fold(0.0, f64::max);
    let right = (chart.places.len().max(2) - 1) as f64;
    let font = |size: u32| ("sans-serif", size).into_font().color(&INK);
    let mut axes = ChartBuilder::on(area)
        .margin(8)
        .margin_right(90)
        .x_label_area_size(38)
        .y_label_area_size(58)
        .build_cartesian_2d(-0.1..right + 0.1, 0.0..most.max(1e-9) * 1.12)?;
    let label = |x: &f64| -> String {
        let whole = (x - x.round()).abs() < 1e-6 && *x > -0.5;
        let place = whole
            .then(|| chart.places.get(x.round() as usize))
            .flatten();
        place.cloned().unwrap_or_default()
    };
    axes.configure_mesh()
        .disable_x_mesh()
        .bold_line_style(LINE)
        .light_line_style(TRANSPARENT)
        .axis_style(LINE)
        .y_labels(5)
        .y_label_formatter(&|y| format!("{y:.0}"))
        .x_labels(0)
        .label_style(font(13))
        .y_desc(chart.unit)
        .x_desc(chart.x_name)
        .axis_desc_style(font(13))
        .draw()?;
    for (at, _) in chart.places.iter().enumerate() {
        let (x, y) = axes.backend_coord(&(at as f64, 0.0));
        let style = font(13).pos(Pos::new(HPos::Center, VPos::Top));
        area.draw(&Text::new(label(&(at as f64)), (x, y + 5), style))?;
    }
    for (index, (name, line)) in chart.lines.iter().enumerate() {
        let (hue, _, _) = HUES[index % HUES.len()];
        axes.draw_series(LineSeries::new(line.iter().copied(), hue.stroke_width(2)))?;
        axes.draw_series(line.iter().map(|at| Circle::new(*at, 3, hue.filled())))?;
        if let Some((x, y)) = line.last() {
            let (x, y) = axes.backend_coord(&(*x, *y));
            let style = ("sans-serif", 13)
                .into_font()
                .color(&hue)
                .pos(Pos::new(HPos::Left, VPos::Center));
            let last = line
                .last()
                .map_or(String::new(), |(_, y)| format!("{y:.0}"));
            let words = if chart.lines.len() > 1 {
                format!("{last} {name}")
            } else {
                last
            };
            area.draw(&Text::new(words, (x + 8, y), style))?;
        }
    }
    Ok(())
}
