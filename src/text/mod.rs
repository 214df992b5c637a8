//! Messages, tables and times for people and scripts, made safe for a terminal, and the only code that writes
//! to standard output and standard error. It knows nothing of policies or repositories.

pub(crate) mod clock;
pub mod diagnostic;
pub(crate) mod error;
pub mod escape;
pub(crate) mod figures;
pub(crate) mod json;
pub(crate) mod stream;
pub(crate) mod style;
#[cfg(feature = "tools")]
pub(crate) mod table;

pub(crate) use self::{
    clock::{Clock, age, brief, system_time},
    error::{Error, ExitStatus, contact_line},
    figures::{count, percent, share, wait},
    json::{FORMAT, Numbered},
    stream::{LivingLine, print, printed},
    style::{Style, answer, width},
};
pub use self::{
    diagnostic::{Change, Diagnostic, Label, Severity, SourceText},
    escape::{Show, is_unsafe, visible, visible_lines, word},
};
