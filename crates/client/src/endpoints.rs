//! One method per endpoint, generated from the table of endpoints in `leasehold_api`.

use crate::call::{Bytes, Call, Json, Text};
use crate::client::Client;
use crate::random;
use leasehold_api::*;
use std::fmt::Display;

/// The name of a query parameter, or of a group of them.
macro_rules! name {
    (($name:ident $($rest:tt)*)) => {
        stringify!($name)
    };
    ($name:ident) => {
        stringify!($name)
    };
}

/// How an answer is read. If there are two kinds of answer, the type contains either.
macro_rules! answer {
    (Text) => { Text };
    (Bytes) => { Bytes };
    ($answer:ident) => { Json<$answer> };
    ($answer:ident $either:ident) => { Json<$either> };
}

macro_rules! method {
    // `Client::events` listens to the stream.
    ($id:ident Stream $($rest:tt)*) => {};
    ($id:ident $answer:ident [$($either:ident)?] [$($query:tt)*] [$($place:ident)?] [$($body:ident)?] $summary:literal) => {
        impl Client {
            #[doc = concat!($summary, ".")]
            $(#[doc = concat!("* Query: `", name!($query), "`")])*
            pub fn $id(&self, $($place: impl Display,)? $(body: &$body)?) -> Call<answer!($answer $($either)?)> {
                let places: &[String] = &[$($place.to_string())?];
                Call::new(self, endpoint::by_id::$id, places)$(.body::<$body>(body))?
            }
        }
    };
}

macro_rules! methods {
    ($($id:ident {
        $summary:literal $method:ident $path:literal $({$place:ident} $($tail:literal)?)? for $roles:ident
        $(query[$($query:tt)*])? $(body $body:ident $(or $none:ident)?)?
        => $status:literal $answer:ident $($media:literal)? $(also $($also:literal)+)? $(or $wait_status:literal $wait:ident as $either:ident)?
    })*) => {$(
        method! { $id $answer [$($either)?] [$($($query)*)?] [$($place)?] [$($body)?] $summary }
    )*};
}

for_each_endpoint!(methods);

impl Client {
    /// Several operations in one request. Operations that are not idempotent without an idempotency key get one, so that
    /// the request can safely be sent again; [`Client::batch`] sends the operations unchanged.
    pub fn batch_of(&self, mut operations: Vec<Operation>) -> Call<Json<BatchResults>> {
        for operation in operations.iter_mut().filter(|operation| !operation.is_idempotent()) {
            operation.key.get_or_insert_with(random::key);
        }
        self.batch(&Batch { operations })
    }
}
