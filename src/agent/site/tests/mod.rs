//! The argument of the site as a model over its own transactions, what it makes of reports, and what it asks
//! of etcd.

mod given_notices;
mod last_uses;
mod launches;
mod model;
mod own_keys;
mod presence;
mod received_notices;
mod reports;
mod stage;
mod tickets;
mod transactions;
