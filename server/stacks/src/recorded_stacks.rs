//! Tests on recorded stacks of real apps. They are third-party data and not part of the project: the tests run only if
//! `UNJANK_TEST_DATA` names a folder of recordings.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use unjank_protocol::Frame;

use super::Rules;

#[derive(Deserialize)]
struct Named<'a> {
    name: String,
    #[serde(borrow)]
    frames: Vec<Frame<'a>>,
}

#[derive(Deserialize)]
struct Session<'a> {
    #[serde(borrow, default)]
    janks: Vec<Stack<'a>>,
}

#[derive(Deserialize)]
struct Stack<'a> {
    #[serde(borrow)]
    stack: Vec<Frame<'a>>,
}

fn folder() -> Option<PathBuf> {
    std::env::var_os("UNJANK_TEST_DATA").map(PathBuf::from)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_stacks_of_the_hertz_article_get_the_titles_it_describes() {
    let Some(folder) = folder() else { return };
    let rules = Rules::parse(
        "built_in = true\n[[rule]]\nmatch = [\"com.sankuai.\", \"com.meituan.\"]\nmeans = \"in_app\"\n",
    )
    .unwrap();
    let text = read(&folder.join("stacks/hertz.json"));
    let stacks: Vec<Named<'_>> = serde_json::from_str(&text).unwrap();
    let titles: Vec<(String, String)> = stacks
        .into_iter()
        .map(|stack| (stack.name, rules.classify(&stack.frames).title))
        .collect();
    let expected = [
        (
            "layout-inflation",
            "layout inflation in PoiListAdapterController.getView",
        ),
        (
            "gson",
            "JSON on main thread in GoogleJsonWrapper$MyGson.toJson",
        ),
        (
            "sqlite",
            "database on main thread in BaseAbstractDao.insert",
        ),
    ];
    assert_eq!(
        titles,
        expected.map(|(name, title)| (name.to_owned(), title.to_owned()))
    );
}

#[test]
fn every_recorded_stack_has_a_culprit_or_is_idle() {
    let Some(folder) = folder() else { return };
    let rules = Rules::built_in();
    let mut stacks = 0;
    for entry in std::fs::read_dir(folder.join("sessions")).unwrap() {
        let text = read(&entry.unwrap().path());
        let session: Session<'_> = serde_json::from_str(&text).unwrap();
        for jank in session.janks {
            let class = rules.classify(&jank.stack);
            assert!(class.not_a_cause || !class.culprit.is_empty(), "{class:?}");
            stacks += 1;
        }
    }
    assert!(stacks > 0, "the folder contains no stack");
}
