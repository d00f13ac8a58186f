//! A minimal parser of Rust that finds the arms of a `match`.

/// The source with comments, strings and characters replaced by spaces; its length does not change.
fn code_only(source: &str) -> Vec<u8> {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match &bytes[at..] {
            [b'/', b'/', ..] => bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n),
            [b'/', b'*', ..] => source[at..].find("*/").map_or(bytes.len(), |n| at + n + 2),
            [b'r', b'"' | b'#', ..] if at == 0 || !is_word(bytes[at - 1]) => {
                let hashes = bytes[at + 1..].iter().take_while(|b| **b == b'#').count();
                if bytes.get(at + 1 + hashes) != Some(&b'"') {
                    at += 1;
                    continue;
                }
                let close = format!("\"{}", "#".repeat(hashes));
                let from = at + 2 + hashes;
                source.get(from..).and_then(|rest| rest.find(&close)).map_or(bytes.len(), |n| from + n + close.len())
            }
            [b'"', ..] => quoted(bytes, at, b'"'),
            // A character and not a lifetime.
            [b'\'', b'\\', ..] | [b'\'', _, b'\'', ..] => quoted(bytes, at, b'\''),
            _ => {
                at += 1;
                continue;
            }
        };
        out[at..end].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
        at = end;
    }
    out
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn quoted(bytes: &[u8], open: usize, quote: u8) -> usize {
    let mut at = open + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Where the bracket that opens at `open` closes.
fn closing(code: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (place, byte) in code.iter().enumerate().skip(open) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(place);
                }
            }
            _ => {}
        }
    }
    None
}

/// The lines of catch-all arms in matches whose other arms name a variant of one of the enums.
pub fn catch_alls(source: &str, enums: &[&str]) -> Vec<usize> {
    let code = code_only(source);
    let text = String::from_utf8_lossy(&code).into_owned();
    let mut found = Vec::new();
    for (start, _) in text.match_indices("match ") {
        if start > 0 && is_word(code[start - 1]) {
            continue;
        }
        // The body is the first brace that is not inside brackets of what is matched on.
        let mut at = start + "match ".len();
        while at < code.len() && code[at] != b'{' {
            at = match code[at] {
                b'(' | b'[' => closing(&code, at).map_or(code.len(), |end| end + 1),
                _ => at + 1,
            };
        }
        let Some(end) = closing(&code, at.min(code.len())) else { continue };
        let arms = arms(&text, &code, at + 1, end);
        let names = |pattern: &str| {
            enums.iter().any(|name| {
                pattern
                    .match_indices(&format!("{name}::"))
                    .any(|(at, _)| at == 0 || !is_word(pattern.as_bytes()[at - 1]))
            })
        };
        // A condition is not part of the pattern.
        if arms.iter().any(|(_, arm)| names(arm.split(" if ").next().unwrap_or(arm))) {
            let rest = arms.iter().filter(|(_, pattern)| takes_all(pattern));
            found.extend(rest.map(|(at, _)| text[..*at].matches('\n').count() + 1));
        }
    }
    found
}

/// Whether a pattern is `_`, a name that the value is bound to, or a tuple of only these.
fn takes_all(pattern: &str) -> bool {
    let pattern = pattern.trim();
    let inner = pattern.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    if let Some(inner) = inner {
        return inner.split(',').all(takes_all);
    }
    pattern.is_empty()
        || pattern == ".."
        || pattern == "_"
        || pattern.starts_with(|c: char| c.is_ascii_lowercase())
            && pattern.bytes().all(is_word)
            && !matches!(pattern, "true" | "false")
}

/// The patterns of the arms in a range of the source, with their conditions.
fn arms(text: &str, code: &[u8], from: usize, to: usize) -> Vec<(usize, String)> {
    let mut arms = Vec::new();
    let mut at = from;
    while at < to {
        while at < to && (code[at].is_ascii_whitespace() || code[at] == b',') {
            at += 1;
        }
        // Attributes are skipped; the arms inside a macro repetition are read too.
        if code[at..].starts_with(b"#[") {
            at = closing(code, at + 1).map_or(to, |end| end + 1);
            continue;
        }
        if code[at..].starts_with(b"$(") {
            let end = closing(code, at + 1).unwrap_or(to);
            arms.extend(self::arms(text, code, at + 2, end));
            at = (end + 1..to).find(|at| matches!(code[*at], b'*' | b'+' | b'?')).map_or(to, |at| at + 1);
            continue;
        }
        let begin = at;
        while at < to && !text[at..].starts_with("=>") {
            at = match code[at] {
                b'(' | b'[' | b'{' => closing(code, at).map_or(to, |end| end + 1),
                _ => at + 1,
            };
        }
        if at >= to {
            break;
        }
        arms.push((begin, text[begin..at].trim().to_owned()));
        at += 2;
        while at < to && code[at].is_ascii_whitespace() {
            at += 1;
        }
        let block = code[at] == b'{';
        while at < to && code[at] != b',' {
            at = match code[at] {
                b'(' | b'[' | b'{' => closing(code, at).map_or(to, |end| end + 1),
                _ => at + 1,
            };
            if block && code[at - 1] == b'}' {
                break;
            }
        }
    }
    arms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catch_all_is_found_and_nothing_else() {
        let found = |body: &str| catch_alls(&format!("fn f() {{ match &record.body {{ {body} }} }}"), &["Body"]);
        assert_eq!(found("Body::A(a) => 1, Body::B { .. } => 2,"), [0; 0]);
        assert_eq!(found("Body::A(a) => 1, _ => 2"), [1]);
        assert_eq!(found("Body::A(a) if a > 1 => { g(|x| x, 1) }\n _ => {}"), [2]);
        assert_eq!(found("Body::A(a) => 1,\n other => h(other)"), [2]);
        assert_eq!(found("Some(Body::A(_)) => 1,\n None => 2"), [0; 0]);
        assert_eq!(found("(Body::A(_), _) => \"_ =>\",\n (_, _) => '_'"), [2]);
        assert_eq!(found("Ok(record) if matches!(record, Body::A(_)) => 1, _ => 2"), [0; 0]);
        // Matches over another enum, and a match inside an arm.
        assert_eq!(found("Other::A => 1, _ => 2"), [0; 0]);
        assert_eq!(found("Body::A(n) => match n { 1 => 2, _ => 3 },\n Body::B => 4"), [0; 0]);
        assert_eq!(found("SomeBody::A => 1, _ => 2"), [0; 0]);
        // Macro repetitions and attributes.
        assert_eq!(found("$(Body::$kind(_) => 1,)*\n #[allow(x)]\n _ => 2"), [3]);
        // Arms with a condition, and text in a comment, are not catch-alls.
        assert_eq!(found("Body::A(_) => 1, // _ => 2\n Body::B => 3"), [0; 0]);
        assert_eq!(found("Body::A(_) => 1, _ if late => 2, Body::B => 3"), [0; 0]);
    }
}
