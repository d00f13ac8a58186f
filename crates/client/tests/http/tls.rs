//! Certificates: those of the given file are trusted, and no others.

use crate::fake::{Fake, Reply, serve};
use leasehold_client::{Client, Config};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

#[tokio::test]
async fn a_daemon_with_a_certificate_of_its_own_needs_the_ca_file() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, made.cert.pem()).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let server = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key);
    let acceptor = TlsAcceptor::from(Arc::new(server.expect("a server")));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(socket) = acceptor.accept(socket).await {
                    serve(socket, Arc::new(|_, _| Reply::Json(200, json!({ "status": "ok" }))), Arc::default()).await;
                }
            });
        }
    });
    let mut config = Config::new(format!("https://localhost:{port}"));
    config.ca_file = Some(ca_file);
    let health = Client::new(&config).unwrap().healthz().await.expect("trusted");
    assert_eq!(health.status, "ok");

    // Another CA is refused immediately, without retries.
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let other_file = folder.path().join("other.pem");
    std::fs::write(&other_file, other.cert.pem()).unwrap();
    config.ca_file = Some(other_file);
    let begun = Instant::now();
    let error = Client::new(&config).unwrap().healthz().await.unwrap_err();
    let text = "its certificate is not signed by a trusted CA; give the CA file";
    assert!(error.to_string().ends_with(text), "{error}");

    // A wrong scheme is reported, without retries as well.
    let plain = Config::new(format!("http://localhost:{port}"));
    let error = Client::new(&plain).unwrap().healthz().await.unwrap_err();
    assert!(error.to_string().contains("does not use plain HTTP"), "{error}");
    let fake = Fake::start(|_, _| Reply::Json(200, json!({ "status": "ok" }))).await;
    let error = Client::new(&Config::new(fake.url.replace("http:", "https:"))).unwrap().healthz().await.unwrap_err();
    assert!(error.to_string().contains("does not use TLS"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());

    config.ca_file = Some(folder.path().join("none.pem"));
    assert_eq!(Client::new(&config).unwrap_err().code, "bad_ca_file");
}
