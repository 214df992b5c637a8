//! What differs between two policies, for people and for scripts.

mod json;
mod text;

pub(super) use self::{json::to_json, text::describe};
