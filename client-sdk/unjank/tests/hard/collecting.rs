//! A server on a real port that keeps the batches it accepts, as JSON or columns. It can reject a batch, and disconnect before or after accepting
//! it.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use unjank_columns::{Bounds, MEDIA_TYPE};

/// What happens to a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Take,
    /// The device never learns that the batch was accepted.
    TakeAndVanish,
    Vanish,
    /// There is no response for a minute.
    Hang,
    Status(u16),
}

type Answering = dyn FnMut(&Value) -> Answer + Send;

struct State {
    taken: Vec<Value>,
    /// The content type of each batch, accepted or not.
    forms: Vec<String>,
    /// Whether this is a server of a version that reads columns.
    reads_columns: bool,
    answering: Box<Answering>,
    document: Value,
}

#[derive(Clone)]
pub(crate) struct Collecting {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct Asked {
    is_poll: bool,
    content_type: String,
    body: Vec<u8>,
}

impl Collecting {
    /// `upload` is that part of the configuration.
    pub(crate) fn start(upload: &Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let state = State {
            taken: Vec::new(),
            forms: Vec::new(),
            reads_columns: true,
            answering: Box::new(|_| Answer::Take),
            // The SDK's own monitors would add events.
            document: json!({"revision": 1, "monitors": {}, "upload": upload}),
        };
        let server = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::new(Mutex::new(state)),
        };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                // A client that is killed ends its connection with an error.
                std::thread::spawn(move || serving.serve(&stream).unwrap_or_default());
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn answer(&self, answering: impl FnMut(&Value) -> Answer + Send + 'static) {
        self.state.lock().unwrap().answering = Box::new(answering);
    }

    /// Returns every accepted batch, repeated if it was accepted repeatedly.
    pub(crate) fn taken(&self) -> Vec<Value> {
        self.state.lock().unwrap().taken.clone()
    }

    /// The content types of all batches, accepted or not, in their order.
    pub(crate) fn forms(&self) -> Vec<String> {
        self.state.lock().unwrap().forms.clone()
    }

    /// Replaces the server with one of another version.
    pub(crate) fn reads_columns(&self, reads_columns: bool) {
        self.state.lock().unwrap().reads_columns = reads_columns;
    }

    /// Notes the form of a batch. Returns whether the server reads columns.
    fn note(&self, form: &str) -> bool {
        let mut state = self.state.lock().unwrap();
        state.forms.push(form.to_owned());
        state.reads_columns
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        while let Some(asked) = read(&mut reader)? {
            if asked.is_poll {
                let document = self.state.lock().unwrap().document.to_string();
                respond(stream, 200, "etag: \"1\"\r\n", &document)?;
                continue;
            }
            let reads_columns = self.note(&asked.content_type);
            if asked.content_type == MEDIA_TYPE && !reads_columns {
                let refusal = json!({"code": "content_type"}).to_string();
                respond(stream, 415, "", &refusal)?;
                continue;
            }
            let named = format!("accept-post: application/json, {MEDIA_TYPE}\r\n");
            let headers = if reads_columns { named.as_str() } else { "" };
            let batch = asked.batch()?;
            let receipt = json!({"batch_id": batch["batch_id"], "accepted": 1}).to_string();
            match self.judge(batch) {
                Answer::Take => respond(stream, 202, headers, &receipt)?,
                Answer::Status(status) => respond(stream, status, headers, "")?,
                Answer::TakeAndVanish | Answer::Vanish => return Ok(()),
                Answer::Hang => std::thread::sleep(Duration::from_secs(60)),
            }
        }
        Ok(())
    }

    fn judge(&self, batch: Value) -> Answer {
        let mut state = self.state.lock().unwrap();
        let answer = (state.answering)(&batch);
        if matches!(answer, Answer::Take | Answer::TakeAndVanish) {
            state.taken.push(batch);
        }
        answer
    }
}

impl Asked {
    fn batch(&self) -> io::Result<Value> {
        let content = zstd::stream::decode_all(self.body.as_slice())?;
        if self.content_type != MEDIA_TYPE {
            return Ok(serde_json::from_slice(&content)?);
        }
        let read = unjank_columns::read(&content, &Bounds::default());
        let read = read.map_err(io::Error::other)?;
        assert!(read.malformed.is_empty(), "{:?}", read.malformed);
        Ok(serde_json::to_value(&read.batch)?)
    }
}

/// Reads one request. Returns `None` at the end of the connection.
fn read(reader: &mut impl BufRead) -> io::Result<Option<Asked>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let is_poll = line.starts_with("GET ");
    let (mut length, mut content_type) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if let Some(value) = header.strip_prefix("content-type:") {
            value.trim().clone_into(&mut content_type);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Asked {
        is_poll,
        content_type,
        body,
    }))
}

fn respond(mut stream: &TcpStream, status: u16, headers: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let answer = format!("HTTP/1.1 {status} So\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
    stream.write_all(answer.as_bytes())
}
