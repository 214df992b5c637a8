//! What a figure is.

/// One figure.
#[derive(Debug)]
pub struct Figure {
    /// For links.
    pub id: String,
    /// What it is.
    pub title: String,
    /// What it says.
    pub says: String,
    /// SVG.
    pub drawing: Option<String>,
    /// The head of its table.
    pub head: Vec<&'static str>,
    /// The table.
    pub rows: Vec<Vec<String>>,
}
