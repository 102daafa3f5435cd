//! Small readers for figures in foreign texts.

/// The whole number right behind the first `needle`, thousands separators and a sign of a fraction ignored: `262,144` is 262144,
/// `524288.0` is 524288. Blanks between are skipped.
pub fn number_after(text: &str, needle: &str) -> Option<u64> {
    let at = text.find(needle)? + needle.len();
    leading_number(text.get(at..)?)
}

/// The whole number right before the first `needle`: `32768 cells`.
pub fn number_before(text: &str, needle: &str) -> Option<u64> {
    let head = text.get(..text.find(needle)?)?.trim_end();
    let from = head
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_ascii_digit() || *c == ',')
        .last()?
        .0;
    leading_number(head.get(from..)?)
}

fn leading_number(text: &str) -> Option<u64> {
    let digits: String = text
        .trim_start()
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

/// The last percentage that a progress bar shows: `40%|####` and `40% Completed`. A line may hold several states of one bar, drawn over
/// each other with carriage returns.
pub fn last_percent(text: &str) -> Option<u8> {
    let at = text.rfind('%')?;
    let head = text.get(..at)?;
    let from = head
        .char_indices()
        .rev()
        .take_while(|(_, c)| c.is_ascii_digit())
        .last()?
        .0;
    head.get(from..)?.parse::<u8>().ok().filter(|p| *p <= 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_where_the_texts_put_them() {
        assert_eq!(
            number_after("size: 262,144 tokens", "size: "),
            Some(262_144)
        );
        assert_eq!(number_after("(max=524288.0 or", "max="), Some(524_288));
        assert_eq!(
            number_after("n_ctx      =  4096", "n_ctx      ="),
            Some(4096)
        );
        assert_eq!(number_after("size: many", "size: "), None);
        assert_eq!(number_after("nothing", "size: "), None);
        assert_eq!(
            number_before("MiB ( 32768 cells, 16 layers", " cells"),
            Some(32_768)
        );
        assert_eq!(number_before("é 7 cells", " cells"), Some(7));
        assert_eq!(number_before("no cells", " cells"), None);
    }

    #[test]
    fn the_newest_state_of_a_bar_counts() {
        assert_eq!(last_percent("shards:  40% Completed | 2/5"), Some(40));
        assert_eq!(
            last_percent("shards:   0% Completed | 0/1shards: 100% Completed | 1/1"),
            Some(100)
        );
        assert_eq!(last_percent("Capturing:  ▏7%|▋         | 2/28"), Some(7));
        assert_eq!(last_percent("%"), None);
        assert_eq!(last_percent("999% of it"), None);
        assert_eq!(last_percent("nothing"), None);
    }
}
