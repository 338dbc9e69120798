//! The interface of monitors that the app provides.

/// A monitor that is sampled at an interval, on the background thread. The remote configuration (`monitors`) sets the interval
/// for its name, from 100 ms to one hour. A monitor that is not named there is off. One that panics is sampled again at the next
/// interval. One that has the name of a built-in monitor (`fps`, `cpu`, `memory`, `battery`) replaces it.
///
/// ```
/// use unjank::{Config, MetricProvider};
///
/// struct Battery;
///
/// impl MetricProvider for Battery {
///     fn name(&self) -> &str {
///         "battery"
///     }
///
///     fn sample(&mut self, report: &mut dyn FnMut(&'static str, f64)) {
///         report("battery_percent", 81.0); // … as the system reports it …
///     }
/// }
///
/// let config = Config::new("http://127.0.0.1:8080", "demo").monitor(Battery);
/// ```
pub trait MetricProvider: Send {
    /// The monitor's name in the remote configuration, such as `battery`.
    fn name(&self) -> &str;

    /// Reports the current values. Call `report` for each, with its name including the unit, such as `battery_percent`. A value
    /// that is not finite is not recorded. Omit a value that is not known.
    fn sample(&mut self, report: &mut dyn FnMut(&'static str, f64));
}
