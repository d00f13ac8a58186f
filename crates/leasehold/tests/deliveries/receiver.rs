//! A receiver on loopback that remembers everything, and misbehaves as it is told.

use fastrand::Rng;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A test in which nothing happens for so long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Status(u16),
    /// A success, after a while.
    Slow(Duration),
    /// The event is taken, and the connection closed without an answer.
    Lost,
}

/// How the receiver answers.
#[derive(Clone, Debug)]
pub(crate) enum Mood {
    Well,
    /// Connections are closed as soon as they are made.
    Down,
    /// One of these for each request, at random.
    Moody(Vec<Answer>),
}

/// A moment of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It has arrived, and is neither taken nor answered.
    Arrived,
    /// It has been taken, and the answer is not written.
    Taken,
    /// The answer is written.
    Answered,
}

/// One event that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Receipt {
    pub(crate) id: String,
    pub(crate) body: String,
    /// Whether it was answered with success, or would have been if the answer had not been lost.
    pub(crate) is_taken: bool,
}

struct Inside {
    mood: Mood,
    dice: Rng,
    receipts: Vec<Receipt>,
    taken: BTreeSet<String>,
    /// The request after so many others is held at this moment, until it is let go.
    hold: Option<(u64, Moment)>,
    is_held: bool,
}

/// The receiver. It listens until the test ends.
pub(crate) struct Receiver {
    pub(crate) url: String,
    shared: Arc<(Mutex<Inside>, Condvar)>,
}

impl Receiver {
    pub(crate) fn start(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("bound"));
        let (dice, mood) = (Rng::with_seed(seed), Mood::Well);
        let (receipts, taken) = (Vec::new(), BTreeSet::new());
        let inside = Inside { mood, dice, receipts, taken, hold: None, is_held: false };
        let shared = Arc::new((Mutex::new(inside), Condvar::new()));
        let of_listener = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&of_listener);
                std::thread::spawn(move || drop(serve(&stream, &shared)));
            }
        });
        Self { url, shared }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.shared.0.lock().expect("no panic")
    }

    pub(crate) fn be(&self, mood: Mood) {
        self.inside().mood = mood;
    }

    pub(crate) fn receipts(&self) -> Vec<Receipt> {
        self.inside().receipts.clone()
    }

    /// The request after so many others will be held at this moment.
    pub(crate) fn hold(&self, after: u64, moment: Moment) {
        let mut inside = self.inside();
        (inside.hold, inside.is_held) = (Some((after, moment)), false);
    }

    /// Waits until a request is held.
    pub(crate) fn until_held(&self) {
        self.until("a request that is held", |inside| inside.is_held);
    }

    /// Lets the held request go on.
    pub(crate) fn let_go(&self) {
        let mut inside = self.inside();
        (inside.hold, inside.is_held) = (None, false);
        self.shared.1.notify_all();
    }

    /// Waits until all these events have been taken.
    pub(crate) fn until_taken(&self, due: &BTreeSet<String>) {
        self.until("all events", |inside| due.is_subset(&inside.taken));
    }

    fn until(&self, what: &str, is_so: impl Fn(&Inside) -> bool) {
        let (mut inside, began) = (self.inside(), Instant::now());
        while !is_so(&inside) {
            assert!(began.elapsed() < PATIENCE, "{what} did not come; {} have been taken", inside.taken.len());
            inside = self.shared.1.wait_timeout(inside, Duration::from_millis(200)).expect("no panic").0;
        }
    }

    /// The body of each event; fails if one came with two.
    pub(crate) fn bodies(&self) -> BTreeMap<String, Value> {
        let mut bodies: BTreeMap<String, String> = BTreeMap::new();
        for Receipt { id, body, .. } in self.receipts() {
            let before = bodies.entry(id).or_insert_with(|| body.clone());
            assert_eq!(*before, body, "an event came again with another body");
        }
        let parsed = |body: String| serde_json::from_str(&body).expect("JSON");
        bodies.into_iter().map(|(id, body)| (id, parsed(body))).collect()
    }
}

/// Serves one connection until it ends.
fn serve(stream: &TcpStream, shared: &(Mutex<Inside>, Condvar)) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        if matches!(shared.0.lock().expect("no panic").mood, Mood::Down) {
            return Ok(());
        }
        let (id, body) = request(&mut reader)?;
        let mut inside = shared.0.lock().expect("no panic");
        let answer = match inside.mood.clone() {
            Mood::Down => return Ok(()),
            Mood::Well => Answer::Status(204),
            Mood::Moody(answers) => answers[inside.dice.usize(..answers.len())],
        };
        let is_taken = matches!(answer, Answer::Status(200..=299) | Answer::Slow(_) | Answer::Lost);
        inside = held_at(shared, inside, Moment::Arrived);
        inside.receipts.push(Receipt { id: id.clone(), body, is_taken });
        if is_taken {
            inside.taken.insert(id);
            shared.1.notify_all();
        }
        drop(held_at(shared, inside, Moment::Taken));
        let status = match answer {
            Answer::Lost => return Ok(()),
            Answer::Status(status) => status,
            Answer::Slow(time) => {
                std::thread::sleep(time);
                200
            }
        };
        write!(writer, "HTTP/1.1 {status} As-Told\r\ncontent-length: 0\r\n\r\n")?;
        drop(held_at(shared, shared.0.lock().expect("no panic"), Moment::Answered));
    }
}

/// Waits here if this request is the one to be held at this moment.
fn held_at<'a>(
    shared: &'a (Mutex<Inside>, Condvar),
    mut inside: MutexGuard<'a, Inside>,
    moment: Moment,
) -> MutexGuard<'a, Inside> {
    match inside.hold {
        Some((0, at)) if at == moment && !inside.is_held => {}
        Some((left @ 1.., at)) if at == moment => {
            inside.hold = Some((left - 1, at));
            return inside;
        }
        _ => return inside,
    }
    inside.is_held = true;
    shared.1.notify_all();
    while inside.is_held {
        inside = shared.1.wait(inside).expect("no panic");
    }
    inside
}

/// The ID and the body of the next request.
fn request(reader: &mut BufReader<&TcpStream>) -> io::Result<(String, String)> {
    let (mut line, mut id, mut length) = (String::new(), String::new(), 0);
    if reader.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().to_ascii_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().map_err(|_| io::ErrorKind::InvalidData)?,
            Some(("webhook-id", value)) => value.clone_into(&mut id),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    String::from_utf8(body).map(|body| (id, body)).map_err(|_| io::ErrorKind::InvalidData.into())
}
