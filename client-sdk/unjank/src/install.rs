//! The folder of the app's data: its install id, and what an earlier process left.

use std::io;
use std::path::{Path, PathBuf};

use unjank_protocol::Resource;
use uuid::Uuid;

use crate::config::{Config, Device, Mode};
use crate::deliver::spill;

/// Creates the folder. Returns whether it is there.
pub(crate) fn make(folder: &Path) -> bool {
    std::fs::create_dir_all(folder).is_ok()
}

/// Returns the stored install id, or a new one that it stores.
pub(crate) fn install_id(file: Option<PathBuf>) -> Uuid {
    let new = Uuid::new_v4();
    let Some(file) = file else { return new };
    match std::fs::read(&file) {
        Ok(text) => {
            let text = String::from_utf8_lossy(&text);
            if let Ok(known) = text.trim().parse() {
                return known;
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // There is an id, and the next start may be able to read it.
        Err(_) => return new,
    }
    // If the disk does not accept the id, every start is a new install; nothing else can be done here.
    let written = file.with_extension("new");
    let _failed = std::fs::write(&written, new.to_string())
        .and_then(|()| std::fs::rename(&written, &file))
        .is_err();
    new
}

/// Deletes what an earlier process did not send.
pub(crate) fn forget_unsent(folder: &Path) {
    // The files may not exist. A deletion that fails is retried when the user declines again.
    let _queue = std::fs::remove_dir_all(folder.join("queue")).is_err();
    spill::delete(folder);
    let _traffic = std::fs::remove_file(folder.join("traffic.json")).is_err();
}

/// The app and the device, without a user.
pub(crate) fn resource(config: &Config, device: &Device, install_id: Uuid) -> Resource<'static> {
    let text = |text: &String| text.clone().into();
    Resource {
        app_id: text(&config.app_id),
        app_version: text(&config.app_version),
        build: config.build,
        channel: text(&device.channel),
        mode: match config.mode {
            Mode::Development => "development",
            Mode::Test => "test",
            Mode::Production => "production",
        }
        .into(),
        os_name: text(&device.os_name),
        os_version: text(&device.os_version),
        device_model: text(&device.model),
        device_manufacturer: text(&device.manufacturer),
        device_class: text(&device.class),
        refresh_hz: device.refresh_hz,
        locale: text(&device.locale),
        install_id,
        user_id: "".into(),
        sdk_name: "unjank".into(),
        sdk_version: env!("CARGO_PKG_VERSION").into(),
    }
}
