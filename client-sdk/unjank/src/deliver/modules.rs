//! Sends the build ids and addresses of modules once a batch, instead of in each frame.

use std::collections::HashMap;

use unjank_protocol::{Batch, Frame, Module, Text};

/// What distinguishes the modules of a process. The same library may be loaded twice.
type Key = (String, String, Option<u64>);

/// Moves the build ids of all frames into the batch's list of modules. Frames keep their own ids when the list is full.
pub(crate) fn share(batch: &mut Batch<'_>) {
    let mut known: HashMap<Key, u32> = HashMap::new();
    let modules = &mut batch.modules;
    for jank in &mut batch.janks {
        let samples = jank.samples.iter_mut().map(|sample| &mut sample.stack);
        for frame in std::iter::once(&mut jank.stack).chain(samples).flatten() {
            share_frame(frame, modules, &mut known);
        }
    }
}

fn share_frame<'a>(
    frame: &mut Frame<'a>,
    modules: &mut Vec<Module<'a>>,
    known: &mut HashMap<Key, u32>,
) {
    let load_address = load_address(frame);
    // The offset says the same.
    frame.address = frame.address.filter(|_| load_address.is_none());
    // Without a build id, an index would save a few bytes only.
    if frame.build_id.is_empty() || frame.module_index.is_some() {
        return;
    }
    let key = (
        frame.module.to_string(),
        frame.build_id.to_string(),
        load_address,
    );
    let index = known.get(&key).copied().or_else(|| {
        let index = u32::try_from(modules.len()).ok()?;
        (modules.len() < Batch::MAX_MODULES).then_some(())?;
        modules.push(Module {
            name: frame.module.clone(),
            build_id: frame.build_id.clone(),
            load_address,
        });
        known.insert(key, index);
        Some(index)
    });
    if index.is_some() {
        frame.module_index = index;
        frame.build_id = Text::default();
        // The name stays in the frame: servers of versions before the list classify by it.
    }
}

fn load_address(frame: &Frame<'_>) -> Option<u64> {
    frame.address?.checked_sub(frame.offset?)
}

#[cfg(test)]
mod tests {
    use unjank_protocol::Jank;

    use super::*;

    fn frame(module: &'static str, offset: u64) -> Frame<'static> {
        Frame {
            module: module.into(),
            build_id: "67e9247c".into(),
            offset: Some(offset),
            address: Some(0x1000 + offset),
            ..Frame::default()
        }
    }

    #[test]
    fn each_module_is_named_once() {
        let json = r#"{"start": "2026-11-20T12:00:00Z", "duration_ms": 1}"#;
        let mut jank: Jank<'_> = serde_json::from_str(json).unwrap();
        let named = Frame {
            function: "main".into(),
            module: "libc.so".into(),
            ..Frame::default()
        };
        jank.stack = vec![
            frame("a.so", 1),
            frame("b.so", 2),
            frame("a.so", 3),
            named.clone(),
        ];
        let mut batch = Batch {
            janks: vec![jank],
            ..Batch::default()
        };
        share(&mut batch);
        let modules: Vec<_> = batch
            .modules
            .iter()
            .map(|one| (one.name.as_str(), one.load_address))
            .collect();
        assert_eq!(modules, [("a.so", Some(0x1000)), ("b.so", Some(0x1000))]);
        let stack = &batch.janks[0].stack;
        let indexes: Vec<_> = stack.iter().map(|frame| frame.module_index).collect();
        assert_eq!(indexes, [Some(0), Some(1), Some(0), None]);
        assert!(
            stack
                .iter()
                .all(|frame| frame.address.is_none() && frame.build_id.is_empty())
        );
        assert_eq!(stack[3], named);
    }
}
