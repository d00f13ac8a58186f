//! What lies behind an error of the HTTP library, whose own text only says where it happened.

use rustls::CertificateError;
use std::error::Error;

const NOT_TLS: &str = "it does not speak TLS; does the address begin with http://?";

/// Why a connection failed, and whether trying again could help.
pub(crate) struct Cause {
    /// `what`, or `what; advice`.
    pub(crate) what: String,
    pub(crate) again: bool,
}

impl Cause {
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        let mut innermost: &(dyn Error + 'static) = error;
        loop {
            // What is wrong with a certificate or a protocol now is wrong with it in a second.
            if let Some(tls) = innermost.downcast_ref::<rustls::Error>() {
                return Self { what: of_tls(tls), again: false };
            }
            if innermost.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
                let what = "it does not answer in HTTP; does the address begin with https://?";
                return Self { what: what.into(), again: false };
            }
            // A server that speaks plain HTTP may answer a handshake or simply hang up.
            let hung_up =
                innermost.downcast_ref::<std::io::Error>().is_some_and(|io| io.to_string() == "tls handshake eof");
            if hung_up {
                return Self { what: NOT_TLS.into(), again: false };
            }
            match inner(innermost) {
                Some(source) => innermost = source,
                None => return Self { what: plain(&innermost.to_string()), again: !error.is_builder() },
            }
        }
    }
}

/// What an error was made from; an I/O error hands out what is behind the one it wraps.
fn inner<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// "Connection refused (os error 111)": the number says nothing to a person.
fn plain(text: &str) -> String {
    match text.split_once(" (os error") {
        Some((what, _)) => what.to_lowercase(),
        None => text.to_owned(),
    }
}

fn of_tls(error: &rustls::Error) -> String {
    let certificate = match error {
        rustls::Error::InvalidMessage(_) => {
            return NOT_TLS.into();
        }
        rustls::Error::InvalidCertificate(certificate) => certificate,
        other => return format!("TLS failed: {other}"),
    };
    let what = match certificate {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "nobody trusted here has signed its certificate; name the CA file"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired; give the daemon a new one"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; check the clocks"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name; use the name that it is for"
        }
        // What `openssl req -x509` makes unless told otherwise.
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is a CA's own; give the daemon one that is made with basicConstraints=CA:FALSE"
        }
        other => return format!("its certificate is not good: {other}"),
    };
    what.into()
}
