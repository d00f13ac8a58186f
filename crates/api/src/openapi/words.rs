//! Lists of words as one enumeration, which generators of clients turn into one type. A list whose words have
//! descriptions is generated as a choice of constants.

use serde_json::{Value, json};

/// Turns every choice of constant words into an enumeration; the description says what each word means.
pub(super) fn join_words(within: &mut Value) {
    match within {
        Value::Object(members) => {
            members.values_mut().for_each(join_words);
            let Some(words) = members.get("oneOf").and_then(Value::as_array).and_then(|choices| words_of(choices))
            else {
                return;
            };
            let own = members.get("description").and_then(Value::as_str).unwrap_or_default();
            let meanings = words.iter().filter(|(_, about)| !about.is_empty());
            let meanings = meanings.map(|(word, about)| format!("`{word}`: {about}"));
            let about: Vec<String> = [own.to_owned()].into_iter().chain(meanings).filter(|t| !t.is_empty()).collect();
            let words: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
            let joined = json!({ "type": "string", "enum": words });
            members.remove("oneOf");
            members.insert("description".into(), about.join(" ").into());
            members.extend(joined.as_object().cloned().unwrap_or_default());
        }
        Value::Array(items) => items.iter_mut().for_each(join_words),
        _ => {}
    }
}

/// The words of a choice with their descriptions, if it consists of words only.
fn words_of(choices: &[Value]) -> Option<Vec<(String, String)>> {
    let mut words = Vec::new();
    for choice in choices {
        let about = choice["description"].as_str().unwrap_or_default();
        match (&choice["const"], &choice["enum"]) {
            (Value::String(word), _) => words.push((word.clone(), about.to_owned())),
            (_, Value::Array(several)) => {
                for word in several {
                    words.push((word.as_str()?.to_owned(), about.to_owned()));
                }
            }
            _ => return None,
        }
    }
    Some(words)
}
