//! The argument of the site as a model over its own transactions, and what it makes of reports.

mod model;
mod presence;
mod reports;
