//! What must hold for whatever others can write: a policy, a lock file, a command line, a value in a path.
//! Each module has one function that takes any bytes and panics where a promise is broken. cargo-fuzz calls
//! them with what it makes up, and the ordinary tests of rungate with the corpora that came out of that.

pub mod contents;
pub mod launches;
pub mod messages;
pub mod paths;
pub mod policy;
pub mod small_site;
pub mod words;
