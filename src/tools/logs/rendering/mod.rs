//! The report for people: figures with a sentence and a table each, as text on a terminal or as one page. It
//! begins with one row for each program. Nothing here counts: `statistics` does.

pub mod figures;
pub mod page;
pub mod programs;
