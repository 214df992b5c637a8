//! What a log tells of a site, as figures: use over time against limits, refusals and waits, who and why.
//! [`census`] takes the events one by one and keeps no launch; [`figures`] makes of it what is drawn and what
//! stands in tables; [`page`] is the one page that can be mailed, read without a script, printed and listened
//! to. It reads no log and writes no file.

pub mod census;
pub mod figure;
pub mod figures;
pub mod openmetrics;
pub mod page;
mod plot;
mod suggestions;
