//! Addresses on the web, as people give them.

use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::limits::WEB_ADDRESS_BYTES_MAX;
use std::fmt;

/// An `http` or `https` address: visible ASCII without spaces, at most 2,048 bytes. Whether something can be delivered to
/// it is decided when that is tried.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebAddress(Box<str>);

/// Why a text is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadWebAddress {
    Scheme,
    TooLong,
    Characters,
    /// There is a user name or password in it, which would be sealed.
    Credentials,
    NoHost,
}

impl fmt::Display for BadWebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "an address begins with https:// or http://",
            Self::TooLong => "an address has at most 2048 bytes",
            Self::Characters => "an address has visible ASCII characters only; encode others with percent signs",
            Self::Credentials => "an address must not contain a user name or a password",
            Self::NoHost => "an address names a host",
        })
    }
}
impl std::error::Error for BadWebAddress {}

impl WebAddress {
    pub fn new(text: &str) -> Result<Self, BadWebAddress> {
        Self::check(text).map(|()| Self(text.into()))
    }

    fn check(text: &str) -> Result<(), BadWebAddress> {
        if text.len() > WEB_ADDRESS_BYTES_MAX {
            return Err(BadWebAddress::TooLong);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadWebAddress::Characters);
        }
        let rest = text.strip_prefix("https://").or(text.strip_prefix("http://")).ok_or(BadWebAddress::Scheme)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(BadWebAddress::Credentials);
        }
        if authority.is_empty() || authority.starts_with(':') {
            return Err(BadWebAddress::NoHost);
        }
        Ok(())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn borrow<'a>(r: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
        let n = r.count(WEB_ADDRESS_BYTES_MAX)?;
        let text = std::str::from_utf8(r.take(n)?).map_err(|_| DecodeError::BadText)?;
        Self::check(text).map_err(|_| DecodeError::BadText)?;
        Ok(text)
    }
}

impl fmt::Display for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for WebAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Field for WebAddress {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(self.0.len() as u64, out);
        out.extend_from_slice(self.0.as_bytes());
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::borrow(r).map(|text| Self(text.into()))
    }
    fn validate(r: &mut Reader<'_>) -> Result<(), DecodeError> {
        Self::borrow(r).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_an_address() {
        for good in ["https://example.com/hook?a=1", "http://127.0.0.1:8080", "https://[::1]/", "https://x/a@b"] {
            assert_eq!(WebAddress::new(good).map(|address| address.to_string()), Ok(good.to_owned()));
        }
        let long = format!("https://example.com/{}", "a".repeat(WEB_ADDRESS_BYTES_MAX));
        for (bad, why) in [
            ("ftp://example.com", BadWebAddress::Scheme),
            ("example.com", BadWebAddress::Scheme),
            ("https://", BadWebAddress::NoHost),
            ("https:///path", BadWebAddress::NoHost),
            ("https://:80/", BadWebAddress::NoHost),
            ("https://exa mple.com", BadWebAddress::Characters),
            ("https://bücher.example", BadWebAddress::Characters),
            ("https://user:secret@example.com/", BadWebAddress::Credentials),
            (&long, BadWebAddress::TooLong),
        ] {
            assert_eq!(WebAddress::new(bad), Err(why), "{bad}");
        }
    }
}
