//! Notices that a host leaves in etcd for another one about a holder there. `giving` has those for launches
//! of this host, `answering` those of other hosts about holders of this host.

mod answering;
mod giving;

pub(in crate::agent::site) use answering::ReceivedNotice;
pub(in crate::agent) use giving::GivenNotice;
