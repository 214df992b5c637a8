//! What a figure is.

/// One figure.
#[derive(Debug, Default)]
pub struct Figure {
    /// For links.
    pub id: String,
    /// What it is.
    pub title: String,
    /// What it says.
    pub says: String,
    /// What is drawn of it.
    pub drawing: Option<Drawing>,
    /// The columns of its table.
    pub columns: Vec<Column>,
    /// The table.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub title: &'static str,
    /// Whether it holds numbers, which stand below each other by their last digit.
    pub is_number: bool,
}

/// A column of words.
pub const fn words(title: &'static str) -> Column {
    Column { title, is_number: false }
}

/// A column of numbers.
pub const fn numbers(title: &'static str) -> Column {
    Column { title, is_number: true }
}

/// A drawing, as numbers.
#[derive(Debug)]
pub enum Drawing {
    /// Use over time.
    Use(Use),
    /// How many there were in each hour of a week, Monday first.
    Week([[u64; 24]; 7]),
    /// How many there were of each.
    Bars(Vec<(&'static str, u64)>),
}

/// Use over time.
#[derive(Debug)]
pub struct Use {
    /// In order and without a gap.
    pub points: Vec<Point>,
    /// How many slots there were, where the log tells it.
    pub seats: Option<u64>,
    /// Labels below it: at the beginning, between and at the end.
    pub labels: Vec<String>,
    /// Whether it is of one member, each of whom has seats of their own.
    pub is_of_members: bool,
    /// Whether ends are missing, so that the points are what there was at most.
    pub has_bounds: bool,
    /// How long a point lasts: "hour", "day".
    pub step: String,
}

/// A length of time.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// How many slots were held on average, at most; none if unknown.
    pub average: Option<f64>,
    /// How many were held at once, at most.
    pub most: u64,
}
