//! Numbers of the line, the same on every host: the revision at the first look, then what tells launches of
//! one revision apart.

/// Bits for the host and for the agent's own sequence.
const HOST_BITS: u32 = 12;
const SEQUENCE_BITS: u32 = 12;

/// Gives numbers. No two launches of a host have the same; that no two hosts give one is proved when a ticket
/// is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    host: u64,
    sequence: u64,
}

impl Numbers {
    /// Those of a host.
    pub(super) fn of(host: &str) -> Self {
        // FNV-1a: any hash does.
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = host.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
        Self { host: (hash ^ (hash >> 32)) & ((1 << HOST_BITS) - 1), sequence: 0 }
    }

    /// The next: older than everything that comes at a later revision.
    pub(super) fn next(&mut self, revision: i64) -> u64 {
        let revision = u64::try_from(revision).unwrap_or(0).wrapping_shl(HOST_BITS + SEQUENCE_BITS);
        self.sequence = (self.sequence + 1) & ((1 << SEQUENCE_BITS) - 1);
        // The sequence stands before the host: those of one host at one revision come in their order.
        revision | (self.sequence << HOST_BITS) | self.host
    }
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
}
