//! What is said to the agent, and what it answers. The first byte says where the stream is cut; what follows
//! are the bytes of one end.

use rungate::keeper::agent::{
    frame::{Garbage, Inbox, LONGEST_REQUEST},
    message::{Answer, Request},
};

/// How long a request may be here.
const LONGEST: usize = 64 * 1024;
const _: () = assert!(LONGEST < LONGEST_REQUEST);

/// However a stream is cut, it is the same messages and the same end; and each message is said again as it
/// was, bit by bit.
pub fn judge(data: &[u8]) {
    let Some((at, stream)) = data.split_first() else { return };
    let at = usize::from(*at).min(stream.len());
    let (requests, end) = requests(&[stream]);
    assert_eq!((requests.clone(), end), requests_of(stream, at));
    for request in &requests {
        let frame = request.frame().expect("it was short enough to come");
        let again = self::requests(&[&frame]).0;
        assert_eq!(&again, std::slice::from_ref(request));
    }
    for answer in answers(stream) {
        assert_eq!(answers(&answer.frame()), [answer]);
    }
}

fn requests_of(stream: &[u8], at: usize) -> (Vec<Request>, Option<Garbage>) {
    let (first, rest) = stream.split_at(at);
    requests(&[first, rest])
}

/// The requests of a stream that comes in pieces, and how it ends.
fn requests(pieces: &[&[u8]]) -> (Vec<Request>, Option<Garbage>) {
    let (mut inbox, mut requests) = (Inbox::default(), Vec::new());
    for piece in pieces {
        inbox.add(piece);
        loop {
            match inbox.request(LONGEST) {
                Ok(Some(request)) => requests.push(request),
                Ok(None) => break,
                Err(garbage) => return (requests, Some(garbage)),
            }
        }
    }
    (requests, None)
}

fn answers(stream: &[u8]) -> Vec<Answer> {
    let mut inbox = Inbox::default();
    inbox.add(stream);
    std::iter::from_fn(|| inbox.answer().ok().flatten()).collect()
}
