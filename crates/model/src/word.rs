//! Closed lists of words: states, kinds, priorities, roles. Each list is declared once, by [`words!`](crate::words).
//!
//! A word is written with underscores wherever it is printed; hyphens are accepted in their place. The features
//! `serde`, `schemars` and `clap` give every list the traits of those crates, so that the HTTP API and the command
//! line use the same types as the records.

/// A closed list of words.
pub trait Words: Copy + 'static {
    /// The name and description of the list in the API schema.
    const NAME: &'static str;
    const ABOUT: &'static str;
    const ALL: &'static [Self];
    /// The words of `ALL`, in the same order.
    const WORDS: &'static [&'static str];
    fn word(self) -> &'static str;
    /// The description of the word; empty if it needs none.
    fn about(self) -> &'static str;
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| is_same(one.word(), word))
    }
}

/// Whether `typed` is the word, or the word with hyphens for underscores.
fn is_same(word: &str, typed: &str) -> bool {
    word.len() == typed.len() && word.bytes().zip(typed.bytes()).all(|(a, b)| a == b || (a, b) == (b'_', b'-'))
}

/// Declares a closed list of words, each with its name in JSON and, if it is part of records, its code.
///
/// ```
/// leasehold_model::words! {
///     /// The seasons.
///     pub enum Season { Winter = 1 "winter", /** Not yet warm. */ EarlySpring = 2 "early_spring" }
/// }
/// assert_eq!(Season::from_word("early-spring").map(Season::word), Some("early_spring"));
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[doc = $about:literal])* pub enum $name:ident $(as $schema:literal)? {
            $($(#[doc = $meaning:literal])* $variant:ident = $code:literal $word:literal),* $(,)?
        }
    ) => {
        $crate::words! { @list
            [$($about)*] $name [$($schema)?] { $([$($meaning)*] $variant [$code] $word)* }
        }

        impl $crate::codec::Field for $name {
            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }
            #[inline]
            fn get(r: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::codec::DecodeError> {
                match r.byte()? {
                    $($code => Ok(Self::$variant),)*
                    code => Err($crate::codec::DecodeError::BadCode { field: stringify!($name), code: u64::from(code) }),
                }
            }
        }
    };
    (
        $(#[doc = $about:literal])* pub enum $name:ident $(as $schema:literal)? {
            $($(#[doc = $meaning:literal])* $variant:ident $word:literal),* $(,)?
        }
    ) => {
        $crate::words! { @list [$($about)*] $name [$($schema)?] { $([$($meaning)*] $variant [] $word)* } }
    };
    (@list
        [$($about:literal)*] $name:ident [$($schema:literal)?]
        { $([$($meaning:literal)*] $variant:ident [$($code:literal)?] $word:literal)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $meaning])* $variant $(= $code)?),* }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
            /// Accepts hyphens for underscores.
            pub fn from_word(word: &str) -> Option<Self> {
                $crate::word::Words::from_word(word)
            }
        }

        impl $crate::word::Words for $name {
            const NAME: &'static str = $crate::words!(@name $name $($schema)?);
            const ABOUT: &'static str = concat!($($about),*);
            const ALL: &'static [Self] = Self::ALL;
            const WORDS: &'static [&'static str] = &[$($word),*];
            fn word(self) -> &'static str {
                self.word()
            }
            fn about(self) -> &'static str {
                match self { $(Self::$variant => concat!($($meaning),*)),* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        $crate::words_with_serde! { $name }
        $crate::words_with_schemars! { $name }
        $crate::words_with_clap! { $name $($variant $word)* }
    };
    (@name $name:ident $schema:literal) => { $schema };
    (@name $name:ident) => { stringify!($name) };
}

#[doc(hidden)]
#[cfg(feature = "serde")]
pub mod with_serde {
    use super::Words;
    pub use serde;
    use std::fmt;
    use std::marker::PhantomData;

    /// Reads a word.
    pub struct Reading<T>(pub PhantomData<T>);

    impl<T: Words> serde::de::Visitor<'_> for Reading<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "one of {}", T::WORDS.join(", "))
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
            T::from_word(text).ok_or_else(|| E::unknown_variant(text, T::WORDS))
        }
    }

    #[macro_export]
    macro_rules! words_with_serde {
        ($name:ident) => {
            impl $crate::word::with_serde::serde::Serialize for $name {
                fn serialize<S: $crate::word::with_serde::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                    to.serialize_str(self.word())
                }
            }
            impl<'de> $crate::word::with_serde::serde::Deserialize<'de> for $name {
                fn deserialize<D: $crate::word::with_serde::serde::Deserializer<'de>>(
                    from: D,
                ) -> Result<Self, D::Error> {
                    from.deserialize_str($crate::word::with_serde::Reading(std::marker::PhantomData))
                }
            }
        };
    }
}

#[doc(hidden)]
#[cfg(feature = "schemars")]
pub mod with_schemars {
    use super::Words;
    pub use schemars;
    use schemars::{Schema, json_schema};
    use serde_json::Value;

    /// Any of the words; those that are described, each with its description.
    pub fn schema<T: Words>() -> Schema {
        let words = |described: bool| T::ALL.iter().filter(move |one| one.about().is_empty() != described);
        let plain: Vec<&str> = words(false).map(|one| one.word()).collect();
        let described = words(true).map(|one| {
            Value::from(json_schema!({ "type": "string", "const": one.word(), "description": one.about().trim() }))
        });
        let plain = (!plain.is_empty()).then(|| json_schema!({ "type": "string", "enum": plain }));
        let mut all: Vec<Value> = plain.map(Value::from).into_iter().chain(described).collect();
        let mut schema = match all.len() {
            1 => Schema::try_from(all.remove(0)).expect("an object is a schema"),
            _ => json_schema!({ "oneOf": all }),
        };
        if !T::ABOUT.is_empty() {
            schema.insert("description".into(), T::ABOUT.trim().into());
        }
        schema
    }

    #[macro_export]
    macro_rules! words_with_schemars {
        ($name:ident) => {
            impl $crate::word::with_schemars::schemars::JsonSchema for $name {
                fn schema_name() -> std::borrow::Cow<'static, str> {
                    <Self as $crate::word::Words>::NAME.into()
                }
                fn json_schema(
                    _: &mut $crate::word::with_schemars::schemars::SchemaGenerator,
                ) -> $crate::word::with_schemars::schemars::Schema {
                    $crate::word::with_schemars::schema::<Self>()
                }
            }
        };
    }
}

#[doc(hidden)]
#[cfg(feature = "clap")]
pub mod with_clap {
    pub use clap;
    use clap::builder::PossibleValue;

    /// The word with hyphens for underscores.
    pub const fn hyphened<const LENGTH: usize>(word: &str) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let mut at = 0;
        while at < LENGTH {
            bytes[at] = if word.as_bytes()[at] == b'_' { b'-' } else { word.as_bytes()[at] };
            at += 1;
        }
        bytes
    }

    pub fn possible_value(word: &'static str, hyphened: &'static [u8]) -> PossibleValue {
        let typed = std::str::from_utf8(hyphened).expect("a word is UTF-8, with hyphens as well");
        let value = PossibleValue::new(word);
        if typed == word { value } else { value.alias(typed) }
    }

    #[macro_export]
    macro_rules! words_with_clap {
        ($name:ident $($variant:ident $word:literal)*) => {
            impl $crate::word::with_clap::clap::ValueEnum for $name {
                fn value_variants<'a>() -> &'a [Self] {
                    Self::ALL
                }
                fn to_possible_value(&self) -> Option<$crate::word::with_clap::clap::builder::PossibleValue> {
                    let hyphened: &'static [u8] = match self {
                        $(Self::$variant => const { &$crate::word::with_clap::hyphened::<{ $word.len() }>($word) }),*
                    };
                    Some($crate::word::with_clap::possible_value(self.word(), hyphened))
                }
            }
        };
    }
}

#[doc(hidden)]
#[cfg(not(feature = "serde"))]
#[macro_export]
macro_rules! words_with_serde {
    ($($ignored:tt)*) => {};
}

#[doc(hidden)]
#[cfg(not(feature = "schemars"))]
#[macro_export]
macro_rules! words_with_schemars {
    ($($ignored:tt)*) => {};
}

#[doc(hidden)]
#[cfg(not(feature = "clap"))]
#[macro_export]
macro_rules! words_with_clap {
    ($($ignored:tt)*) => {};
}
