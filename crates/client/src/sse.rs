//! A parser of server-sent events (WHATWG HTML, "Interpreting an event stream").

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The last ID in the stream, sent with this event or before it.
    pub(crate) id: Option<String>,
    /// `message` if the stream names none.
    pub(crate) event: String,
    pub(crate) data: String,
}

/// A line or an event is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Larger than the JSON of the largest record: a thousand leases with their events.
const EVENT_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    /// Whether the last byte was a carriage return; a line feed that follows belongs to the same line end.
    after_return: bool,
    begun: bool,
    id: Option<String>,
    event: String,
    data: String,
    has_data: bool,
    /// The ID to continue from: the last complete one, also if it was sent without an event.
    pub(crate) position: Option<String>,
    /// How long the server asks to wait before connecting again.
    pub(crate) retry_ms: Option<u64>,
}

impl Parser {
    /// Parses bytes, and appends the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<Frame>) -> Result<(), TooLong> {
        for &byte in bytes {
            let second_half = std::mem::take(&mut self.after_return) && byte == b'\n';
            match byte {
                _ if second_half => {}
                b'\r' | b'\n' => {
                    self.after_return = byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    self.take_line(&line, out);
                }
                _ if self.line.len() + self.data.len() >= EVENT_BYTES_MAX => return Err(TooLong),
                _ => self.line.push(byte),
            }
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], out: &mut Vec<Frame>) {
        let text = String::from_utf8_lossy(line);
        // The stream may begin with a byte order mark.
        let text = if std::mem::replace(&mut self.begun, true) { &*text } else { text.trim_start_matches('\u{feff}') };
        if text.is_empty() {
            return self.dispatch(out);
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" => self.retry_ms = value.parse().ok().or(self.retry_ms),
            // A comment, or an unknown field.
            _ => {}
        }
    }

    fn dispatch(&mut self, out: &mut Vec<Frame>) {
        self.position.clone_from(&self.id);
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            let event = if event.is_empty() { "message".into() } else { event };
            out.push(Frame { id: self.id.clone(), event, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pieces: &[&str]) -> (Vec<Frame>, Parser) {
        let (mut parser, mut out) = (Parser::default(), Vec::new());
        for piece in pieces {
            parser.push(piece.as_bytes(), &mut out).expect("short");
        }
        (out, parser)
    }

    fn frame(id: Option<&str>, event: &str, data: &str) -> Frame {
        Frame { id: id.map(str::to_owned), event: event.into(), data: data.into() }
    }

    #[test]
    fn events_are_read_with_their_ids() {
        let (events, parser) =
            parse(&["retry: 250\n: hello\n\nid: 7\nevent: lease.granted\ndata: {\"a\":1}\n\ndata\n\n"]);
        assert_eq!(events, [frame(Some("7"), "lease.granted", "{\"a\":1}"), frame(Some("7"), "message", "")]);
        assert_eq!(parser.retry_ms, Some(250));
        assert_eq!(parse(&["id: 8\n\nid: 9\n"]).1.position, Some("8".into()));
    }

    #[test]
    fn lines_end_in_three_ways_and_anywhere() {
        let text = "\u{feff}data: a\r\ndata: b\rdata:c\n\r\nid:9\r\rdata: d\n\n";
        let expected = [frame(None, "message", "a\nb\nc"), frame(Some("9"), "message", "d")];
        assert_eq!(parse(&[text]).0, expected);
        for cut in 0..text.len() {
            let (mut parser, mut out) = (Parser::default(), Vec::new());
            parser.push(&text.as_bytes()[..cut], &mut out).unwrap();
            parser.push(&text.as_bytes()[cut..], &mut out).unwrap();
            assert_eq!(out, expected, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_unfinished_is_no_event() {
        assert_eq!(parse(&["id: 1\ndata: x\n"]).0, []);
        assert_eq!(parse(&["id: 1\nevent: x\n\n"]).0, []);
        assert_eq!(parse(&["id: a\0b\ndata: x\n\n"]).0, [frame(None, "message", "x")]);
    }

    #[test]
    fn an_event_has_a_limit() {
        let mut parser = Parser::default();
        let long = vec![b'x'; EVENT_BYTES_MAX + 1];
        assert_eq!(parser.push(&long, &mut Vec::new()), Err(TooLong));
    }
}
