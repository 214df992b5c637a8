//! A line that ends: how many launches may stand in it.

/// Where the line of one table ends; nowhere where nothing is said.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Queue {
    /// Behind so many others nobody else begins to wait.
    pub most: Option<u32>,
    /// So many launches of one user may wait.
    pub per_user: Option<u32>,
}

impl Queue {
    /// What two claims on one table allow.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let lower = |one: Option<u32>, other: Option<u32>| one.into_iter().chain(other).min();
        Self { most: lower(self.most, other.most), per_user: lower(self.per_user, other.per_user) }
    }

    /// How many of those that may wait do: `3`, `3 of 20`.
    pub fn show(self, waiting: usize) -> String {
        self.most.map_or_else(|| waiting.to_string(), |most| format!("{waiting} of {most}"))
    }

    /// Whether it goes on for ever.
    pub fn is_endless(self) -> bool {
        self == Self::default()
    }
}
