//! Attributes of one event have different names.

use unjank_protocol::Attributes;

/// Of attributes that have one name, the last one counts, as in JavaScript.
pub(super) fn keep_last_of_each_name(Attributes(attributes): &mut Attributes<'_>) {
    let mut at = 0;
    while let Some((name, _)) = attributes.get(at) {
        let mut later = attributes.iter().skip(at + 1);
        if later.any(|(other, _)| other == name) {
            attributes.remove(at);
        } else {
            at += 1;
        }
    }
}
