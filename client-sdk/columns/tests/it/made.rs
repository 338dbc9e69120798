//! Batches with any values that JSON can hold, from a seed.

use unjank_protocol::{
    AppStart, AppStartKind, Attributes, Batch, Code, Day, Dropped, Frame, FrameWindow, Histogram,
    Jank, JankEnd, JankKind, JankSample, JankStrategy, LaunchKind, LogLine, Metric, Module,
    Network, PageLoad, PageOutcome, PageRequest, Phase, Recomposition, Resource, SdkHealth, Signal,
    Span, SpanEvent, SpanId, SpanKind, SpanStatus, Text, Timestamp, TraceId, Traffic,
};
use uuid::Uuid;

pub(crate) struct Maker(u64);

type Made = Text<'static>;

impl Maker {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    fn chance(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Mostly small, sometimes any.
    fn number(&mut self) -> u64 {
        let shift = self.below(64);
        self.bits() >> shift
    }

    fn small(&mut self) -> u32 {
        (self.number() & u64::from(u32::MAX)) as u32
    }

    fn signed(&mut self) -> i64 {
        self.number().cast_signed()
    }

    fn text(&mut self) -> Made {
        const SOME: [&str; 8] = [
            "",
            "main",
            "Cart",
            "checkout",
            "com.example.shop.CartAdapter",
            "🛒 Größe",
            "\u{0}\"\\\n",
            "x",
        ];
        match self.below(10) {
            9 => Text::from(format!("{:x}", self.bits())),
            known => Text::from(SOME[known as usize % SOME.len()]),
        }
    }

    fn option<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance().then(|| value(self))
    }

    /// Mostly short, rarely longer than any limit.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let length = match self.below(40) {
            0 => 130 + self.below(20),
            _ => self.below(4),
        };
        (0..length).map(|_| item(self)).collect()
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn id(&mut self) -> u64 {
        // Few, so that they occur again.
        if self.chance() {
            self.below(6) + 1
        } else {
            self.bits().max(1)
        }
    }

    fn uuid(&mut self) -> Uuid {
        let high = if self.below(4) == 0 { 0 } else { self.bits() };
        Uuid::from_u64_pair(high, if high == 0 { 0 } else { self.bits() })
    }

    fn time(&mut self) -> Timestamp {
        let near = 1_795_000_000_000_000 + self.below(60_000_000).cast_signed();
        Timestamp::from_micros(match self.below(20) {
            0 => -62_167_219_200_000_000,
            1 => 253_402_300_799_999_999,
            2 => 0,
            _ => near,
        })
    }

    fn rate(&mut self) -> f64 {
        self.one_of(&[1.0, 1.0, 0.1, 0.5, 1e-9, 0.0, -3.5, 1e300])
    }

    fn float(&mut self) -> f64 {
        self.one_of(&[0.0, -0.0, 1.0, 59.94, 1e300, -5e-324, 123_456_789.0])
    }

    fn attributes(&mut self) -> Attributes<'static> {
        Attributes(self.list(|maker| (maker.text(), maker.text())))
    }

    fn network(&mut self) -> Network {
        self.one_of(Network::ALL)
    }

    fn span(&mut self) -> Span<'static> {
        Span {
            trace_id: TraceId(u128::from(self.id()) << 64 | u128::from(self.below(2))),
            span_id: SpanId(self.id()),
            parent_span_id: self.option(Self::id).map(SpanId),
            name: self.text(),
            kind: self.one_of(SpanKind::ALL),
            start: self.time(),
            duration_us: self.signed(),
            thread: self.text(),
            on_main_thread: self.chance(),
            status: self.one_of(SpanStatus::ALL),
            page: self.text(),
            network: self.network(),
            uptime_ms: self.number(),
            code: Code {
                class: self.text(),
                function: self.text(),
                file: self.text(),
                line: self.small(),
            },
            attributes: self.attributes(),
            events: self.list(|maker| SpanEvent {
                time: maker.time(),
                name: maker.text(),
            }),
            sample_rate: self.rate(),
        }
    }

    fn frame_window(&mut self) -> FrameWindow<'static> {
        FrameWindow {
            page: self.text(),
            start: self.time(),
            duration_ms: self.signed(),
            refresh_hz: self.one_of(&[0, 60, 120, u16::MAX]),
            frames_drawn: self.small(),
            frames_dropped: self.small(),
            slow_frames: self.small(),
            frozen_frames: self.small(),
            longest_drop: self.small(),
            jank_ms: self.small(),
            delay_ms: self.small(),
            uptime_ms: self.number(),
            network: self.network(),
            frame_time_hist: Histogram(self.list(|maker| (maker.small(), maker.small()))),
            sample_rate: self.rate(),
        }
    }

    fn frame(&mut self) -> Frame<'static> {
        if self.chance() {
            return Frame::default();
        }
        Frame {
            class: self.text(),
            module: self.text(),
            function: self.text(),
            file: self.text(),
            line: self.signed(),
            native: self.chance(),
            column: self.small(),
            build_id: self.text(),
            offset: self.option(Self::number),
            module_index: self.option(Self::small),
            address: self.option(Self::number),
        }
    }

    fn jank(&mut self) -> Jank<'static> {
        Jank {
            kind: self.one_of(JankKind::ALL),
            page: self.text(),
            start: self.time(),
            duration_ms: self.signed(),
            ended: self.one_of(JankEnd::ALL),
            thread: self.text(),
            foreground: self.chance(),
            strategy: JankStrategy {
                threshold_ms: self.small(),
                count: self.small(),
                period_ms: self.small(),
            },
            uptime_ms: self.number(),
            network: self.network(),
            stack: self.list(Self::frame),
            stack_missing: self.text(),
            samples: self.list(|maker| JankSample {
                offset_ms: maker.small(),
                stack: maker.list(Self::frame),
            }),
            run_log: self.list(|maker| LogLine {
                time: maker.time(),
                message: maker.text(),
            }),
            sample_rate: self.rate(),
        }
    }

    fn page_load(&mut self) -> PageLoad<'static> {
        PageLoad {
            page: self.text(),
            start: self.time(),
            t1_ms: self.option(Self::signed),
            t2_ms: self.option(Self::signed),
            t3_ms: self.option(Self::signed),
            total_ms: self.signed(),
            launch: self.one_of(LaunchKind::ALL),
            outcome: self.one_of(PageOutcome::ALL),
            network: self.network(),
            uptime_ms: self.number(),
            requests: self.list(|maker| PageRequest {
                path: maker.text(),
                offset_ms: maker.small().cast_signed(),
                duration_ms: maker.small(),
                status: maker.one_of(&[0, 200, u16::MAX]),
            }),
            sample_rate: self.rate(),
        }
    }

    fn metric(&mut self) -> Metric<'static> {
        Metric {
            name: self.text(),
            time: self.time(),
            value: self.float(),
            min: self.option(Self::float),
            max: self.option(Self::float),
            count: self.option(Self::number),
            page: self.text(),
            uptime_ms: self.number(),
            network: self.network(),
            attributes: self.attributes(),
            sample_rate: self.rate(),
        }
    }

    fn app_start(&mut self) -> AppStart<'static> {
        AppStart {
            kind: self.one_of(AppStartKind::ALL),
            start: self.time(),
            duration_ms: self.signed(),
            page: self.text(),
            network: self.network(),
            phases: self.list(|maker| Phase {
                name: maker.text(),
                duration_ms: maker.small(),
            }),
            sample_rate: self.rate(),
        }
    }

    fn recomposition(&mut self) -> Recomposition<'static> {
        Recomposition {
            function: self.text(),
            page: self.text(),
            start: self.time(),
            window_ms: self.signed(),
            count: self.small(),
            cause: self.text(),
            uptime_ms: self.number(),
            network: self.network(),
            sample_rate: self.rate(),
        }
    }

    fn traffic(&mut self) -> Traffic<'static> {
        Traffic {
            day: Day::from_days(self.one_of(&[-719_528, 0, 20_777, 20_778, 2_932_896])),
            source: self.text(),
            network: self.network(),
            tx_bytes: self.number(),
            rx_bytes: self.number(),
            requests: self.number(),
            failed_requests: self.number(),
        }
    }

    fn health(&mut self) -> SdkHealth<'static> {
        SdkHealth {
            dropped: self.list(|maker| Dropped {
                signal: maker.one_of(Signal::ALL),
                reason: maker.text(),
                count: maker.number(),
            }),
            overhead_us: self.number(),
            queue_bytes: self.number(),
            upload_bytes: self.number(),
        }
    }

    fn resource(&mut self) -> Resource<'static> {
        Resource {
            app_id: Text::from("com.example.shop"),
            app_version: self.text(),
            build: self.number(),
            channel: self.text(),
            mode: self.text(),
            os_name: self.text(),
            os_version: self.text(),
            device_model: self.text(),
            device_manufacturer: self.text(),
            device_class: self.text(),
            refresh_hz: self.one_of(&[0, 60, 120]),
            locale: self.text(),
            install_id: self.uuid(),
            user_id: self.text(),
            sdk_name: self.text(),
            sdk_version: self.text(),
        }
    }

    pub(crate) fn batch(&mut self) -> Batch<'static> {
        Batch {
            batch_id: self.uuid(),
            sent_at: self.option(Self::time),
            resource: self.resource(),
            session_id: self.uuid(),
            config_revision: self.option(Self::number),
            split_from: (0..self.below(3)).map(|_| self.uuid()).collect(),
            modules: (0..self.below(3)).map(|_| self.module()).collect(),
            spans: self.list(Self::span),
            frame_windows: self.list(Self::frame_window),
            janks: self.list(Self::jank),
            traffic: self.list(Self::traffic),
            page_loads: self.list(Self::page_load),
            metrics: self.list(Self::metric),
            app_starts: self.list(Self::app_start),
            recompositions: self.list(Self::recomposition),
            sdk_health: self.option(Self::health),
        }
    }

    fn module(&mut self) -> Module<'static> {
        Module {
            name: self.text(),
            build_id: self.text(),
            load_address: self.option(Self::number),
        }
    }
}
