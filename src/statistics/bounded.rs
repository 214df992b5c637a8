//! A map of names with a bound, because everyone who may append to a log can make up names. What comes after
//! the bound is added up as "others".

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

/// Values by name, and one value for all further names.
#[derive(Debug)]
pub struct Bounded<K, V> {
    most: usize,
    named: HashMap<K, V>,
    /// Everything whose name is not kept; none where every name is.
    pub others: Option<V>,
}

impl<K: Eq + Hash + Ord, V: Default> Bounded<K, V> {
    /// Of at most this many names.
    pub fn of(most: usize) -> Self {
        Self { most, named: HashMap::new(), others: None }
    }

    /// The value of a name. The name is copied only once.
    pub fn entry<Q>(&mut self, name: &Q) -> &mut V
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        if !self.named.contains_key(name) {
            if self.named.len() >= self.most {
                return self.others.get_or_insert_default();
            }
            self.named.insert(name.to_owned(), V::default());
        }
        self.named.get_mut(name).unwrap_or_else(|| unreachable!("it was put there"))
    }

    /// The value of a name that is kept whatever the bound is.
    pub fn keep(&mut self, name: K) {
        self.named.entry(name).or_default();
    }

    /// The value of a name that is kept.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, name: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.named.get(name)
    }

    /// All names with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let mut all: Vec<(&K, &V)> = self.named.iter().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.into_iter()
    }

    /// All values, in no order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.named.values_mut().chain(&mut self.others)
    }

    /// How many names are kept.
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
}
