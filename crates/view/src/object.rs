//! Builds JSON objects, and converts values to JSON.

use super::Directory;
use leasehold_model::class::ClassSpec;
use leasehold_model::id::{
    AppInstanceNo, AppTypeNo, ClassNo, LeaseNo, NodeNo, PoolNo, ProjectNo, TenantNo, TokenNo, UserNo,
};
use leasehold_model::instant::{Instant, Span};
use leasehold_model::name::Name;
use leasehold_model::quantity::{self, Quanta};
use serde_json::{Map, Value};

/// The largest integer that every JSON parser keeps exact.
const EXACT_MAX: u64 = (1 << 53) - 1;

/// A count: a number, or a string if the number would lose precision.
pub(super) fn count(n: u64) -> Value {
    if n <= EXACT_MAX { n.into() } else { n.to_string().into() }
}

pub(super) fn text(name: Option<&Name>) -> Value {
    name.map_or(Value::Null, |name| name.as_str().into())
}

/// The indexes in a bit set of devices.
pub(super) fn devices(set: u64) -> Value {
    (0..64u64).filter(|i| set >> i & 1 == 1).collect()
}

/// Quanta in billing units with their name, such as `80 GiB`.
pub(super) fn units(quanta: Quanta, class: Option<&ClassSpec>) -> Value {
    class.map_or(Value::Null, |class| format!("{} {}", quantity::display(quanta, class), class.kind.unit()).into())
}

/// An optional number of an object that has a name.
pub(super) trait Named: Copy {
    fn number(self) -> Option<u64>;
    fn name(self, directory: &Directory) -> Option<&Name>;
}

impl<N: Named> Named for Option<N> {
    fn number(self) -> Option<u64> {
        self.and_then(N::number)
    }
    fn name(self, directory: &Directory) -> Option<&Name> {
        self.and_then(|number| number.name(directory))
    }
}

macro_rules! named {
    ($($number:ty => |$directory:ident, $no:ident| $name:expr;)*) => {$(
        impl Named for $number {
            fn number(self) -> Option<u64> {
                Some(self.0.into())
            }
            fn name(self, $directory: &Directory) -> Option<&Name> {
                let $no = self;
                $name
            }
        }
    )*};
}
named! {
    TenantNo => |directory, no| directory.tenant(no);
    ProjectNo => |directory, no| directory.project(no);
    UserNo => |directory, no| directory.user(no);
    PoolNo => |directory, no| directory.pool(no);
    NodeNo => |directory, no| directory.node(no);
    TokenNo => |directory, no| directory.token(no);
    AppInstanceNo => |directory, no| directory.app_instance(no);
    AppTypeNo => |directory, no| directory.app_type(no);
    ClassNo => |directory, no| directory.class(no).map(|class| &class.name);
}

/// A JSON object that keeps the order of its fields.
pub(super) struct Object<'a> {
    directory: &'a Directory,
    fields: Map<String, Value>,
}

impl<'a> Object<'a> {
    pub(super) fn new(directory: &'a Directory) -> Self {
        Self { directory, fields: Map::new() }
    }

    pub(super) fn done(self) -> Value {
        Value::Object(self.fields)
    }

    pub(super) fn field(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(key.to_owned(), value.into());
        self
    }

    /// A number of which zero says that nothing is known: records have no other way to say it.
    pub(super) fn known_count(self, key: &str, n: u64) -> Self {
        self.field(key, if n == 0 { Value::Null } else { count(n) })
    }

    pub(super) fn count(self, key: &str, n: u64) -> Self {
        self.field(key, count(n))
    }

    /// Adds the instant in RFC 3339, and `…_ns` with its nanoseconds as a string.
    pub(super) fn instant(self, key: &str, at: impl Into<Option<Instant>>) -> Self {
        let at = at.into();
        self.field(key, at.map(|at| at.to_string())).field(&format!("{key}_ns"), at.map(|at| at.0.to_string()))
    }

    /// Adds a readable length of time, and `…_ns` with the exact nanoseconds as a string.
    pub(super) fn span(self, key: &str, span: impl Into<Option<Span>>) -> Self {
        let span = span.into();
        self.field(key, span.map(|span| span.to_string()))
            .field(&format!("{key}_ns"), span.map(|span| span.0.to_string()))
    }

    /// Adds the name under `key`, null if it is unknown, and the number under `key_id`.
    pub(super) fn named(self, key: &str, number: impl Named) -> Self {
        let name = text(number.name(self.directory));
        self.field(key, name).field(&format!("{key}_id"), number.number().map(count))
    }

    pub(super) fn leases<'l>(self, key: &str, leases: impl IntoIterator<Item = &'l LeaseNo>) -> Self {
        self.field(key, leases.into_iter().map(LeaseNo::to_string).collect::<Value>())
    }
}
