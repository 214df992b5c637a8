//! Notices: what a host leaves in etcd for another one of whose holders it thinks that it is overdue. `giving`
//! is for launches of this host that want a slot, `answering` for holders of this host of which others have
//! given notice.

mod answering;
mod giving;

pub(in crate::agent::site) use answering::ReceivedNotice;
pub(in crate::agent) use giving::GivenNotice;
