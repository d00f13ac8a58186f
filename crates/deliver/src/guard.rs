//! Which addresses webhooks may be sent to (SEMANTICS 13).
//!
//! A tenant chooses the URL and the daemon connects from inside the operator's network, so an address must be public or
//! be allowed by the configuration. What is checked is what is connected to: the name is resolved once.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use url::{Host, Url};

/// A network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    bits: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCidr(pub String);

impl fmt::Display for BadCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a network in CIDR notation, such as 10.0.0.0/8 or fd00::/8: {}", self.0)
    }
}
impl std::error::Error for BadCidr {}

impl Cidr {
    const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Self {
        Self { network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
    }
    const fn v6(a: u16, b: u16, bits: u8) -> Self {
        Self { network: IpAddr::V6(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)), bits }
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let rest = 32 - u32::from(self.bits);
                (network.to_bits() ^ address.to_bits()).checked_shr(rest).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let rest = 128 - u32::from(self.bits);
                (network.to_bits() ^ address.to_bits()).checked_shr(rest).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = BadCidr;
    fn from_str(text: &str) -> Result<Self, BadCidr> {
        let bad = || BadCidr(text.to_owned());
        let (network, bits) = text.split_once('/').ok_or_else(bad)?;
        let network: IpAddr = network.parse().map_err(|_| bad())?;
        let bits: u8 = bits.parse().map_err(|_| bad())?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        if bits > most { Err(bad()) } else { Ok(Self { network, bits }) }
    }
}

/// IPv4 networks that are not public: the IANA registry of special-purpose addresses, and multicast.
const NOT_PUBLIC_V4: [Cidr; 16] = [
    Cidr::v4(0, 0, 0, 0, 8),
    Cidr::v4(10, 0, 0, 0, 8),
    Cidr::v4(100, 64, 0, 0, 10),
    Cidr::v4(127, 0, 0, 0, 8),
    Cidr::v4(169, 254, 0, 0, 16),
    Cidr::v4(172, 16, 0, 0, 12),
    Cidr::v4(192, 0, 0, 0, 24),
    Cidr::v4(192, 0, 2, 0, 24),
    Cidr::v4(192, 31, 196, 0, 24),
    Cidr::v4(192, 88, 99, 0, 24),
    Cidr::v4(192, 168, 0, 0, 16),
    Cidr::v4(198, 18, 0, 0, 15),
    Cidr::v4(198, 51, 100, 0, 24),
    Cidr::v4(203, 0, 113, 0, 24),
    Cidr::v4(224, 0, 0, 0, 4),
    Cidr::v4(240, 0, 0, 0, 4),
];

/// Everything public in IPv6 is in here; IPv4-mapped and NAT64 addresses, for example, are not.
const UNICAST_V6: Cidr = Cidr::v6(0x2000, 0, 3);
/// And these are not public either: assignments to protocols (with Teredo and benchmarks), documentation, and 6to4.
const NOT_PUBLIC_V6: [Cidr; 4] =
    [Cidr::v6(0x2001, 0, 23), Cidr::v6(0x2001, 0xdb8, 32), Cidr::v6(0x2002, 0, 16), Cidr::v6(0x3fff, 0, 20)];

/// Whether everybody may be expected to reach the address.
pub fn is_public(address: IpAddr) -> bool {
    let within = |networks: &[Cidr]| networks.iter().any(|network| network.contains(address));
    match address {
        IpAddr::V4(_) => !within(&NOT_PUBLIC_V4),
        IpAddr::V6(_) => UNICAST_V6.contains(address) && !within(&NOT_PUBLIC_V6),
    }
}

/// What the configuration allows besides public addresses and https.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    pub allowed: Vec<Cidr>,
    pub allow_http: bool,
}

/// Why a URL or an address is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    Url(&'static str),
    NotPublic(IpAddr),
    Http,
    NoAddress,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(why) => write!(f, "the URL of the webhook is refused: {why}"),
            Self::NotPublic(address) => write!(f, "the webhook's address {address} is not public, and not allowed"),
            Self::Http => f.write_str("http is not allowed for webhooks; use https"),
            Self::NoAddress => f.write_str("the name of the webhook has no address"),
        }
    }
}
impl std::error::Error for Refused {}

/// The parts of a URL that a request needs. Addresses in any notation are addresses here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub host: Host<String>,
    pub port: u16,
    pub is_tls: bool,
    /// Path and query.
    pub path: String,
    /// The value of the header Host.
    pub authority: String,
}

impl Endpoint {
    /// Reads a URL. Does not say whether its address is allowed.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let url = Url::parse(text).map_err(|_| Refused::Url("it cannot be parsed"))?;
        let is_tls = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err(Refused::Url("it begins with neither https:// nor http://")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Url("it contains a user name or a password"));
        }
        let host = url.host().ok_or(Refused::Url("it has no host"))?.to_owned();
        let port = url.port_or_known_default().ok_or(Refused::Url("it has no port"))?;
        let authority = url.port().map_or_else(|| host.to_string(), |port| format!("{host}:{port}"));
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        Ok(Self { port, is_tls, path: path.to_owned(), authority, host })
    }

    /// The address, if the URL names one.
    pub fn literal(&self) -> Option<SocketAddr> {
        match self.host {
            Host::Ipv4(address) => Some((address, self.port).into()),
            Host::Ipv6(address) => Some((address, self.port).into()),
            Host::Domain(_) => None,
        }
    }
}

impl Guard {
    /// Whether a request may go to these addresses of a name: all of them have to be allowed.
    pub fn check(&self, is_tls: bool, addresses: &[SocketAddr]) -> Result<(), Refused> {
        let is_listed = |address: &SocketAddr| self.allowed.iter().any(|network| network.contains(address.ip()));
        if addresses.is_empty() {
            return Err(Refused::NoAddress);
        }
        match addresses.iter().find(|address| !is_public(address.ip()) && !is_listed(address)) {
            Some(address) => Err(Refused::NotPublic(address.ip())),
            None if is_tls || self.allow_http || addresses.iter().all(is_listed) => Ok(()),
            None => Err(Refused::Http),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(guard: &Guard, url: &str) -> Result<(), Refused> {
        let endpoint = Endpoint::parse(url)?;
        guard.check(endpoint.is_tls, &[endpoint.literal().expect("an address")])
    }

    #[test]
    fn addresses_that_are_not_public_are_refused_in_every_notation() {
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "192.88.99.1",
            "[::]",
            "[::1]",
            "[::ffff:8.8.8.8]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::8.8.8.8]",
            "[64:ff9b::808:808]",
            "[64:ff9b:1::1]",
            "[2002:808:808::1]",
            "[2001:0:1::1]",
            "[2001:2::1]",
            "[2001:db8::1]",
            "[3fff::1]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[fe80::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[100::1]",
            "[5f00::1]",
        ] {
            let outcome = checked(&Guard::default(), &format!("https://{host}/hook"));
            assert!(matches!(outcome, Err(Refused::NotPublic(_))), "{host}: {outcome:?}");
        }
        for host in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "134744072", "[2606:4700::1111]", "[2a00:1450::1]"] {
            assert_eq!(checked(&Guard::default(), &format!("https://{host}/hook")), Ok(()), "{host}");
        }
    }

    #[test]
    fn every_address_has_to_be_allowed() {
        let public: SocketAddr = "8.8.8.8:443".parse().expect("an address");
        let private: SocketAddr = "10.0.0.5:443".parse().expect("an address");
        let guard = Guard::default();
        assert_eq!(guard.check(true, &[public]), Ok(()));
        assert_eq!(guard.check(true, &[public, private]), Err(Refused::NotPublic(private.ip())));
        assert_eq!(guard.check(true, &[]), Err(Refused::NoAddress));
        assert_eq!(guard.check(false, &[public]), Err(Refused::Http));
        let guard = Guard { allowed: vec!["10.0.0.0/24".parse().expect("a network")], allow_http: false };
        assert_eq!(guard.check(true, &[public, private]), Ok(()));
        assert_eq!(guard.check(false, &[private]), Ok(()));
        assert_eq!(guard.check(false, &[public, private]), Err(Refused::Http));
        let guard = Guard { allow_http: true, ..Guard::default() };
        assert_eq!(guard.check(false, &[public]), Ok(()));
    }

    #[test]
    fn networks_are_read_strictly() {
        for text in ["10.0.0.0", "10.0.0.0/33", "::/129", "a/8", "10.0.0.0/", "10.0.0.0/-1"] {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
        let all: Cidr = "0.0.0.0/0".parse().expect("a network");
        assert!(all.contains("9.9.9.9".parse().expect("an address")));
        assert!(!all.contains("::ffff:9.9.9.9".parse().expect("an address")));
        let one: Cidr = "fd00::1/128".parse().expect("a network");
        assert!(one.contains("fd00::1".parse().expect("an address")));
        assert!(!one.contains("fd00::2".parse().expect("an address")));
    }

    #[test]
    fn urls_that_are_not_for_webhooks_are_refused() {
        for url in ["", "hook", "ftp://a/", "file:///etc/passwd", "https://", "https://user@a/", "https://u:p@a/"] {
            assert!(matches!(Endpoint::parse(url), Err(Refused::Url(_))), "{url}");
        }
        let endpoint = Endpoint::parse("https://Hooks.Example:8443/a b?c=d#e").expect("a URL");
        assert_eq!((endpoint.path.as_str(), endpoint.authority.as_str()), ("/a%20b?c=d", "hooks.example:8443"));
    }
}
