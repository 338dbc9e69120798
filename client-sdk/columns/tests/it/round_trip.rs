//! Both forms of a batch are read as the same batch.

use proptest::prelude::*;
use unjank_columns::{Bounds, Writer, read, sent, write};
use unjank_protocol::{Batch, Events, for_each_signal};

use crate::made::Maker;

proptest! {
    #[test]
    fn both_forms_of_a_batch_are_read_as_the_same(seed: u64) {
        let batch = Maker::new(seed).batch();
        let json = serde_json::to_string(&batch).unwrap();
        let of_json: Batch<'_> = serde_json::from_str(&json).unwrap();
        let columns = write(&batch);
        let of_columns = read(&columns, &Bounds::default()).unwrap();
        prop_assert!(of_columns.malformed.is_empty(), "{:?}", of_columns.malformed);
        prop_assert_eq!(of_columns.batch, of_json);
    }

    #[test]
    fn one_writer_writes_each_batch_as_a_new_one_does(seeds: (u64, u64)) {
        let batches = [seeds.0, seeds.1].map(|seed| Maker::new(seed).batch());
        let mut writer = Writer::default();
        for batch in &batches {
            prop_assert_eq!(writer.finish(batch), write(batch));
        }
    }

    #[test]
    fn a_clone_of_a_writer_has_the_batch_so_far(seeds: (u64, u64)) {
        let [head, more] = [seeds.0, seeds.1].map(|seed| Maker::new(seed).batch());
        let mut writer = Writer::default();
        head.spans.iter().for_each(|span| writer.add(span));
        let mut so_far = writer.clone();
        more.spans.iter().for_each(|span| writer.add(span));
        let mut expected = Writer::default();
        head.spans.iter().for_each(|span| expected.add(span));
        prop_assert_eq!(so_far.finish(&head), expected.finish(&head));
        let spans = [&head.spans[..], &more.spans[..]].concat();
        spans.iter().for_each(|span| expected.add(span));
        prop_assert_eq!(writer.finish(&more), expected.finish(&more));
    }

    #[test]
    fn events_can_be_added_one_by_one(seed: u64) {
        let whole = Maker::new(seed).batch();
        let mut writer = Writer::default();
        let mut head = Batch { sent_at: None, ..whole.clone() };
        for_each_signal!(&mut head, |_, events| drop(events.split_off(0)));
        // Signals in turns, as an app records them.
        for index in 0..150 {
            for_each_signal!(&whole, |_, events| {
                if let Some(event) = Events::as_slice(events).get(index) {
                    writer.add(event);
                }
            });
        }
        let mut body = writer.finish(&head);
        if let Some(time) = whole.sent_at {
            body.extend(sent(time));
        }
        let of_whole = write(&whole);
        let bounds = Bounds::default();
        prop_assert_eq!(read(&body, &bounds).unwrap().batch, read(&of_whole, &bounds).unwrap().batch);
    }
}
