//! How long launches ran: what is drawn from for a launch that the log refused and another policy lets start.

use std::collections::HashMap;

/// How many durations are kept of one user with one command, and of one command.
const KEPT: usize = 32;

/// Samples, from the nearest kin to the farthest.
#[derive(Debug, Default)]
pub struct Durations {
    users: HashMap<(u32, u32), Sample>,
    commands: HashMap<u32, Sample>,
    all: Sample,
}

/// Some of many, each as likely as any other.
#[derive(Debug, Default)]
struct Sample {
    seen: u64,
    kept: Vec<u64>,
}

impl Sample {
    fn add(&mut self, micros: u64, dice: &mut Dice) {
        self.seen += 1;
        if self.kept.len() < KEPT {
            self.kept.push(micros);
        } else if let Ok(place) = usize::try_from(dice.next_u64() % self.seen)
            && let Some(kept) = self.kept.get_mut(place)
        {
            *kept = micros;
        }
    }

    fn draw(&self, dice: &mut Dice) -> Option<u64> {
        self.kept.get(dice.below(self.kept.len())).copied()
    }
}

impl Durations {
    /// A launch of this user, with this command, ran so long.
    pub fn add(&mut self, uid: u32, command: u32, micros: u64, dice: &mut Dice) {
        self.users.entry((uid, command)).or_default().add(micros, dice);
        self.commands.entry(command).or_default().add(micros, dice);
        self.all.add(micros, dice);
    }

    /// How long one may run: as long as one of the same user and command did, else of the same command, else
    /// of any. None where no end is known at all.
    pub fn draw(&self, uid: u32, command: u32, dice: &mut Dice) -> Option<u64> {
        let of_user = self.users.get(&(uid, command)).and_then(|sample| sample.draw(dice));
        let of_command = || self.commands.get(&command).and_then(|sample| sample.draw(dice));
        of_user.or_else(of_command).or_else(|| self.all.draw(dice))
    }
}

// Numbers that look random and are the same for the same seed, on every machine and in every version.

/// A sequence of them (`SplitMix64`).
#[derive(Clone, Copy, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// That of one launch in one draw: the same whatever happened to the launches before it, so that two
    /// policies are compared by the same luck.
    pub fn of_launch(seed: u64, draw: u64, launch: u64) -> Self {
        let mut dice = Self(seed ^ draw.wrapping_mul(0xa076_1d64_78bd_642f));
        Self(dice.next_u64() ^ launch.wrapping_mul(0xe703_7ed1_a0b4_28db))
    }

    /// Any number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next_u64() % (count.max(1) as u64)).unwrap_or(0)
    }

    /// From 0 up to 1, which never comes.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn share(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A time between two random arrivals that come one in `mean` on average.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.share()).ln()
    }
}
