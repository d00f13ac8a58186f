//! A call of one endpoint: built, then awaited.

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
/// Text, as it is.
pub struct Text;
/// Bytes, as they are.
pub struct Bytes;

impl<T: DeserializeOwned + Send + 'static> Answer for Json<T> {
    type Output = T;
    const MEDIA: &'static str = "application/json";
    fn read(body: Vec<u8>) -> Result<T, String> {
        serde_json::from_slice(&body).map_err(|error| format!("its answer cannot be read: {error}"))
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

/// A call that has not been made yet. Await it; a change is sent again under its key where the answer was lost.
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
            let (method, key) = (endpoint.method, endpoint.is_mutation().then(random::key));
            Request { method, url, accept: A::MEDIA, key, last_event_id: None, body: None }
        });
        Self { client: client.clone(), request, total: client.timeouts().total, answer: PhantomData }
    }

    pub(crate) fn body<B: Serialize>(mut self, body: &B) -> Self {
        if let Ok(request) = &mut self.request {
            request.body = Some(serde_json::to_vec(body).expect("a wire type has string keys only"));
        }
        self
    }

    /// Sets a parameter of the query, in place of what it was.
    pub fn query(mut self, name: &str, value: impl Display) -> Self {
        if let Ok(request) = &mut self.request {
            let others = request.url.query_pairs().filter(|(known, _)| known != name);
            let others: Vec<(String, String)> = others.map(|(name, value)| (name.into(), value.into())).collect();
            request.url.query_pairs_mut().clear().extend_pairs(others).append_pair(name, &value.to_string());
        }
        self
    }

    /// Sets a parameter of the query, if there is a value for it.
    pub fn maybe(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// The idempotency key of a change, in place of one that was made up.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        if let Ok(request) = &mut self.request
            && request.method != Method::Get
        {
            request.key = Some(key.into());
        }
        self
    }

    /// How long to try, all attempts together.
    pub fn within(mut self, total: Duration) -> Self {
        self.total = total;
        self
    }

    pub(crate) fn protocol(&self, what: impl Into<String>) -> Error {
        self.client.protocol(what)
    }

    async fn bytes(self) -> Result<Vec<u8>, Error> {
        let client = &self.client;
        client.send(&self.request?, self.total, |response| client.whole(response)).await
    }

    /// The answer, read.
    pub async fn answer(self) -> Result<A::Output, Error> {
        let client = self.client.clone();
        A::read(self.bytes().await?).map_err(|what| client.protocol(what))
    }

    /// The answer piece by piece, for those that may be long. It is not tried again once it has begun.
    pub async fn download(self) -> Result<Download, Error> {
        let response = self.client.send(&self.request?, self.total, |response| async { Ok(response) }).await?;
        Ok(Download { client: self.client, response })
    }
}

impl<T: DeserializeOwned + Send + 'static> Call<Json<T>> {
    /// The answer as JSON, with all that the daemon said, known to this version or not.
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

/// A long answer on its way.
pub struct Download {
    client: Client,
    response: reqwest::Response,
}

impl Download {
    /// The next piece; none when it is complete.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let limit = self.client.timeouts().answer;
        let broken = |what: String| Error::Transport { url: self.client.url().to_owned(), what, unanswered: None };
        match tokio::time::timeout(limit, self.response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk.map(|bytes| bytes.to_vec())),
            Ok(Err(error)) => match Failure::broken(&error) {
                Failure::Broken { what, .. } => Err(broken(what)),
                Failure::Refused { error, .. } => Err(error),
            },
            Err(_) => Err(broken("it fell silent in the middle of its answer".into())),
        }
    }
}
