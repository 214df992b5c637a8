//! The argument of the site as a model over its own transactions.

mod model;
