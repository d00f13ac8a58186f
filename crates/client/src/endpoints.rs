//! One method per endpoint, named by its id and made from its row in `leasehold_api`'s table of endpoints.

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

/// How an answer is read; where there are two kinds of answer, as the type that holds either.
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
        => $status:literal $answer:ident $($media:literal)? $(or $wait_status:literal $wait:ident as $either:ident)?
    })*) => {$(
        method! { $id $answer [$($either)?] [$($($query)*)?] [$($place)?] [$($body)?] $summary }
    )*};
}

for_each_endpoint!(methods);

impl Client {
    /// Many operations in one request. Each gets a key of its own unless it has one, so that the whole is safe to send
    /// again; [`Client::batch`] sends them as they are.
    pub fn batch_of(&self, mut operations: Vec<Operation>) -> Call<Json<BatchResults>> {
        for operation in &mut operations {
            operation.key.get_or_insert_with(random::key);
        }
        self.batch(&Batch { operations })
    }
}
