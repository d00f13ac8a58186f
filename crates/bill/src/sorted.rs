//! Lists in the order of their keys, each key once, so that equal lists have equal bytes.

use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};

/// What has a place in a list.
pub trait Keyed {
    type Key: Ord;
    fn key(&self) -> Self::Key;
}

/// A list in order of its keys. Unlike the lists in records it may have any length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sorted<T>(Vec<T>);

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Keyed> Sorted<T> {
    /// In order; of several with one key the last one counts.
    pub fn new(items: impl IntoIterator<Item = T>) -> Self {
        let mut items: Vec<T> = items.into_iter().collect();
        if !items.is_sorted_by(|one, next| one.key() < next.key()) {
            // Sorting is stable: reversed, the last one of a key comes first and is kept.
            items.reverse();
            items.sort_by_key(Keyed::key);
            items.dedup_by_key(|item| item.key());
        }
        Self(items)
    }

    pub fn get(&self, key: &T::Key) -> Option<&T> {
        self.0.binary_search_by(|item| item.key().cmp(key)).ok().map(|place| &self.0[place])
    }
}

impl<T> Sorted<T> {
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> IntoIterator for Sorted<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Sorted<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T: Field + Keyed> Field for Sorted<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(self.0.len() as u64, out);
        self.0.iter().for_each(|item| item.put(out));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = r.count(usize::MAX)?;
        let mut items: Vec<T> = Vec::new();
        for _ in 0..n {
            let item = T::get(r)?;
            if items.last().is_some_and(|last| last.key() >= item.key()) {
                return Err(DecodeError::Forbidden("a list that is out of order"));
            }
            items.push(item);
        }
        Ok(Self(items))
    }
}

macro_rules! keyed {
    ($($name:ty, $key:ty, |$item:ident| $get:expr;)*) => {$(
        impl $crate::sorted::Keyed for $name {
            type Key = $key;
            fn key(&self) -> $key {
                let $item = self;
                $get
            }
        }
    )*};
}
pub(crate) use keyed;
