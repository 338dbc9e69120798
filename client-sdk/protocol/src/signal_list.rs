//! The one list of signals. [`Signal`](crate::Signal), [`Batch`](crate::Batch), the server and the SDK are generated from it or loop over it.
//!
//! To add a signal, add its event type, then a line to [`with_signals!`](crate::with_signals). The compiler names the other places.

/// Calls a macro with the list of signals. One line each: the variant of [`Signal`](crate::Signal), the name on the wire and of the
/// table, the field of [`Batch`](crate::Batch) with its type, and a description.
///
/// `with_signals!([my_macro] { my arguments })` expands to `my_macro! { { my arguments } <lines> }`.
#[macro_export]
macro_rules! with_signals {
    ([$($callback:tt)+] { $($arguments:tt)* }) => {
        $($callback)+! {
            { $($arguments)* }
            Spans "spans" spans: Vec<Span>, "The time between two marks in the code.";
            FrameWindows "frame_windows" frame_windows: Vec<FrameWindow>, "Frames over a short period on one page.";
            Janks "janks" janks: Vec<Jank>, "Blocked main loops, with their stacks.";
            Traffic "traffic" traffic: Vec<Traffic>, "Bytes by natural day, source and network.";
            PageLoads "page_loads" page_loads: Vec<PageLoad>, "How long a page took to load, in three parts.";
            Metrics "metrics" metrics: Vec<Metric>, "Samples of monitors.";
            AppStarts "app_starts" app_starts: Vec<AppStart>, "How long the app took to start.";
            Recompositions "recompositions" recompositions: Vec<Recomposition>, "Redrawn functions of the UI.";
            SdkHealth "sdk_health" sdk_health: Option<SdkHealth>, "What the SDK itself cost and lost. Counts as one event.";
        }
    };
}

/// Runs a block once per signal with the signal and its events in a batch. The block works with any [`Events`].
///
/// ```
/// use unjank_protocol::{Batch, Events, for_each_signal};
///
/// let batch = Batch::default();
/// let mut present = Vec::new();
/// for_each_signal!(&batch, |signal, events| {
///     if !events.is_empty() {
///         present.push(signal);
///     }
/// });
/// assert!(present.is_empty());
/// ```
#[macro_export]
macro_rules! for_each_signal {
    (&mut $batch:expr, |$signal:pat_param, $events:ident| $block:expr) => {
        $crate::with_signals!([$crate::for_each_signal] { mut, $batch, $signal, $events, $block })
    };
    (&$batch:expr, |$signal:pat_param, $events:ident| $block:expr) => {
        $crate::with_signals!([$crate::for_each_signal] { shared, $batch, $signal, $events, $block })
    };
    (
        { mut, $batch:expr, $signal:pat_param, $events:ident, $block:expr }
        $($variant:ident $name:literal $list:ident: $many:ident<$event:ident>, $doc:literal;)+
    ) => {
        $({
            let $signal = $crate::Signal::$variant;
            let $events = &mut $batch.$list;
            $block;
        })+
    };
    (
        { shared, $batch:expr, $signal:pat_param, $events:ident, $block:expr }
        $($variant:ident $name:literal $list:ident: $many:ident<$event:ident>, $doc:literal;)+
    ) => {
        $({
            let $signal = $crate::Signal::$variant;
            let $events = &$batch.$list;
            $block;
        })+
    };
}

/// The events of one signal in a batch: a list, or one event at most.
pub trait Events: Default {
    /// An event of the signal.
    type Event;

    /// The events, in the order sent.
    fn as_slice(&self) -> &[Self::Event];

    /// The events, to be changed in place.
    fn as_mut_slice(&mut self) -> &mut [Self::Event];

    /// Removes the events for which `keep` returns false.
    fn retain_mut(&mut self, keep: impl FnMut(&mut Self::Event) -> bool);

    /// Removes the events from index `at` on and returns them. Returns none when there are at most `at` events.
    fn split_off(&mut self, at: usize) -> Self;

    /// The number of events.
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are no events.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<E> Events for Vec<E> {
    type Event = E;

    fn as_slice(&self) -> &[E] {
        self
    }

    fn as_mut_slice(&mut self) -> &mut [E] {
        self
    }

    fn retain_mut(&mut self, keep: impl FnMut(&mut E) -> bool) {
        Self::retain_mut(self, keep);
    }

    fn split_off(&mut self, at: usize) -> Self {
        Self::split_off(self, at.min(Self::len(self)))
    }
}

impl<E> Events for Option<E> {
    type Event = E;

    fn as_slice(&self) -> &[E] {
        Self::as_slice(self)
    }

    fn as_mut_slice(&mut self) -> &mut [E] {
        Self::as_mut_slice(self)
    }

    fn retain_mut(&mut self, mut keep: impl FnMut(&mut E) -> bool) {
        if self.as_mut().is_some_and(|event| !keep(event)) {
            *self = None;
        }
    }

    fn split_off(&mut self, at: usize) -> Self {
        if at == 0 { self.take() } else { None }
    }
}
