//! Text laid out in columns of the terminal: wrapped, cut and padded by display width, and numbers drawn with block
//! characters.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Wraps text into lines of at most `width` columns, between words. A longer word, such as a path, stays whole, so
/// that it can be copied.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.into());
        }
    }
    lines
}

/// Cuts text to at most `width` columns. Cut text ends with "…".
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.into();
    }
    let Some(room) = width.checked_sub(1) else {
        return String::new();
    };
    let mut used = 0;
    let kept = text.chars().take_while(|character| {
        used += character.width().unwrap_or(0);
        used <= room
    });
    let mut short: String = kept.collect();
    short.push('…');
    short
}

/// Pads text with blanks to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Draws values as a row of small columns. A value of `top` has the full height.
pub fn sparkline(values: &[u64], top: u64) -> String {
    const COLUMNS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let last = COLUMNS.len() - 1;
    values
        .iter()
        .map(|value| {
            let share = *value as f64 / top.max(1) as f64;
            let level = (share * last as f64).round() as usize;
            COLUMNS.get(level).copied().unwrap_or('█')
        })
        .collect()
}

/// Draws a bar of `width` cells, of which the given share (0 to 1) is filled.
pub fn bar(share: f64, width: usize) -> String {
    let filled = ((share.clamp(0.0, 1.0) * width as f64).round() as usize).min(width);
    format!("{}{}", "█".repeat(filled), "░".repeat(width - filled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sparkline_rises_with_its_values() {
        assert_eq!(sparkline(&[0, 1, 2, 3, 4, 5, 6, 7], 7), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[9], 3), "█");
        assert_eq!(sparkline(&[0, 0], 0), "▁▁");
    }

    #[test]
    fn a_bar_never_overflows() {
        assert_eq!(bar(0.5, 4), "██░░");
        assert_eq!(bar(7.0, 4), "████");
        assert_eq!(bar(f64::NAN, 4), "░░░░");
    }

    proptest! {
        #[test]
        fn wrapping_loses_no_word(text in "[a-zé ]{0,80}", width in 1usize..30) {
            let lines = wrap(&text, width);
            let words: Vec<&str> = text.split_whitespace().collect();
            prop_assert_eq!(lines.join(" "), words.join(" "));
            for line in lines {
                prop_assert!(line.width() <= width || !line.contains(' '), "{}", line);
            }
        }

        #[test]
        fn cut_text_fits(text: String, width in 0usize..40) {
            prop_assert!(cut(&text, width).width() <= width);
        }
    }
}
