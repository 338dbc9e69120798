//! Mail, to a minimal SMTP server.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::incidents::Database;
use super::{channel, sending, test};
use crate::server::{NOW, Server};

/// A mail server that keeps the mails it receives, with their envelopes.
pub(super) struct MailServer {
    pub(super) url: String,
    mails: Arc<Mutex<Vec<Mail>>>,
    serving: JoinHandle<()>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Mail {
    pub(super) envelope: Vec<String>,
    pub(super) text: String,
}

impl MailServer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("smtp://{}", listener.local_addr().unwrap());
        let mails: Arc<Mutex<Vec<Mail>>> = Arc::default();
        #[expect(clippy::disallowed_methods, reason = "ended when it is dropped")]
        let serving = tokio::spawn(take_mails(listener, Arc::clone(&mails)));
        Self {
            url,
            mails,
            serving,
        }
    }

    pub(super) async fn has(&self, count: usize) -> Vec<Mail> {
        for _ in 0..600 {
            let mails = self.mails.lock().unwrap().clone();
            if mails.len() >= count {
                return mails;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{count} of {:?}", self.mails.lock().unwrap());
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take_mails(listener: TcpListener, kept: Arc<Mutex<Vec<Mail>>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let mail = converse(stream).await;
        kept.lock().unwrap().extend(mail);
    }
}

/// Returns the mail of a connection.
async fn converse(stream: TcpStream) -> Option<Mail> {
    let mut stream = BufReader::new(stream);
    let (mut mail, mut in_text, mut taken) = (Mail::default(), false, None);
    stream.write_all(b"220 sink\r\n").await.ok()?;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return taken;
        }
        let line = line.trim_end_matches("\r\n");
        let answer = match line {
            "." if in_text => {
                (in_text, taken) = (false, Some(std::mem::take(&mut mail)));
                "250 taken\r\n"
            }
            _ if in_text => {
                mail.text += &format!("{}\n", line.strip_prefix('.').unwrap_or(line));
                continue;
            }
            "DATA" => {
                in_text = true;
                "354 go on\r\n"
            }
            "QUIT" => "221 bye\r\n",
            _ if line.starts_with("EHLO") => "250-sink\r\n250 8BITMIME\r\n",
            _ => {
                mail.envelope.push(line.to_owned());
                "250 fine\r\n"
            }
        };
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn incidents_are_mailed_as_text_and_as_html_with_escaped_names() {
    let mails = MailServer::start().await;
    let from = "unjank <alerts@example.com>";
    let server = Server::with(&[
        "--smtp-url",
        &mails.url,
        "--mail-from",
        from,
        "--notify-group-wait-ms",
        "0",
        "--public-url",
        "https://unjank.example.com",
    ])
    .await;
    let token = server.token("admin").await;
    let mail =
        json!({"kind": "email", "name": "team", "to": ["ann@example.com", "bob@example.com"]});
    channel(&server, &token, mail).await;
    let rule = Database::of(&server).rule().await;
    let fired = rule.fire(&["critical"], NOW).await;
    let mail = mails.has(1).await.remove(0);
    let link = format!(
        "https://unjank.example.com/incidents/{}?project=default",
        fired[0]
    );
    // The HTML is encoded as quoted-printable.
    let decoded = mail.text.replace("=\n", "").replace("=3D", "=");
    assert_eq!(decoded.matches(&link).count(), 2, "{decoded}");
    assert!(
        mail.envelope[0].contains("<alerts@example.com>"),
        "{mail:?}"
    );
    assert!(
        mail.envelope
            .iter()
            .any(|line| line.contains("<bob@example.com>"))
    );
    assert!(
        mail.text.contains("Subject: [FIRING] Checkout is slow\n"),
        "{}",
        mail.text
    );
    assert!(
        mail.text
            .contains("Date: Fri, 20 Nov 2026 12:00:00 +0000\n")
    );
    assert!(mail.text.contains("Message-ID: <"));
    assert!(
        mail.text
            .contains("\np75 of <checkout> is 480 ms, was 320 ms\n"),
        "{}",
        mail.text
    );
    assert!(
        mail.text.contains("p75 of &lt;checkout&gt; is"),
        "{}",
        mail.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_mail_server_a_test_names_the_missing_setting() {
    let server = sending().await;
    let token = server.token("admin").await;
    let mail = json!({"kind": "email", "name": "team", "to": ["ann@example.com"]});
    let id = channel(&server, &token, mail).await;
    let tried = test(&server, &token, &id).await;
    let error = tried.body["error"].as_str().unwrap();
    assert!(error.contains("UNJANK_SMTP_URL"), "{error}");
}
