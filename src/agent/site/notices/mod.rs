//! Notices: what a host leaves in etcd for another one of whose holders it thinks that it is overdue. `given`
//! and `giving` are for launches of this host that want a slot, `received` and `answering` for holders of
//! this host of which others have given notice.

mod answering;
pub(in crate::agent) mod given;
mod giving;
pub(in crate::agent::site) mod received;
