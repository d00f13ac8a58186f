//! Signatures of requests, as Standard Webhooks defines them: over `{id}.{timestamp}.{body}`, `v1` with HMAC-SHA256 and
//! a shared secret (`whsec_`), `v1a` with Ed25519 (`whsk_` signs, `whpk_` verifies).

use crate::event::SignatureKind;
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use zeroize::Zeroizing;

const HMAC_PREFIX: &str = "whsec_";
const SIGNING_PREFIX: &str = "whsk_";
const PUBLIC_PREFIX: &str = "whpk_";
/// What Standard Webhooks allows for a shared secret.
const HMAC_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// How many random bytes ours have.
const HMAC_BYTES_NEW: usize = 32;

/// Signs with one secret.
#[derive(Clone)]
pub struct Signer(Key);

#[derive(Clone)]
enum Key {
    Hmac(Hmac<Sha256>),
    Ed25519(Box<SigningKey>),
}

/// A secret that is not one. Does not repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSecret;

impl fmt::Display for BadSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a webhook secret: whsec_ with 24 to 64 bytes, or whsk_ with an Ed25519 key, in base64")
    }
}
impl std::error::Error for BadSecret {}

impl Signer {
    pub fn parse(secret: &Secret) -> Result<Self, BadSecret> {
        let decode = |text: &str| STANDARD.decode(text).map(Zeroizing::new).map_err(|_| BadSecret);
        if let Some(text) = secret.expose().strip_prefix(HMAC_PREFIX) {
            let bytes = decode(text)?;
            if !HMAC_BYTES.contains(&bytes.len()) {
                return Err(BadSecret);
            }
            let hmac = Hmac::new_from_slice(&bytes).map_err(|_| BadSecret)?;
            return Ok(Self(Key::Hmac(hmac)));
        }
        // The seed, and the public key after it.
        let bytes = decode(secret.expose().strip_prefix(SIGNING_PREFIX).ok_or(BadSecret)?)?;
        let pair = Zeroizing::new(<[u8; 64]>::try_from(bytes.as_slice()).map_err(|_| BadSecret)?);
        let key = SigningKey::from_keypair_bytes(&pair).map_err(|_| BadSecret)?;
        Ok(Self(Key::Ed25519(Box::new(key))))
    }

    /// A new secret from the system's randomness.
    pub fn generate(kind: SignatureKind) -> Result<Secret, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; HMAC_BYTES_NEW]);
        getrandom::fill(bytes.as_mut_slice())?;
        Ok(Secret::new(match kind {
            SignatureKind::Hmac => format!("{HMAC_PREFIX}{}", STANDARD.encode(bytes.as_slice())),
            SignatureKind::Ed25519 => {
                let pair = Zeroizing::new(SigningKey::from_bytes(&bytes).to_keypair_bytes());
                format!("{SIGNING_PREFIX}{}", STANDARD.encode(pair.as_slice()))
            }
        }))
    }

    pub fn kind(&self) -> SignatureKind {
        match self.0 {
            Key::Hmac(_) => SignatureKind::Hmac,
            Key::Ed25519(_) => SignatureKind::Ed25519,
        }
    }

    /// What the receiver verifies with, where it is not the secret itself.
    pub fn public_key(&self) -> Option<String> {
        match &self.0 {
            Key::Hmac(_) => None,
            Key::Ed25519(key) => Some(format!("{PUBLIC_PREFIX}{}", STANDARD.encode(key.verifying_key().as_bytes()))),
        }
    }

    /// The signature, with its version.
    pub fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let timestamp = timestamp.to_string();
        let parts = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body];
        match &self.0 {
            Key::Hmac(hmac) => {
                let mut hmac = hmac.clone();
                parts.iter().for_each(|part| hmac.update(part));
                format!("v1,{}", STANDARD.encode(hmac.finalize().into_bytes()))
            }
            Key::Ed25519(key) => format!("v1a,{}", STANDARD.encode(key.sign(&parts.concat()).to_bytes())),
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(..)")
    }
}

/// The value of the header `webhook-signature`: one signature for each secret.
pub fn signatures(signers: &[Signer], id: &str, timestamp: u64, body: &[u8]) -> String {
    let all: Vec<_> = signers.iter().map(|signer| signer.sign(id, timestamp, body)).collect();
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::{Signature, Verifier, VerifyingKey};

    /// The example that the libraries of Standard Webhooks are tested with.
    #[test]
    fn hmac_is_that_of_the_published_example() {
        let signer = Signer::parse(&Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).expect("a secret");
        let signed = signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b"{\"test\": 2432232314}");
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn ed25519_verifies_with_the_public_key() {
        let secret = Signer::generate(SignatureKind::Ed25519).expect("random");
        let signer = Signer::parse(&secret).expect("a secret");
        let public = signer.public_key().expect("a public key");
        let public = STANDARD.decode(public.strip_prefix(PUBLIC_PREFIX).expect("the prefix")).expect("base64");
        let public = VerifyingKey::from_bytes(&public.try_into().expect("32 bytes")).expect("a key");
        let signed = signer.sign("msg_1", 7, b"{}");
        let signed = STANDARD.decode(signed.strip_prefix("v1a,").expect("the version")).expect("base64");
        let signed = Signature::from_slice(&signed).expect("a signature");
        assert!(public.verify(b"msg_1.7.{}", &signed).is_ok());
        assert!(public.verify(b"msg_1.8.{}", &signed).is_err());
    }

    #[test]
    fn what_is_no_secret_is_refused_and_nothing_is_shown() {
        let short = format!("whsec_{}", STANDARD.encode([7; 23]));
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        let torn = format!("whsk_{}", STANDARD.encode([7; 64]));
        for text in ["", "whsec_", "whsec_%", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsk_AAAA", &short, &long, &torn] {
            assert!(Signer::parse(&Secret::new(text)).is_err(), "{text}");
        }
        for kind in [SignatureKind::Hmac, SignatureKind::Ed25519] {
            let secret = Signer::generate(kind).expect("random");
            let signer = Signer::parse(&secret).expect("a secret");
            assert_eq!((signer.kind(), signer.public_key().is_some()), (kind, kind == SignatureKind::Ed25519));
            assert_eq!(format!("{secret:?}{signer:?}"), "Secret(..)Signer(..)");
            assert_ne!(secret, Signer::generate(kind).expect("random"));
        }
    }
}
