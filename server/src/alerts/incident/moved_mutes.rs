//! Mutes follow a group of janks that symbols or rules moved to another group.

use unjank_database::{GroupMove, Mute};

/// Gives mutes the new keys of groups whose moves are not saved yet.
pub(super) fn rename_mutes(mutes: &mut [Mute], moves: &[GroupMove]) {
    for moved in moves {
        let (rule, from) = (Some(moved.rule), Some(&moved.from));
        let fit = |mute: &&mut Mute| mute.rule == rule && mute.group_key.as_ref() == from;
        for mute in mutes.iter_mut().filter(fit) {
            mute.group_key = Some(moved.to.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use unjank_database::{JsonText, new_id};
    use unjank_foundation::clock::UnixTime;

    use super::*;
    use crate::alerts::judge::verdict::Group;

    #[test]
    fn a_mute_follows_its_group_and_no_other() {
        let at = UnixTime::from_secs(1);
        let (rule, other) = (new_id(at), new_id(at));
        let key = |group: &str| JsonText::new(&json!({ "group_id": group }));
        let mute = |rule, group: Option<&str>| Mute {
            id: new_id(at),
            project: "shop".to_owned(),
            rule,
            group_key: group.map(key),
            starts_at: at,
            ends_at: at,
            reason: "planned".to_owned(),
            created_by: "ann".to_owned(),
            created_at: at,
        };
        let moved = |from: &str, to: &str| GroupMove {
            rule,
            from: key(from),
            to: key(to),
            incident: None,
            group: Group::new(),
        };
        let mut mutes = [
            mute(Some(rule), Some("1")),
            mute(Some(other), Some("1")),
            mute(Some(rule), Some("7")),
            mute(Some(rule), None),
        ];
        rename_mutes(&mut mutes, &[moved("1", "2"), moved("2", "3")]);
        let keys = mutes.map(|mute| mute.group_key);
        let expected = [Some("3"), Some("1"), Some("7"), None];
        assert_eq!(keys, expected.map(|group| group.map(key)));
    }
}
