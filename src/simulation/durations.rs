//! How long launches ran: what is drawn from for a launch that the log refused and another policy lets start.

use std::collections::HashMap;

use super::dice::Dice;

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
        } else if let Ok(place) = usize::try_from(dice.throw() % self.seen)
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
