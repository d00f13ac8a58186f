//! The details of one object, shown as names and values.

use crate::table::{Align, Table};
use crate::term::{Paint, Style};
use std::fmt::Display;

pub(super) struct Details(Table);

impl Details {
    pub(super) fn new() -> Self {
        Self(Table::new(&[("", Align::Left), ("", Align::Left)]))
    }

    pub(super) fn add(mut self, name: &str, value: impl Display) -> Self {
        self.0.styled([(name.to_owned(), Style::Dim), (value.to_string(), Style::Plain)]);
        self
    }

    /// Adds a value that may be missing.
    pub(super) fn maybe(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.add(name, value),
            None => self,
        }
    }

    pub(super) fn table(self) -> Table {
        self.0
    }

    pub(super) fn text(&self, paint: Paint) -> String {
        self.0.text(paint)
    }
}

/// The word that the API uses for a value, with underscores.
pub(super) fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}

/// The value, or a dash.
pub(super) fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}
