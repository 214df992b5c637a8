//! The processor that is measured on. A launch that moves from one to another finds cold caches there, and
//! how often it does is the scheduler's affair.

use std::mem;

use nix::errno::Errno;
use nix::libc;

/// This process, and whatever it starts, on the first of its processors until this is dropped.
pub(crate) struct OneProcessor {
    before: libc::cpu_set_t,
}

impl OneProcessor {
    pub(crate) fn alone() -> Self {
        // SAFETY: a set of processors is an array of bits, for which zeros are a value.
        let (mut before, mut one): (libc::cpu_set_t, libc::cpu_set_t) =
            unsafe { (mem::zeroed(), mem::zeroed()) };
        // SAFETY: the set is as long as the call is told, and each number is one of it.
        unsafe {
            let got = libc::sched_getaffinity(0, size_of_val(&before), &raw mut before);
            Errno::result(got).expect("a process has processors");
            let count = 8 * size_of_val(&before);
            let first = (0..count).find(|number| libc::CPU_ISSET(*number, &before)).expect("at least one");
            libc::CPU_SET(first, &mut one);
        }
        set(&one);
        Self { before }
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        set(&self.before);
    }
}

fn set(processors: &libc::cpu_set_t) {
    // SAFETY: the set is as long as the call is told.
    let set = unsafe { libc::sched_setaffinity(0, size_of_val(processors), processors) };
    Errno::result(set).expect("they are this process's own");
}
