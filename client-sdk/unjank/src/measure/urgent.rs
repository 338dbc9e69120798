//! Notifies listeners of the app at once of stalls and panics. Uses a thread of its own, because reporters may hold up the background thread.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use unjank_protocol::Jank;

/// The message that a listener of [`crate::Config::on_urgent`] receives at once. Listeners run one after the other, on one thread of their own that
/// exists only if there are any. A panic in a listener is caught. At most 16 messages wait for a slow listener; further ones are dropped,
/// and [`Urgent::Missed`] counts them.
///
/// Stalls are those that the settings keep, before [`crate::Config::before_send`]. The hook for panics calls the hook that was set before
/// it. A program that ends by the panic waits for the listeners only if a [`crate::Guard`] is dropped on the way, at most
/// [`crate::Config::shutdown_timeout`]; with `panic = "abort"`, the listeners may miss the panic.
///
/// ```
/// use unjank::Urgent;
///
/// fn line(urgent: &Urgent) -> String {
///     match urgent {
///         Urgent::StallBegan(stall) => format!("{} is stuck on {}", stall.thread, stall.page),
///         Urgent::StallEnded(stall) => format!("{} was stuck for {} ms", stall.thread, stall.duration_ms),
///         Urgent::Panic { thread, message, place } => format!("{thread} panicked at {place}: {message}"),
///         Urgent::Missed(count) => format!("{count} messages were lost"),
///         _ => String::new(),
///     }
/// }
/// # drop(unjank::Config::new("http://127.0.0.1:1", "demo").on_urgent(|urgent| drop(line(urgent))));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Urgent {
    /// A main loop is blocked for longer than a threshold. The stall goes on: its duration is the one until now.
    StallBegan(Box<Jank<'static>>),
    /// The stall is over, as it will be sent. A stall that is short may have no beginning.
    StallEnded(Box<Jank<'static>>),
    /// A thread panics. The panic may be caught later.
    Panic {
        /// The name of the thread.
        thread: String,
        /// The message, cut at 1 KiB; empty if it is not a text.
        message: String,
        /// File, line and column.
        place: String,
    },
    /// The number of messages that were dropped since the last one, because a listener was slow.
    Missed(u64),
}

/// Listens to urgent events.
pub(crate) type OnUrgent = dyn Fn(&Urgent) + Send + Sync;

/// The name of the thread that calls the listeners.
pub(super) const THREAD: &str = "unjank-urgent";
/// Maximum number of messages that wait.
const MOST: usize = 16;

enum Message {
    Deliver(Urgent),
    /// The thread ends after it has delivered the messages before this one.
    End(SyncSender<()>),
}

/// Passes messages to the listeners. Does nothing if there are none.
#[derive(Default)]
pub(crate) struct UrgentChannel {
    sender: Option<SyncSender<Message>>,
    missed: Arc<AtomicU64>,
}

impl fmt::Debug for UrgentChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrgentChannel").finish_non_exhaustive()
    }
}

impl UrgentChannel {
    /// Starts the thread, if there are listeners.
    pub(crate) fn open(listeners: &[Arc<OnUrgent>]) -> Self {
        if listeners.is_empty() {
            return Self::default();
        }
        let (sender, receiver) = sync_channel(MOST);
        let missed = Arc::new(AtomicU64::new(0));
        let (listeners, counted) = (listeners.to_vec(), Arc::clone(&missed));
        let run = move || listen(&receiver, &listeners, &counted);
        let thread = std::thread::Builder::new().name(THREAD.to_owned());
        let is_started = thread.spawn(run).is_ok();
        Self {
            sender: Some(sender).filter(|_| is_started),
            missed,
        }
    }

    /// Never blocks.
    pub(crate) fn notify(&self, urgent: impl FnOnce() -> Urgent) {
        if let Some(sender) = &self.sender
            && sender.try_send(Message::Deliver(urgent())).is_err()
        {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the thread after it has delivered all messages. Waits at most `longest`.
    pub(crate) fn close(&self, longest: Duration) {
        let (ended, waiting) = sync_channel(1);
        let Some(sender) = &self.sender else {
            return;
        };
        let begun = Instant::now();
        let mut message = Message::End(ended);
        while let Err(TrySendError::Full(unsent)) = sender.try_send(message) {
            if begun.elapsed() >= longest {
                return;
            }
            // A listener is slow.
            message = unsent;
            std::thread::sleep(Duration::from_millis(1));
        }
        let left = longest.saturating_sub(begun.elapsed());
        let _late = waiting.recv_timeout(left).is_err();
    }
}

fn listen(receiver: &Receiver<Message>, listeners: &[Arc<OnUrgent>], missed: &AtomicU64) {
    let deliver = |urgent: &Urgent| {
        for listener in listeners {
            let delivered = catch_unwind(AssertUnwindSafe(|| listener(urgent)));
            delivered.unwrap_or_default();
        }
    };
    while let Ok(message) = receiver.recv() {
        let lost = missed.swap(0, Ordering::Relaxed);
        if lost > 0 {
            deliver(&Urgent::Missed(lost));
        }
        match message {
            Message::Deliver(urgent) => deliver(&urgent),
            Message::End(ended) => {
                let _gone = ended.try_send(()).is_err();
                return;
            }
        }
    }
}
