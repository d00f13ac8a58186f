//! A call of one endpoint, which is built and then awaited.

use crate::client::{Client, Failure, Request};
use crate::error::Error;
use crate::random;
use leasehold_api::{Endpoint, Method};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Display;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

/// How the body of an answer is read.
pub trait Answer {
    type Output: Send + 'static;
    const MEDIA: &'static str;
    fn read(body: Vec<u8>) -> Result<Self::Output, String>;
}

/// JSON of this type.
pub struct Json<T>(PhantomData<fn() -> T>);
/// Plain text.
pub struct Text;
/// Raw bytes.
pub struct Bytes;

impl<T: DeserializeOwned + Send + 'static> Answer for Json<T> {
    type Output = T;
    const MEDIA: &'static str = "application/json";
    fn read(body: Vec<u8>) -> Result<T, String> {
        serde_json::from_slice(&body).map_err(|error| format!("its answer is invalid: {error}"))
    }
}

impl Answer for Text {
    type Output = String;
    const MEDIA: &'static str = "*/*";
    fn read(body: Vec<u8>) -> Result<String, String> {
        String::from_utf8(body).map_err(|_| "its answer is not text".into())
    }
}

impl Answer for Bytes {
    type Output = Vec<u8>;
    const MEDIA: &'static str = "*/*";
    fn read(body: Vec<u8>) -> Result<Vec<u8>, String> {
        Ok(body)
    }
}

/// A call that has not been made yet. Await it; if the answer is lost, it is sent again, with the same idempotency key
/// unless it is idempotent without one.
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<A> {
    client: Client,
    request: Result<Request, Error>,
    total: Duration,
    answer: PhantomData<fn() -> A>,
}

impl<A: Answer> Call<A> {
    pub(crate) fn new(client: &Client, endpoint: &Endpoint, places: &[String]) -> Self {
        let request = client.endpoint(endpoint.path, places).map(|url| {
            let (method, key) = (endpoint.method, (!endpoint.is_idempotent()).then(random::key));
            Request { method, url, accept: A::MEDIA, key, last_event_id: None, body: None, patience: None }
        });
        Self { client: client.clone(), request, total: client.timeouts().total, answer: PhantomData }
    }

    pub(crate) fn body<B: Serialize>(mut self, body: &B) -> Self {
        if let Ok(request) = &mut self.request {
            request.body = Some(serde_json::to_vec(body).expect("a wire type has string keys only"));
        }
        self
    }

    /// Sets a query parameter, and replaces its earlier value.
    pub fn query(mut self, name: &str, value: impl Display) -> Self {
        if let Ok(request) = &mut self.request {
            let others = request.url.query_pairs().filter(|(known, _)| known != name);
            let others: Vec<(String, String)> = others.map(|(name, value)| (name.into(), value.into())).collect();
            request.url.query_pairs_mut().clear().extend_pairs(others).append_pair(name, &value.to_string());
        }
        self
    }

    /// Sets a query parameter if there is a value.
    pub fn maybe(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Sets the idempotency key of a change, instead of a random one.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        if let Ok(request) = &mut self.request
            && request.method != Method::Get
        {
            request.key = Some(key.into());
        }
        self
    }

    /// Sets the time limit for all attempts together.
    pub fn within(mut self, total: Duration) -> Self {
        self.total = total;
        self
    }

    /// Lets one attempt take as long, for answers that take the daemon long to make.
    pub fn patiently(mut self, attempt: Duration) -> Self {
        if let Ok(request) = &mut self.request {
            request.patience = Some(attempt);
        }
        let total = attempt.max(self.total);
        self.within(total)
    }

    pub(crate) fn protocol(&self, what: impl Into<String>) -> Error {
        self.client.protocol(what)
    }

    async fn bytes(self) -> Result<Vec<u8>, Error> {
        let client = &self.client;
        client.send(&self.request?, self.total, |response| client.whole(response)).await
    }

    /// Makes the call and reads the answer.
    pub async fn answer(self) -> Result<A::Output, Error> {
        let client = self.client.clone();
        A::read(self.bytes().await?).map_err(|what| client.protocol(what))
    }

    /// Makes the call and reads a long answer piece by piece. There are no retries once the answer has begun.
    pub async fn download(self) -> Result<Download, Error> {
        let request = self.request?;
        let response = self.client.send(&request, self.total, |response| async { Ok(response) }).await?;
        let patience = request.patience.unwrap_or_default().max(self.client.timeouts().answer);
        Ok(Download { client: self.client, response, patience })
    }
}

impl<T: DeserializeOwned + Send + 'static> Call<Json<T>> {
    /// The answer as text, where a query parameter selects another format than JSON.
    pub async fn text(mut self) -> Result<String, Error> {
        if let Ok(request) = &mut self.request {
            request.accept = Text::MEDIA;
        }
        let client = self.client.clone();
        Text::read(self.bytes().await?).map_err(|what| client.protocol(what))
    }

    /// The answer as JSON, including fields that this version does not know.
    pub async fn json(self) -> Result<Value, Error> {
        let client = self.client.clone();
        Json::<Value>::read(self.bytes().await?).map_err(|what| client.protocol(what))
    }
}

impl<A: Answer> Clone for Call<A> {
    fn clone(&self) -> Self {
        let request = self.request.as_ref().map_err(Clone::clone).map(|request| Request {
            method: request.method,
            url: request.url.clone(),
            accept: request.accept,
            key: request.key.clone(),
            last_event_id: request.last_event_id,
            body: request.body.clone(),
            patience: request.patience,
        });
        Self { client: self.client.clone(), request, total: self.total, answer: PhantomData }
    }
}

impl<A: Answer> IntoFuture for Call<A>
where
    Self: 'static,
{
    type Output = Result<A::Output, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.answer())
    }
}

/// A long answer that is being read.
pub struct Download {
    client: Client,
    response: reqwest::Response,
    /// How long a piece may take.
    patience: Duration,
}

impl Download {
    /// How many bytes the whole answer has, if the daemon has said so.
    pub fn bytes(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// The next piece; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let broken = |what: String| Error::Transport { url: self.client.url().to_owned(), what, unanswered: None };
        match tokio::time::timeout(self.patience, self.response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk.map(|bytes| bytes.to_vec())),
            Ok(Err(error)) => match Failure::broken(&error) {
                Failure::Broken { what, .. } => Err(broken(what)),
                Failure::Refused { error, .. } => Err(error),
            },
            Err(_) => Err(broken("it stopped in the middle of its answer".into())),
        }
    }
}
