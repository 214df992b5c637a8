//! Notices: what a host leaves in etcd for another one of whose holders it thinks that it is overdue. In
//! `giving` are those for launches of this host that want a slot, in `answering` those of holders of this
//! host, which others have given.

mod answering;
mod giving;

pub(in crate::agent::site) use answering::ReceivedNotice;
pub(in crate::agent) use giving::GivenNotice;
