//! What logs come to, for people: figures with a sentence and a table each, shown as text in a terminal or as
//! one page. It begins with the answer, one row for each program. Nothing here counts: `statistics` does.

pub mod figures;
pub mod page;
pub mod programs;
pub mod text;
