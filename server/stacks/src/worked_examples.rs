//! Worked examples based on those of the Hertz article: stacks and their classes.

use unjank_protocol::Frame;

use super::Rules;

/// Narrow rules first.
const RULES: &str = r#"
    [[rule]]
    match = ["org.shop.", "org.shoplib."]
    means = "in_app"

    [[rule]]
    match = "android.content.res."
    means = "category"
    category = "layout inflation"

    [[rule]]
    match = "com.google.gson."
    means = "category"
    category = "JSON on main thread"

    [[rule]]
    match = ["android.database.", "de.greenrobot.dao."]
    means = "category"
    category = "database on main thread"
    owner = "team-storage"

    [[rule]]
    match = "android.os.MessageQueue"
    function = "nativePollOnce"
    means = "not_a_cause"

    [[rule]]
    match = "android."
    means = "ignore"
"#;

fn rules() -> Rules {
    Rules::parse(RULES).unwrap()
}

/// `class#function:line`, innermost first.
pub(super) fn stack(frames: &'static [&'static str]) -> Vec<Frame<'static>> {
    let frame = |text: &&'static str| {
        let (class, rest) = text.split_once('#').unwrap_or(("", text));
        let (function, line) = rest.split_once(':').unwrap_or((rest, "0"));
        Frame {
            class: class.into(),
            function: function.into(),
            line: line.parse().unwrap(),
            ..Frame::default()
        }
    };
    frames.iter().map(frame).collect()
}

const INFLATION: &[&str] = &[
    "android.content.res.StringBlock#nativeGetString",
    "android.content.res.XmlBlock$Parser#getName:175",
    "android.view.LayoutInflater#inflate:470",
    "org.shop.controller.ui.FeedListController#getView:77",
    "org.shop.adapter.FeedListAdapter#getView:26",
    "android.widget.HeaderViewListAdapter#getView:220",
];
const JSON: &[&str] = &[
    "com.google.gson.Gson#toJson:519",
    "org.shoplib.common.JsonWrapper$MyGson#toJson:236",
    "org.shop.collector.CollectorFilter#<init>:27",
    "org.shoplib.LocatorHandler$1#handleMessage:29",
];
const DATABASE: &[&str] = &[
    "android.database.sqlite.SQLiteConnection#nativeExecute",
    "android.database.sqlite.SQLiteStatement#executeInsert:86",
    "de.greenrobot.dao.AbstractDao#insert:276",
    "org.shop.db.dao.BaseDao#insert:25",
    "org.shop.log.LogData#save:116",
];

#[test]
fn the_worked_examples_get_their_documented_classes() {
    let expected = [
        (
            INFLATION,
            "layout inflation",
            "org.shop.controller.ui.FeedListController.getView",
            "layout inflation in FeedListController.getView",
        ),
        (
            JSON,
            "JSON on main thread",
            "org.shoplib.common.JsonWrapper$MyGson.toJson",
            "JSON on main thread in JsonWrapper$MyGson.toJson",
        ),
        (
            DATABASE,
            "database on main thread",
            "org.shop.db.dao.BaseDao.insert",
            "database on main thread in BaseDao.insert",
        ),
    ];
    for (frames, category, culprit, title) in expected {
        let class = rules().classify(&stack(frames));
        assert_eq!(
            (class.category.as_str(), class.culprit.as_str()),
            (category, culprit)
        );
        assert_eq!((class.title.as_str(), class.not_a_cause), (title, false));
    }
}

#[test]
fn the_title_of_one_of_several_classes_blames_none_of_them() {
    for (frame, title) in [
        (
            "org.{bank.Tool, bank.Util, shop.Main}#help",
            "{bank.Tool, bank.Util, shop.Main}.help",
        ),
        (
            "org.shop.{Cart, Prices}#add or sum",
            "{Cart, Prices}.add or sum",
        ),
        (
            "{org.shop.Cart, com.bank.Bank}#pay",
            "{org.shop.Cart, com.bank.Bank}.pay",
        ),
        ("org.shop.Main#help", "Main.help"),
    ] {
        let (class, function) = frame.split_once('#').unwrap();
        let frame = Frame {
            class: class.into(),
            function: function.into(),
            ..Frame::default()
        };
        assert_eq!(rules().classify(&[frame]).title, title);
    }
}

#[test]
fn the_built_in_rules_give_the_same_classes_without_knowing_the_app() {
    for frames in [INFLATION, JSON, DATABASE] {
        let frames = stack(frames);
        let exact = rules().classify(&frames);
        let guessed = Rules::built_in().classify(&frames);
        assert_eq!(
            (exact.category, exact.culprit, exact.group_id),
            (guessed.category, guessed.culprit, guessed.group_id)
        );
    }
}

#[test]
fn the_culprits_owner_takes_precedence_over_the_categorys() {
    let owned = format!(
        "[[rule]]\nmatch = \"org.shop.db.\"\nmeans = \"in_app\"\nowner = \"team-orders\"\n{RULES}"
    );
    assert_eq!(
        Rules::parse(&owned)
            .unwrap()
            .classify(&stack(DATABASE))
            .owner,
        "team-orders"
    );
    assert_eq!(rules().classify(&stack(DATABASE)).owner, "team-storage");
    assert_eq!(rules().classify(&stack(INFLATION)).owner, "");
}

#[test]
fn only_an_innermost_idle_loop_suppresses_the_culprit() {
    let idle = stack(&[
        "android.os.MessageQueue#nativePollOnce",
        "android.os.Looper#loop:288",
        "org.shop.Main#run:1",
    ]);
    let class = rules().classify(&idle);
    assert!(class.not_a_cause);
    assert_eq!(
        (
            class.category.as_str(),
            class.culprit.as_str(),
            class.owner.as_str()
        ),
        ("", "", "")
    );
    assert_eq!(class.title, "idle at MessageQueue.nativePollOnce");

    let behind_system_code = stack(&[
        "android.os.Trace#isTagEnabled",
        "android.os.MessageQueue#nativePollOnce",
    ]);
    assert!(rules().classify(&behind_system_code).not_a_cause);
    let further_out = stack(&[
        "com.google.gson.Gson#toJson",
        "android.os.MessageQueue#nativePollOnce",
        "org.shop.Main#run:1",
    ]);
    let class = rules().classify(&further_out);
    assert_eq!(
        (class.not_a_cause, class.culprit.as_str()),
        (false, "org.shop.Main.run")
    );
    let behind_unclaimed_code = stack(&[
        "com.unknown.Hook#poll",
        "android.os.MessageQueue#nativePollOnce",
    ]);
    assert!(!rules().classify(&behind_unclaimed_code).not_a_cause);
}

#[test]
fn without_app_code_the_innermost_frame_not_ignored_names_the_group() {
    let class = rules().classify(&stack(&[
        "android.view.View#draw",
        "com.google.gson.Gson#toJson",
        "com.unknown.Lib#save",
    ]));
    assert_eq!(
        (class.culprit.as_str(), class.title.as_str()),
        ("", "JSON on main thread at Gson.toJson")
    );
    let unclaimed = rules().classify(&stack(&["android.view.View#draw", "com.unknown.Lib#save"]));
    assert_eq!(
        (unclaimed.culprit.as_str(), unclaimed.title.as_str()),
        ("", "Lib.save")
    );
    let ignored = rules().classify(&stack(&[
        "android.view.View#draw",
        "android.view.View#layout",
    ]));
    assert_eq!(
        (ignored.culprit.as_str(), ignored.title.as_str()),
        ("", "View.draw")
    );
}

#[test]
fn a_file_may_set_whether_unclaimed_frames_are_the_apps_own() {
    let frames = stack(&["com.unknown.Lib#save", "org.shop.Feed#open"]);
    let culprit = |file: &str| Rules::parse(file).unwrap().classify(&frames).culprit;
    assert_eq!(culprit(RULES), "org.shop.Feed.open");
    assert_eq!(
        culprit(&format!("assume_in_app = true\n{RULES}")),
        "com.unknown.Lib.save"
    );
    assert_eq!(culprit("assume_in_app = false"), "");
    assert_eq!(culprit(""), "com.unknown.Lib.save");
}

#[test]
fn an_empty_stack_has_a_class_too() {
    let class = rules().classify(&[]);
    assert_eq!(
        (
            class.title.as_str(),
            class.culprit.as_str(),
            class.not_a_cause
        ),
        ("no stack", "", false)
    );
    assert_ne!(class.group_id, 0);
    let nothing_known = rules().classify(&[Frame::default()]);
    assert_eq!(
        (nothing_known.title.as_str(), nothing_known.culprit.as_str()),
        ("<unknown>", "")
    );
    assert_eq!(Rules::built_in().classify(&[Frame::default()]).culprit, "");
}

#[test]
fn the_top_level_code_of_each_script_is_a_group() {
    let class = |file: &'static str, line| {
        let frame = Frame {
            file: file.into(),
            line,
            ..Frame::default()
        };
        Rules::built_in().classify(&[frame])
    };
    let (a, b) = (class("https://shop.example/a.js", 1), class("/app/b.js", 7));
    assert_eq!(
        [&a.title, &a.culprit, &b.title],
        [
            "top-level code (a.js)",
            "top-level code (a.js)",
            "top-level code (b.js)"
        ]
    );
    assert_ne!(a.group_id, b.group_id);
    // A release moves the line.
    assert_eq!(a.group_id, class("https://shop.example/a.js", 9).group_id);
    // A release changes the hash.
    let [old, new] = ["/a.3f2a1b9c.js", "/a-BqV3x9aZ.js"].map(|file| class(file, 1));
    assert_eq!([a.group_id; 2], [old.group_id, new.group_id]);
}

#[test]
fn a_function_is_in_one_group_mangled_or_not() {
    let class = |function: &'static str| {
        let frame = Frame {
            function: function.into(),
            ..Frame::default()
        };
        Rules::built_in().classify(&[frame])
    };
    for (mangled, demangled) in [
        (
            "_ZN4shop4CartIiE3addIcEEvT_",
            "void shop::Cart<int>::add<char>(char)",
        ),
        (
            "_RINvMC1aINtB3_4CartmE3addhE",
            "<a[1a2b3c4d]::Cart<u32>>::add::<u8>",
        ),
    ] {
        assert_eq!(class(mangled), class(demangled), "{demangled}");
    }
}

#[test]
fn a_group_distinguishes_callers_but_not_recursion_depth() {
    let group = |frames: &'static [&'static str]| rules().classify(&stack(frames)).group_id;
    let once = group(&["org.shop.Tree#walk", "org.shop.Feed#open"]);
    assert_eq!(
        once,
        group(&[
            "org.shop.Tree#walk",
            "org.shop.Tree#walk",
            "org.shop.Tree#walk",
            "org.shop.Feed#open"
        ])
    );
    assert_ne!(once, group(&["org.shop.Tree#walk", "org.shop.Cart#open"]));
    let two = group(&[
        "org.shop.Tree#walk",
        "org.shop.Tree#visit",
        "org.shop.Feed#open",
    ]);
    assert_eq!(
        two,
        group(&[
            "org.shop.Tree#walk",
            "org.shop.Tree#visit",
            "org.shop.Tree#walk",
            "org.shop.Tree#visit",
            "org.shop.Feed#open"
        ])
    );
}

#[test]
fn a_release_that_renumbers_lambdas_does_not_split_a_group() {
    let group = |frames: &'static [&'static str]| rules().classify(&stack(frames)).group_id;
    assert_eq!(
        group(&[
            "android.view.View#draw:1",
            "org.shop.Feed$1#onClick:10",
            "org.shop.Feed#lambda$open$0:20"
        ]),
        group(&[
            "android.view.View#draw:2",
            "org.shop.Feed$12#onClick:11",
            "org.shop.Feed#lambda$open$3:25"
        ]),
    );
    assert_eq!(
        group(&["org.shop.Feed$$ExternalSyntheticLambda0#run:2"]),
        group(&["org.shop.Feed$$ExternalSyntheticLambda7#run:4"]),
    );
}
