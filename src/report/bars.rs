//! A chart that every reader of plain text can see.

const WIDTH: f64 = 40.0;

/// One bar a line, as long as its value: label, value, bar. Values that are not finite are left out.
pub(super) fn bars(unit: &str, lines: &[(String, f64)], out: &mut String) {
    let lines: Vec<&(String, f64)> = lines
        .iter()
        .filter(|(_, value)| value.is_finite())
        .collect();
    let most = lines.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    if lines.len() < 2 || most <= 0.0 {
        return;
    }
    let label_width = lines
        .iter()
        .map(|(label, _)| label.chars().count())
        .max()
        .unwrap_or(0);
    let value_width = format!("{most:.1}").len();
    out.push_str("```text\n");
    for (label, value) in lines {
        let eighths = (value.max(0.0) / most * WIDTH * 8.0).round() as usize;
        let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
            .get(eighths % 8)
            .copied()
            .unwrap_or_default();
        let line = format!(
            "{label:>label_width$}  {value:>value_width$.1} {unit}  {}{part}",
            "█".repeat(eighths / 8)
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.push_str("```\n\n");
}
