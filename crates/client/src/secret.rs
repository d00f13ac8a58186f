//! Text that must not be printed.

use std::fmt;

/// A token. `Debug` does not print it; [`Secret::expose`] returns the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter2"))), "Some(Secret)");
        assert_eq!(Secret::new("hunter2").expose(), "hunter2");
    }
}
