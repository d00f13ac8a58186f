//! Asks the dashboard of the cluster.

use crate::answer::{self, Seen};
use crate::config::RaySection;
use leasehold_terminal::Problem;
use reqwest::Url;

/// The most nodes that one answer has.
const NODES_MAX: u32 = 10_000;
const ANSWER_BYTES_MAX: usize = 64 << 20;

pub(crate) struct Dashboard {
    http: reqwest::Client,
    base: Url,
}

impl Dashboard {
    pub(crate) fn new(ray: &RaySection) -> Result<Self, Problem> {
        let wrong = |why: String| {
            let what = format!("`ray.dashboard`: {} cannot be used: {why}", ray.dashboard);
            Problem::usage("bad_url", what).advice("write it like http://127.0.0.1:8265")
        };
        let base = Url::parse(&ray.dashboard).map_err(|error| wrong(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("it begins with neither http:// nor https://".into()));
        }
        // Another part of the program may have installed the same provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .timeout(ray.timeout.into())
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        if base.scheme() == "http" {
            // Plain HTTP needs no root certificates, and must work on machines without any.
            builder = builder.tls_certs_only([]);
        }
        let http = builder.build().map_err(|error| wrong(error.to_string()))?;
        Ok(Self { http, base })
    }

    /// All nodes, and the submitted jobs if they are wanted.
    pub(crate) async fn look(&self, with_jobs: bool) -> Result<Vec<Seen>, Problem> {
        let unreadable = |why: String| {
            Problem::refused("dashboard_unreadable", why).advice("nothing was reported; check the version of Ray")
        };
        let nodes = self.get(&format!("api/v0/nodes?detail=true&limit={NODES_MAX}")).await?;
        let mut seen = answer::nodes(&nodes).map_err(unreadable)?;
        if with_jobs {
            seen.extend(answer::jobs(&self.get("api/jobs/").await?).map_err(unreadable)?);
        }
        Ok(seen)
    }

    async fn get(&self, path: &str) -> Result<Vec<u8>, Problem> {
        let failed = |why: String| {
            let what = format!("{} cannot be asked: {why}", self.base);
            Problem::refused("dashboard_failed", what).advice("check the address, and that the head node runs")
        };
        // Only a slash at the end makes the path of the base a folder.
        let base = format!("{}/{path}", self.base.as_str().trim_end_matches('/'));
        let mut response = self.http.get(base).send().await.map_err(|error| failed(error.to_string()))?;
        if !response.status().is_success() {
            return Err(failed(format!("it answered {}", response.status())));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(error.to_string()))? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(failed("its answer is too large".into()));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}
