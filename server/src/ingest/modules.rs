//! Gives each frame the name and build id of the module to which it refers, so that later steps need not know the list of modules.

use unjank_protocol::{Batch, Frame, Module};

use super::jank;

/// The maximum size of a module's name: the limit of file names.
const MAX_NAME_BYTES: usize = 255;
/// The maximum size of a build id: a SHA-512 in hexadecimal, with dashes.
const MAX_ID_BYTES: usize = 160;

/// Resolves the modules of all frames. A frame keeps its `module_index` if the batch has no such module.
pub(super) fn resolve(batch: &mut Batch<'_>) {
    let mut modules = std::mem::take(&mut batch.modules);
    // Many frames copy these texts.
    for module in &mut modules {
        module.name.truncate(MAX_NAME_BYTES);
        module.build_id.truncate(MAX_ID_BYTES);
    }
    for frame in batch.janks.iter_mut().flat_map(jank::stacks_mut).flatten() {
        let index = frame
            .module_index
            .and_then(|index| usize::try_from(index).ok());
        if let Some(module) = index.and_then(|index| modules.get(index)) {
            frame.module_index = None;
            fill(frame, module);
        }
    }
}

fn fill<'a>(frame: &mut Frame<'a>, module: &Module<'a>) {
    if frame.module.is_empty() {
        frame.module = module.name.clone();
    }
    if frame.build_id.is_empty() {
        frame.build_id = module.build_id.clone();
    }
    if frame.offset.is_none() {
        let address = frame.address.zip(module.load_address);
        frame.offset = address.and_then(|(address, start)| address.checked_sub(start));
    }
}

#[cfg(test)]
mod tests {
    use unjank_protocol::Jank;

    use super::*;

    #[test]
    fn frames_get_what_they_lack_from_their_module() {
        let mut batch: Batch<'_> = serde_json::from_str(
            r#"{"batch_id": "0192f0c0-7b3e-7cc1-9a55-0123456789ac",
                "resource": {"app_id": "shop", "install_id": "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11"},
                "modules": [{"name": "libshop.so", "build_id": "67e9247c", "load_address": 4096}],
                "janks": [{"start": "2026-11-20T12:00:00Z", "duration_ms": 1, "stack": [
                    {"module_index": 0, "offset": 16}, {"module_index": 0, "address": 4112},
                    {"module_index": 0, "module": "own", "build_id": "1234567", "address": 1}, {"module_index": 7}, {"function": "main"}]}]}"#,
        )
        .unwrap();
        resolve(&mut batch);
        let shown = |frame: &Frame<'_>| {
            let Frame {
                module,
                build_id,
                offset,
                module_index,
                ..
            } = frame;
            format!("{} {} {offset:?} {module_index:?}", &**module, &**build_id)
        };
        let frames: Vec<String> = batch
            .janks
            .iter()
            .flat_map(|jank: &Jank<'_>| &jank.stack)
            .map(shown)
            .collect();
        assert_eq!(
            frames,
            [
                "libshop.so 67e9247c Some(16) None",
                "libshop.so 67e9247c Some(16) None",
                "own 1234567 None None",
                "  None Some(7)",
                "  None None",
            ]
        );
    }
}
