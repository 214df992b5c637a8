//! etcd, as far as a site needs it: transactions, reads, leases and a watch, over the JSON gateway that every
//! member has at its client port. Nothing here knows what the keys mean. What an answer leaves open is a
//! value ([`EtcdError::is_definite`]): a transaction whose answer did not come may have been committed, and
//! may still be.

mod calls;
mod client;
mod cluster_status;
mod etcd_error;
mod message;
mod tls;
mod transaction;
mod watch;

pub(super) use self::{
    calls::{Inventory, Snapshot},
    client::{Access, Client},
    cluster_status::ClusterStatus,
    etcd_error::EtcdError,
    message::Pair,
    transaction::{Compare, Done, Operation, Range, Transaction},
    watch::Heard,
};
