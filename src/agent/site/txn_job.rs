//! The threads that carry transactions out, each for itself: one that is not answered holds up no other.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use super::{
    etcd::{Client, EtcdError, Transaction},
    report::{Report, Reporter},
};

/// How many are carried out at once.
const MOVERS: usize = 8;

/// A transaction and its number.
#[derive(Debug)]
pub(super) struct TxnJob {
    pub(super) number: u64,
    /// For which etcd it is meant.
    pub(super) generation: u64,
    pub(super) transaction: Transaction,
}

pub(super) fn start(client: &Client, reporter: &Reporter) -> Sender<TxnJob> {
    let (moves, to_move) = channel();
    let to_move = Arc::new(Mutex::new(to_move));
    for _ in 0..MOVERS {
        let (client, reporter, to_move) = (client.clone(), reporter.clone(), Arc::clone(&to_move));
        thread::spawn(move || run(&client, &reporter, &to_move));
    }
    moves
}

fn run(client: &Client, reporter: &Reporter, to_move: &Mutex<Receiver<TxnJob>>) {
    loop {
        let next = to_move.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(TxnJob { number, generation, transaction }) = next else { return };
        let done = client.carry_out(&transaction);
        // Whatever another etcd has done by it proves nothing of this one.
        let done =
            done.and_then(
                |done| if done.generation == generation { Ok(done) } else { Err(EtcdError::replaced()) },
            );
        if !reporter.tell(Report::Done(number, done)) {
            return;
        }
    }
}
