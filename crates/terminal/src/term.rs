//! The terminal: colours, bars and its size. Escape sequences are never written to a pipe or a file.

use std::io::{self, IsTerminal, Write};
use unicode_width::UnicodeWidthChar;

/// Prints a message to stderr.
pub fn say(text: &str) {
    // If stderr is closed, nothing can be done about it.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    #[default]
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

/// Whether to use colours.
#[derive(Clone, Copy, Debug)]
pub struct Paint(bool);

impl Paint {
    /// No colours.
    pub const PLAIN: Self = Self(false);

    pub fn stdout() -> Self {
        Self(io::stdout().is_terminal() && colours_wanted())
    }
    pub fn stderr() -> Self {
        Self(io::stderr().is_terminal() && colours_wanted())
    }
    pub fn paint(self, style: Style, text: &str) -> String {
        let code = match style {
            _ if !self.0 || text.is_empty() => return text.to_owned(),
            Style::Plain => return text.to_owned(),
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Red => "31",
            Style::Green => "32",
            Style::Yellow => "33",
            Style::Blue => "34",
            Style::Magenta => "35",
            Style::Cyan => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
    pub fn bold(self, text: &str) -> String {
        self.paint(Style::Bold, text)
    }
    pub fn dim(self, text: &str) -> String {
        self.paint(Style::Dim, text)
    }
}

/// <https://no-color.org>: a value that is not empty means no colours.
fn colours_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Columns and rows of the terminal on stderr, if it supports redrawing.
pub fn drawable() -> Option<(usize, usize)> {
    if !io::stderr().is_terminal() || std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

/// Columns and rows of the terminal on stdout, if it is one.
pub fn screen() -> Option<(usize, usize)> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stdout).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

/// One part of a bar.
pub struct Part {
    pub amount: u64,
    pub glyph: char,
    pub style: Style,
}

/// A bar of `width` characters for `total`; the rest is filled with `·`. A part above zero has at least one character.
pub fn bar(parts: &[Part], total: u64, width: usize, paint: Paint) -> String {
    let mut text = String::new();
    let mut left = width;
    let cells = |amount: u64| {
        let scaled = u128::from(amount) * width as u128 / u128::from(total.max(1));
        usize::try_from(scaled).expect("at most the width").max(usize::from(amount > 0))
    };
    for part in parts {
        let count = cells(part.amount).min(left);
        left -= count;
        text.push_str(&paint.paint(part.style, &part.glyph.to_string().repeat(count)));
    }
    text.push_str(&paint.dim(&"·".repeat(left)));
    text
}

/// A bar with eighths of a character at its end.
pub fn fine_bar(amount: u64, total: u64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = u128::from(amount.min(total)) * (width as u128 * 8) / u128::from(total.max(1));
    let eighths = usize::try_from(eighths).expect("at most eight widths").max(usize::from(amount > 0));
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// The number of columns that a text takes, without its colour codes.
pub fn columns(text: &str) -> usize {
    let mut count = 0;
    let mut in_escape = false;
    for c in text.chars() {
        match c {
            '\x1b' => in_escape = true,
            'm' if in_escape => in_escape = false,
            _ if in_escape => {}
            _ => count += c.width().unwrap_or(0),
        }
    }
    count
}

/// The text cut to `width` columns, with its colours reset.
pub fn fit(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let (mut out, mut count, mut in_escape, mut coloured) = (String::new(), 0, false, false);
    for c in text.chars() {
        match c {
            '\x1b' => (in_escape, coloured) = (true, true),
            'm' if in_escape => in_escape = false,
            _ if in_escape => {}
            _ if count + c.width().unwrap_or(0) > width => break,
            _ => count += c.width().unwrap_or(0),
        }
        out.push(c);
    }
    if coloured {
        out.push_str("\x1b[0m");
    }
    out
}

/// The program as it was called, for commands that are printed for the user to run.
pub fn program() -> String {
    let name = std::env::args_os().next().unwrap_or_else(|| "leasehold".into());
    shell_word(&name.to_string_lossy())
}

/// A word, quoted for a shell if necessary.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_their_width() {
        let part = |amount, glyph| Part { amount, glyph, style: Style::Green };
        assert_eq!(bar(&[part(5, '█'), part(1, '▒')], 20, 10, Paint(false)), "██▒·······");
        assert_eq!(bar(&[part(30, '█')], 20, 4, Paint(false)), "████");
        assert_eq!(bar(&[], 0, 3, Paint(false)), "···");
        assert_eq!(columns(&bar(&[part(5, '█')], 20, 10, Paint(true))), 10);
        assert_eq!(fine_bar(1, 2, 3), "█▌");
    }

    #[test]
    fn texts_are_cut_by_what_is_seen() {
        let painted = Paint(true).paint(Style::Red, "abcdef");
        assert_eq!(fit(&painted, 3), "\x1b[31mabc\x1b[0m");
        assert_eq!(fit("abc", 3), "abc");
        // A character of two columns is not cut in half.
        assert_eq!([columns("物理学"), columns("e\u{301}")], [6, 1]);
        assert_eq!([fit("物理学", 5), fit("物理学", 6)], ["物理", "物理学"]);
        assert_eq!(shell_word("/tmp/a b"), "'/tmp/a b'");
        assert_eq!(shell_word("./leasehold"), "./leasehold");
    }
}
