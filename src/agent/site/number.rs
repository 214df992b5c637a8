//! Numbers of the queue, the same on every host: the revision at the first look, then what distinguishes
//! launches of one revision.

/// Bits for the host and for the agent's own sequence.
const HOST_BITS: u32 = 12;
const SEQUENCE_BITS: u32 = 12;

/// Gives numbers. No two launches of a host have the same number. The transaction of a ticket proves that no
/// other host has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    host: u64,
    sequence: u64,
}

impl Numbers {
    /// The numbers of a host.
    pub(super) fn of(host: &str) -> Self {
        // FNV-1a: any hash does.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = host.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
        Self { host: (hash ^ (hash >> 32)) & ((1 << HOST_BITS) - 1), sequence: 0 }
    }

    /// The next number: lower than all at a later revision.
    pub(super) fn next(&mut self, revision: i64) -> u64 {
        let revision = u64::try_from(revision).unwrap_or(0).wrapping_shl(HOST_BITS + SEQUENCE_BITS);
        self.sequence = (self.sequence + 1) & ((1 << SEQUENCE_BITS) - 1);
        // The sequence precedes the host: numbers of one host at one revision keep their order.
        revision | (self.sequence << HOST_BITS) | self.host
    }

    /// New numbers at the revision of this one, which is from before the agent failed, are higher.
    pub(super) fn go_on_after(&mut self, number: u64) {
        self.sequence = (number >> HOST_BITS) & ((1 << SEQUENCE_BITS) - 1);
    }
}

/// Whether a number is possible in an etcd at this revision.
pub(super) fn can_be_of(number: u64, revision: i64) -> bool {
    let given = number >> (HOST_BITS + SEQUENCE_BITS);
    given > 0 && u64::try_from(revision).is_ok_and(|revision| given <= revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_revision_comes_first_and_then_the_order_of_the_host() {
        let (mut one, mut other) = (Numbers::of("lab1"), Numbers::of("lab2"));
        let early = other.next(7);
        let (first, second) = (one.next(8), one.next(8));
        assert!(early < first && first < second);
        assert_ne!(Numbers::of("lab1").next(8), Numbers::of("lab2").next(8));
    }

    #[test]
    fn an_agent_goes_on_where_the_one_before_it_died() {
        let mut before = Numbers::of("lab1");
        let numbers = [before.next(8), before.next(8), before.next(8)];
        let mut after = Numbers::of("lab1");
        after.go_on_after(numbers[2]);
        assert_eq!(after.next(8), before.next(8));
        assert!(can_be_of(numbers[2], 8) && can_be_of(numbers[2], 9));
        assert!(!can_be_of(numbers[2], 7), "the etcd is another one");
        assert!(!can_be_of(3, 7), "no site gives such a number");
    }
}
