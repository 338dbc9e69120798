//! The background thread: turns queued events into batches, stores and sends them, and fetches the remote configuration.
//! Requests to the server run on threads of their own.

mod drain;
mod ending;
mod reporting;
pub(crate) mod requests;
mod sending;

use std::sync::Arc;
use std::time::Duration;

use unjank_protocol::{Limits, SdkHealth, Timestamp};
use uuid::Uuid;

use self::requests::RequestState;
use super::backlog::Backlog;
use super::batch::Sealed;
use super::budget::Budget;
use super::losses::Reason;
use super::pending::Pending;
use super::remote::Remote;
use super::spill::{self, Spill};
use super::transport::Transport;
use super::uplink::Uplink;
use crate::clock::{Moment, cpu_time};
use crate::config::Device;
use crate::install::{install_id, make, resource};
use crate::measure::client::{self, Shared};
use crate::measure::main_loop::look_now;
use crate::measure::monitor::Monitors;
use crate::measure::sampling::Settings;
use crate::measure::ticks::Timeline;
use crate::measure::traffic::{Ledger, is_cellular};
use crate::measure::users::Turn;
use crate::names::KnownNames;
use crate::random::draw;
use crate::report::Reporter;

/// Events wait for about this long at most until a batch is made of them. Until then, the spill has them if there is a data directory.
const SEAL_AFTER: Duration = Duration::from_secs(5);
/// Time between checks of the queue.
const TICK: Duration = Duration::from_secs(1);
/// Losses and costs are reported at least this often while anything is sent.
const HEALTH_EVERY: Duration = Duration::from_secs(600);

pub(crate) struct Worker {
    shared: Arc<Shared>,
    session_draw: f64,
    /// As the app describes it, completed by what the system knows.
    device: Device,
    install_id: Uuid,
    backlog: Backlog,
    transport: Arc<dyn Transport>,
    uplink: Uplink,
    remote: Remote,
    budget: Budget,
    monitors: Monitors,
    ledger: Ledger,
    pending: Pending,
    timeline: Timeline,
    names: KnownNames,
    spill: Spill,
    /// The edition of the stall that the spill has.
    spilled_stall: u64,
    /// The start of the last stall that was announced to reporters.
    announced: Option<Timestamp>,
    /// The turn that the pending events belong to.
    turn: Turn,
    /// Since when events are pending.
    pending_since: Option<Moment>,
    next_upload: Moment,
    last_health: Moment,
    reported_cpu: Duration,
    /// CPU time of the threads that sent requests, since it was last reported.
    request_cpu: Duration,
    /// Something that was to be sent waits on the device.
    waits: bool,
    /// The number of the last flush that began. What it could not send counts until the next one.
    flushing: u64,
    /// The latest requests of the app.
    wanted: RequestState,
    /// The app is ending, and collection was on until then.
    ending: bool,
}

impl Worker {
    /// Opens what is kept on disk. Called when collection is switched on for the first time, not before.
    pub(crate) fn open(
        shared: Arc<Shared>,
        transport: Arc<dyn Transport>,
        session_draw: f64,
    ) -> Self {
        let config = &shared.config;
        let folder = config.data_dir.as_deref().filter(|folder| make(folder));
        let install_id = config
            .install_id
            .unwrap_or_else(|| install_id(folder.map(|folder| folder.join("install-id"))));
        let mut device = config.device.clone();
        device.complete();
        let resource = resource(config, &device, install_id);
        let jitter = config.start_jitter.mul_f64(draw());
        let first = Moment::now().after(jitter);
        let file = folder.and_then(|_| config.config_file());
        let mut remote = Remote::new(file, first);
        if let Some(document) = remote.remembered() {
            let document = config.remote_document(document);
            shared.set_settings(Settings::new(document, session_draw));
        }
        let most_bytes = shared.settings.load().document.upload.max_queue_bytes;
        let mut backlog = match folder {
            Some(folder) => Backlog::open(&folder.join("queue"), most_bytes, &shared.losses),
            None => Backlog::in_memory(most_bytes),
        };
        let own_folder = folder.filter(|_| !config.offline && !backlog.is_foreign());
        let spill_folder = own_folder.filter(|_| backlog.is_open());
        let left = spill_folder.map(|folder| spill::recover(folder, &shared.losses));
        for left in left.into_iter().flatten() {
            backlog.push_recovered(left, &shared.losses);
        }
        let spill = Spill::open(spill_folder, backlog.is_durable());
        let traffic = own_folder.map(|folder| folder.join("traffic.json"));
        let ledger = Ledger::open(traffic, &shared);
        let mut worker = Self {
            monitors: Monitors::new(config.take_providers()),
            ledger,
            session_draw,
            device,
            install_id,
            backlog,
            uplink: Uplink::new(config, folder),
            transport,
            remote,
            budget: Budget::new(&shared.settings.load().document.budget, config.mode),
            pending: Pending::new(resource.clone(), Uuid::now_v7()),
            timeline: Timeline::new(),
            names: KnownNames::default(),
            spill,
            spilled_stall: 0,
            announced: None,
            turn: Turn::default(),
            pending_since: None,
            next_upload: first,
            last_health: Moment::now(),
            reported_cpu: cpu_time(),
            request_cpu: Duration::ZERO,
            waits: false,
            flushing: 0,
            wanted: RequestState::default(),
            ending: false,
            shared,
        };
        worker.notify(|reporter| reporter.begin(&resource));
        worker.recover_traffic();
        worker
    }

    /// Seals traffic that an earlier process took, and that may not have been kept, again under the same id.
    fn recover_traffic(&mut self) {
        let outstanding = Ledger::outstanding(&self.shared.meters.traffic());
        for batch_id in outstanding {
            self.seal_traffic(batch_id);
        }
        self.settle_traffic();
    }

    /// Runs until it is asked to stop.
    pub(crate) fn run(mut self) {
        loop {
            let wanted = self.shared.requests.wait(self.pause());
            if wanted.forget {
                self.forget();
            }
            (self.wanted, self.ending) = (wanted, wanted.last_work);
            if wanted.keeps > wanted.kept {
                self.keep_now(wanted.keeps);
            }
            let done = !self.may_work() || self.work(wanted);
            if done {
                self.flushed(wanted);
            }
            if wanted.stop {
                self.keep_the_rest();
                self.fetch_for_the_next_start();
                return;
            }
        }
    }

    /// Marks the requested flushes as done.
    fn flushed(&self, wanted: RequestState) {
        if wanted.flushes > wanted.flushed {
            let unsent = self.waits.then_some(wanted.flushes);
            self.shared.requests.change(|now| {
                now.flushed = wanted.flushes;
                now.unsent = unsent.unwrap_or(now.unsent);
            });
        }
    }

    /// Returns whether collection is on, or was until the app ended.
    fn may_work(&self) -> bool {
        client::is_on() || self.ending
    }

    /// Returns the time until the next task is due.
    fn pause(&self) -> Duration {
        if !client::is_on() {
            return Duration::from_secs(3_600);
        }
        let now = Moment::now();
        let next = match self.shared.config.offline {
            true => now.after(TICK),
            false => self.remote.next(),
        };
        let next = self
            .monitors
            .next()
            .map_or(next, |monitor| monitor.min(next));
        TICK.min(next.since(now)).max(Duration::from_millis(1))
    }

    /// Returns whether everything that a flush waits for is done.
    fn work(&mut self, wanted: RequestState) -> bool {
        let urgent = wanted.stop || wanted.flushes > wanted.flushed;
        if wanted.flushes != self.flushing {
            (self.flushing, self.waits) = (wanted.flushes, false);
        }
        // Fetches the configuration first, because it decides what is monitored.
        if !wanted.stop && !self.shared.config.offline {
            self.poll();
            if !self.may_work() {
                self.waits = true;
                return true;
            }
        }
        self.monitors.poll(&self.shared);
        self.record(urgent);
        if !self.may_work() {
            self.waits = true;
            return true;
        }
        if !self.shared.config.offline && (urgent || Moment::now() >= self.next_upload) {
            if self.may_upload() {
                return self.upload(urgent) || wanted.stop;
            }
            self.waits |= self.backlog.bytes() > 0;
        }
        true
    }

    /// Collects the values of the meters and the queued events. Seals the pending events if they are old, or if that is `urgent`.
    fn record(&mut self, urgent: bool) {
        self.timeline.follow();
        self.follow_clock();
        crate::live::sample(&self.shared);
        if urgent {
            look_now();
        }
        self.shared.poll_meters(urgent);
        self.drain();
        let now = Moment::now();
        let old = self
            .pending_since
            .is_some_and(|since| now.since(since) >= SEAL_AFTER);
        // The user may have withdrawn consent meanwhile.
        if (old || urgent) && self.may_work() {
            self.take_unsent_traffic();
            self.seal_and_spill();
        }
        if self.pending_since.is_none() {
            self.pending.relax();
        }
    }

    /// If the clock was set, seals the events that were timed by its old setting.
    fn follow_clock(&mut self) {
        if self.shared.wall.has_moved() {
            self.seal();
            self.shared.wall.follow();
            self.shared.set_scene();
        }
    }

    fn may_upload(&self) -> bool {
        let upload = &self.shared.settings.load().document.upload;
        let network = self.shared.network();
        !upload.wifi_only || !is_cellular(network)
    }

    fn max_batch_events(&self) -> u32 {
        let upload = &self.shared.settings.load().document.upload;
        upload.max_batch_events.clamp(1, Limits::EVENTS as u32)
    }

    /// Seals the pending events if the user changed: a batch belongs to one user.
    fn follow_user(&mut self, turn: Turn) {
        // Runs for every event, so it copies nothing while the user stays the same.
        if self.turn == turn {
            return;
        }
        self.turn = turn;
        let user_id = self.shared.users.user(turn);
        if user_id != self.pending.user() {
            match self.pending.len() {
                // The spill has the batch of the user before.
                0 => self.clear_spill(),
                _ => self.seal(),
            }
        }
        self.pending.set_user(&user_id);
    }

    /// Makes a batch of the pending events, together with the losses.
    fn seal(&mut self) {
        // If this fails, the next batch saves the counts.
        let _failed = !self.ledger.save(&self.shared);
        self.add_health();
        self.notify(Reporter::flush);
        self.pending_since = None;
        if self.pending.len() == 0 {
            return;
        }
        let revision = self.shared.settings.load().document.revision;
        // zstd into memory does not fail.
        if let Ok(sealed) = self.pending.seal(revision)
            && !self.shared.config.offline
        {
            self.keep(sealed);
        }
        if self.backlog.is_durable() {
            self.clear_spill();
        } else {
            // It is the only copy on disk.
            self.spill.stop();
        }
    }

    fn keep(&mut self, sealed: Sealed) {
        let sealed = sealed.timed_by(self.shared.wall.setting());
        self.backlog.write_again(&self.shared.losses);
        self.backlog.push(sealed, &self.shared.losses);
    }

    /// Makes a batch of the counted traffic, if there is any.
    fn seal_traffic(&mut self, batch_id: Uuid) {
        let was_taken = Ledger::outstanding(&self.shared.meters.traffic()).contains(&batch_id);
        let rows = self.ledger.take(batch_id, &self.shared);
        if rows.is_empty() {
            return;
        }
        if !was_taken {
            self.report_traffic(&rows);
        }
        let revision = self.shared.settings.load().document.revision;
        if !self.backlog.holds(batch_id)
            && let Ok(sealed) = self.pending.traffic(batch_id, rows, revision)
        {
            self.keep(sealed);
        }
    }

    /// Forgets rows of traffic whose batch is kept or done with. A batch that is only in memory would be lost with the process:
    /// its rows are then sent again, under the same id.
    fn settle_traffic(&mut self) {
        let outstanding = Ledger::outstanding(&self.shared.meters.traffic());
        for batch_id in outstanding {
            if !self.backlog.may_lose(batch_id) || self.shared.config.data_dir.is_none() {
                self.ledger.confirm(batch_id, &self.shared);
            }
        }
    }

    fn add_health(&mut self) {
        let now = Moment::now();
        let dropped = self.shared.losses.take();
        let due = now.since(self.last_health) >= HEALTH_EVERY;
        if dropped.is_empty() && !due {
            return;
        }
        self.last_health = now;
        let cpu = cpu_time();
        let health = SdkHealth {
            dropped,
            overhead_us: micros(
                cpu.saturating_sub(self.reported_cpu) + std::mem::take(&mut self.request_cpu),
            ),
            queue_bytes: self.backlog.bytes(),
            upload_bytes: std::mem::take(&mut self.uplink.sent_bytes),
        };
        self.notify(|reporter| reporter.health(&health));
        self.pending.set_health(health);
        self.reported_cpu = cpu;
    }

    /// Deletes everything that was not sent, because consent was withdrawn.
    fn forget(&mut self) {
        if !client::is_on() {
            self.shared.forget_queued();
        }
        if self.pending.len() > 0
            && let Ok(sealed) = self.pending.seal(0)
        {
            sealed.give_up(Reason::Disabled, &self.shared.losses);
        }
        self.pending_since = None;
        self.shared.note_stall(None);
        crate::live::clear();
        self.clear_spill();
        self.backlog.clear(&self.shared.losses);
        self.ledger.clear(&self.shared);
        let settings = self.shared.settings.load();
        let refresh_hz = self.shared.config.device.refresh_hz;
        self.shared.meters.clear(&settings.document, refresh_hz);
        self.shared.requests.forgotten();
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
