//! Finds the cause of an error of the HTTP library, whose own message only says where it happened.

use rustls::CertificateError;
use std::error::Error;

const NOT_TLS: &str = "the server does not use TLS; does the address begin with http://?";

/// Why a connection failed, and whether a retry could help.
pub(crate) struct Cause {
    /// `what`, or `what; advice`.
    pub(crate) what: String,
    pub(crate) again: bool,
}

impl Cause {
    pub(crate) fn of(error: &reqwest::Error) -> Self {
        let mut innermost: &(dyn Error + 'static) = error;
        loop {
            // An invalid certificate or another protocol does not change within the time of a retry.
            if let Some(tls) = innermost.downcast_ref::<rustls::Error>() {
                return Self { what: of_tls(tls), again: false };
            }
            if innermost.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
                let what = "the server does not use plain HTTP; does the address begin with https://?";
                return Self { what: what.into(), again: false };
            }
            // A plain HTTP server may answer a TLS handshake with an error, or close the connection.
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

/// The source of an error. `source()` of an I/O error skips the error that it wraps.
fn inner<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

/// Removes the number from "Connection refused (os error 111)".
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
            "its certificate is not signed by a trusted CA; give the CA file"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired; give the daemon a new one"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; check the clocks"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another host name; use the name in the certificate"
        }
        // `openssl req -x509` creates such a certificate by default.
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is a CA certificate; give the daemon one with basicConstraints=CA:FALSE"
        }
        other => return format!("its certificate is invalid: {other}"),
    };
    what.into()
}
