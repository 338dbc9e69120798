//! The monitor `battery`, which reads the batteries that supply this device.
//!
//! | metric | meaning |
//! |---|---|
//! | `battery_percent` | charge, 0 to 100; the mean of several batteries |
//! | `battery_charging` | 1 while a battery charges, else 0 |
//! | `battery_discharge_watts` | power that is drawn from the batteries; only while one discharges |
//! | `battery_temperature_celsius` | temperature of the warmest battery |
//!
//! | system | source |
//! |---|---|
//! | Linux | `/sys/class/power_supply` |
//! | Android | the same files, which most devices hide from apps: report `BatteryManager` with [`crate::sample`], or with a provider named `battery` |
//! | others | the app: [`crate::sample`], or a provider named `battery`, which replaces this one |
//!
//! A value that the device does not know is not reported. Batteries of mice and other peripherals do not count.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::measure::metric_provider::MetricProvider;

/// Power supplies beyond this number are not read.
const MOST: usize = 16;
/// A value is one short line.
const MOST_BYTES: u64 = 64;

/// Reads the batteries at each interval.
pub(super) struct Battery(PathBuf);

impl Default for Battery {
    fn default() -> Self {
        Self(PathBuf::from("/sys/class/power_supply"))
    }
}

/// One battery, as far as it is known.
#[derive(Debug, Default)]
struct Charge {
    percent: Option<f64>,
    status: Option<String>,
    watts: Option<f64>,
    celsius: Option<f64>,
}

impl MetricProvider for Battery {
    fn name(&self) -> &'static str {
        "battery"
    }

    #[expect(clippy::cast_precision_loss, reason = "at most 16")]
    fn sample(&mut self, report: &mut dyn FnMut(&'static str, f64)) {
        let batteries = batteries(&self.0);
        let percents: Vec<f64> = batteries.iter().filter_map(|one| one.percent).collect();
        if !percents.is_empty() {
            let sum: f64 = percents.iter().sum();
            report("battery_percent", sum / percents.len() as f64);
        }
        let statuses = batteries.iter().filter_map(|one| one.status.as_deref());
        let statuses: Vec<&str> = statuses.filter(|status| *status != "Unknown").collect();
        if !statuses.is_empty() {
            let charges = statuses.contains(&"Charging");
            report("battery_charging", f64::from(u8::from(charges)));
        }
        let is_used = |one: &&Charge| one.status.as_deref() == Some("Discharging");
        let drawn: Vec<f64> = batteries
            .iter()
            .filter(is_used)
            .filter_map(|one| one.watts)
            .collect();
        if !drawn.is_empty() {
            report("battery_discharge_watts", drawn.iter().sum());
        }
        let warmest = batteries.iter().filter_map(|one| one.celsius);
        if let Some(celsius) = warmest.reduce(f64::max) {
            report("battery_temperature_celsius", celsius);
        }
    }
}

fn batteries(folder: &Path) -> Vec<Charge> {
    let Ok(supplies) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let supplies = supplies.take(MOST).filter_map(Result::ok);
    supplies
        .filter_map(|supply| battery(&supply.path()))
        .collect()
}

fn battery(folder: &Path) -> Option<Charge> {
    let text = |name: &str| line(&folder.join(name));
    let number = |name: &str| text(name)?.parse::<f64>().ok();
    let is_own = text("scope").is_none_or(|scope| scope != "Device");
    if text("type")? != "Battery" || !is_own || text("present").as_deref() == Some("0") {
        return None;
    }
    // Microwatts, or microamperes and microvolts. Some drivers give what leaves the battery a negative sign.
    let watts = number("power_now").map(|power| power.abs() / 1e6);
    let product = || Some(number("current_now")?.abs() * number("voltage_now")? / 1e12);
    Some(Charge {
        percent: number("capacity").map(|percent| percent.clamp(0.0, 100.0)),
        status: text("status"),
        watts: watts.or_else(product),
        celsius: number("temp").map(|tenths| tenths / 10.0),
    })
}

/// Returns the first line of a file. The system may refuse or fail any of them.
fn line(file: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(file).ok()?;
    file.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supply(folder: &Path, name: &str, files: &[(&str, &str)]) {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
        }
    }

    fn sampled(folder: &Path) -> Vec<(&'static str, f64)> {
        let mut values = Vec::new();
        Battery(folder.to_owned()).sample(&mut |name, value| values.push((name, value)));
        values
    }

    #[test]
    fn batteries_of_the_device_are_read_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        supply(path, "AC", &[("type", "Mains"), ("online", "0")]);
        let mouse = [("type", "Battery"), ("scope", "Device"), ("capacity", "3")];
        supply(path, "hid-mouse", &mouse);
        let first = [
            ("type", "Battery"),
            ("capacity", "80"),
            ("status", "Discharging"),
            ("current_now", "-1500000"),
            ("voltage_now", "12000000"),
            ("temp", "315"),
        ];
        supply(path, "BAT0", &first);
        let second = [
            ("type", "Battery"),
            ("capacity", "60"),
            ("status", "Discharging"),
            ("power_now", "2000000"),
        ];
        supply(path, "BAT1", &second);
        let expected = [
            ("battery_percent", 70.0),
            ("battery_charging", 0.0),
            ("battery_discharge_watts", 20.0),
            ("battery_temperature_celsius", 31.5),
        ];
        assert_eq!(sampled(path), expected);
    }

    #[test]
    fn a_value_that_is_missing_or_broken_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(sampled(&path.join("missing")).is_empty());
        supply(
            path,
            "BAT0",
            &[
                ("type", "Battery"),
                ("capacity", "full"),
                ("status", "Charging"),
                ("power_now", "2000000"),
                ("temp", ""),
            ],
        );
        supply(
            path,
            "BAT1",
            &[("type", "Battery"), ("present", "0"), ("capacity", "0")],
        );
        supply(path, "BAT2", &[]);
        assert_eq!(sampled(path), [("battery_charging", 1.0)]);
    }
}
