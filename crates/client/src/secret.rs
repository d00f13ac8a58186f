//! Text that must not be printed.

use std::fmt;
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// A token. `Debug` does not print it; [`Secret::expose`] returns the text. It is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl ZeroizeOnDrop for Secret {}

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
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
    fn a_secret_is_overwritten_when_it_is_dropped() {
        fn overwritten<T: ZeroizeOnDrop>(_: &T) {}
        let secret = Secret::new("hunter2");
        overwritten(&secret);
        overwritten(&secret.0);
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter2"))), "Some(Secret)");
        assert_eq!(Secret::new("hunter2").expose(), "hunter2");
    }
}
