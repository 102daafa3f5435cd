//! Text from outside, made harmless in Markdown.

use crate::units::clean;

/// Plain text: nothing in it is markup, HTML, a link or the end of a table cell.
pub(super) fn text(outside: &str) -> String {
    let outside = clean(&outside.replace('\n', " "));
    let mut out = String::with_capacity(outside.len());
    let outside = outside.trim();
    // What would begin a list if it stands first: `- x`, `+ x`, `1. x`.
    let number = outside.find(|c: char| !c.is_ascii_digit()).filter(|end| {
        let rest = outside[*end..].strip_prefix(['.', ')']);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    for (at, c) in outside.char_indices() {
        if number == Some(at) || (at == 0 && matches!(c, '-' | '+')) {
            out.push('\\');
        }
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A block of lines as they are. The fence is longer than any in the text.
pub(super) fn block(outside: &str) -> String {
    let lines: Vec<String> = outside.lines().map(clean).collect();
    let longest = lines
        .iter()
        .flat_map(|line| line.split(|c| c != '`').map(str::len))
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_is_markup() {
        assert_eq!(
            text("a|b\n# x <script>&[l](u) `c` *d* \u{1b}[31me\\"),
            "a\\|b \\# x &lt;script&gt;&amp;\\[l\\](u) \\`c\\` \\*d\\* e\\\\"
        );
        assert_eq!(text("- x 1. y"), "\\- x 1. y");
        assert_eq!(text("12. x"), "12\\. x");
        assert_eq!(text("0.5.11"), "0.5.11");
        assert_eq!(text("–5 ü"), "–5 ü");
    }

    #[test]
    fn a_block_cannot_be_left_from_inside() {
        assert_eq!(
            block("x\n````\ny\u{1b}[2J"),
            "`````text\nx\n````\ny\n`````\n"
        );
        assert_eq!(block("x"), "```text\nx\n```\n");
    }
}
