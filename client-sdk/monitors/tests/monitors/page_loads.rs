//! Page loads: the parts with numbers, the assignment of requests to pages, and what ends a page.

use proptest::prelude::*;
use unjank_monitors::{PageLoads, Scene, Uptime};
use unjank_protocol::config::PageApis;
use unjank_protocol::{LaunchKind, PageLoad, PageOutcome};

fn at(millis: u64) -> Uptime {
    Uptime::from_millis(millis)
}

/// The example of Hertz, and a page without requests.
fn loads() -> PageLoads {
    let page = |page: &str, api: &[&str]| PageApis {
        page: page.to_owned(),
        api: api.iter().map(|path| (*path).to_owned()).collect(),
    };
    let config = [
        page("MainActivity", &["/poi/filter", "/home/head"]),
        page("RestaurantActivity", &["/poi/food", "/home/head"]),
    ];
    PageLoads::new(&config, Scene::default())
}

fn parts(load: &PageLoad<'_>) -> (Option<i64>, Option<i64>, Option<i64>, i64) {
    (load.t1_ms, load.t2_ms, load.t3_ms, load.total_ms)
}

#[test]
fn the_example_of_the_protocol_has_its_documented_durations() {
    let mut loads = loads();
    let page = loads.begin("MainActivity", LaunchKind::Cold, at(5_000));
    let head = loads.request_begin("/home/head", at(5_060));
    let filter = loads.request_begin("/poi/filter", at(5_100));
    loads.first_draw(page, at(5_120));
    loads.first_draw(page, at(5_200));
    loads.request_end(head, 200, at(5_470));
    loads.request_end(filter, 304, at(5_540));
    let load = loads.final_draw(page, at(5_630)).unwrap();
    let expected = serde_json::json!({
        "page": "MainActivity", "start": "1970-01-01T00:00:05Z", "t1_ms": 120, "t2_ms": 480, "t3_ms": 90, "total_ms": 630,
        "launch": "cold", "outcome": "completed", "network": "unknown", "uptime_ms": 5000,
        "requests": [
            {"path": "/home/head", "offset_ms": 60, "duration_ms": 410, "status": 200},
            {"path": "/poi/filter", "offset_ms": 100, "duration_ms": 440, "status": 304},
        ],
    });
    assert_eq!(serde_json::to_value(&load).unwrap(), expected);
    assert_eq!(
        loads.final_draw(page, at(5_700)),
        None,
        "the page has ended"
    );
}

#[test]
fn a_page_without_configured_requests_has_no_t2_and_no_t3() {
    let mut loads = loads();
    let page = loads.begin("AboutActivity", LaunchKind::Warm, at(0));
    let other = loads.request_begin("/about", at(5));
    loads.request_end(other, 200, at(20));
    loads.first_draw(page, at(30));
    let load = loads.final_draw(page, at(40)).unwrap();
    assert_eq!(parts(&load), (Some(30), None, None, 40));
    assert_eq!(load.requests, []);
}

#[test]
fn a_prefetch_begins_before_the_page() {
    let mut loads = loads();
    let food = loads.request_begin("https://api.example.com/poi/food?id=7#top", at(900));
    let page = loads.begin("RestaurantActivity", LaunchKind::Cold, at(1_000));
    loads.request_end(food, 200, at(1_300));
    loads.first_draw(page, at(1_350));
    let load = loads.final_draw(page, at(1_400)).unwrap();
    assert_eq!(parts(&load), (Some(350), Some(400), Some(100), 400));
    let request = &load.requests[0];
    assert_eq!(
        (
            request.path.as_str(),
            request.offset_ms,
            request.duration_ms
        ),
        ("/poi/food", -100, 400)
    );
}

#[test]
fn a_request_of_two_open_pages_belongs_to_the_newest_one_without_it() {
    let mut loads = loads();
    let main = loads.begin("MainActivity", LaunchKind::Cold, at(0));
    let restaurant = loads.begin("RestaurantActivity", LaunchKind::Cold, at(10));
    let requests = [20, 30, 40].map(|time| loads.request_begin("/home/head", at(time)));
    for (request, end) in requests.into_iter().zip([100, 200, 300]) {
        loads.request_end(request, 200, at(end));
    }
    let offsets = |load: PageLoad<'_>| -> Vec<_> {
        load.requests
            .iter()
            .map(|request| request.offset_ms)
            .collect()
    };
    assert_eq!(
        offsets(loads.final_draw(restaurant, at(400)).unwrap()),
        [10, 30]
    );
    assert_eq!(offsets(loads.final_draw(main, at(400)).unwrap()), [30]);
}

#[test]
fn the_last_attempt_of_a_path_decides_the_outcome() {
    for (statuses, outcome) in [
        ([500, 200], PageOutcome::Completed),
        ([200, 0], PageOutcome::Failed),
        ([200, 404], PageOutcome::Failed),
        ([302, 304], PageOutcome::Completed),
    ] {
        let mut loads = loads();
        let page = loads.begin("RestaurantActivity", LaunchKind::Cold, at(0));
        for (status, time) in statuses.into_iter().zip([10, 30]) {
            let request = loads.request_begin("/poi/food", at(time));
            loads.request_end(request, status, at(time + 10));
            loads.request_end(request, 200, at(time + 15));
        }
        let load = loads.final_draw(page, at(50)).unwrap();
        assert_eq!(
            (load.outcome, load.t2_ms),
            (outcome, Some(30)),
            "{statuses:?}"
        );
    }
}

#[test]
fn leaving_and_timing_out_are_not_successes() {
    let mut loads = loads();
    let left = loads.begin("MainActivity", LaunchKind::Cold, at(0));
    loads.first_draw(left, at(100));
    let load = loads.abandon(left, at(900)).unwrap();
    assert_eq!(
        (load.outcome, parts(&load)),
        (PageOutcome::Aborted, (Some(100), None, None, 900))
    );

    loads.begin("AboutActivity", LaunchKind::Cold, at(1_000));
    loads.begin("MainActivity", LaunchKind::Cold, at(1_000));
    let late = loads.request_begin("/home/head", at(1_100));
    assert_eq!(loads.poll(at(30_999)), []);
    let outcomes: Vec<_> = loads
        .poll(at(31_000))
        .iter()
        .map(|load| load.outcome)
        .collect();
    assert_eq!(outcomes, [PageOutcome::Aborted, PageOutcome::Failed]);
    loads.request_end(late, 200, at(31_001));
    assert_eq!(loads.poll(at(90_000)), []);
}

#[test]
fn draws_are_classified_by_the_requests() {
    let mut loads = loads();
    let page = loads.begin("MainActivity", LaunchKind::Cold, at(0));
    assert_eq!(loads.draw(page, at(50)), None, "the loading animation");
    for path in ["/poi/filter", "/home/head"] {
        let request = loads.request_begin(path, at(60));
        assert_eq!(loads.draw(page, at(70)), None);
        loads.request_end(request, 200, at(200));
    }
    let load = loads.draw(page, at(260)).unwrap();
    assert_eq!(parts(&load), (Some(50), Some(140), Some(60), 260));
    let plain = loads.begin("AboutActivity", LaunchKind::Cold, at(300));
    let load = loads.draw(plain, at(340)).unwrap();
    assert_eq!(parts(&load), (Some(40), None, None, 40));
}

#[test]
fn pages_and_requests_beyond_the_bounds_are_counted() {
    let mut loads = loads();
    let pages: Vec<_> = (0..20)
        .map(|_| loads.begin("MainActivity", LaunchKind::Warm, at(0)))
        .collect();
    let requests: Vec<_> = (0..300)
        .map(|_| loads.request_begin("/home/head", at(1)))
        .collect();
    assert_eq!(loads.take_dropped(), 4 + 44);
    for request in requests {
        loads.request_end(request, 200, at(2));
    }
    // Each of the 16 pages got one; the newest got the other 240, of which 63 fit.
    assert_eq!(loads.take_dropped(), 240 - 63);
    let loads: Vec<_> = pages
        .into_iter()
        .filter_map(|page| loads.final_draw(page, at(3)))
        .map(|load| load.requests.len())
        .collect();
    assert_eq!((loads.len(), loads.iter().sum::<usize>()), (16, 15 + 64));
}

#[test]
fn requests_without_an_end_are_dropped_with_their_page_or_over_time() {
    let mut loads = loads();
    for number in 0..600 {
        let page = loads.begin("MainActivity", LaunchKind::Warm, at(number));
        loads.request_begin("/home/head", at(number));
        drop(loads.abandon(page, at(number)));
    }
    for number in 0..600 {
        loads.request_begin("/home/head", at(number * 1_000));
    }
    assert_eq!(loads.take_dropped(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Begin(usize),
    First(usize),
    Draw(usize),
    Final(usize),
    Abandon(usize),
    Request(usize),
    Answer(usize, u16),
    Poll,
    Config,
}

fn some_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0_usize..3).prop_map(Step::Begin),
        (0_usize..20).prop_map(Step::First),
        (0_usize..20).prop_map(Step::Draw),
        (0_usize..20).prop_map(Step::Final),
        (0_usize..20).prop_map(Step::Abandon),
        (0_usize..4).prop_map(Step::Request),
        (0_usize..30, prop_oneof![Just(0), Just(200), Just(500)])
            .prop_map(|(which, status)| Step::Answer(which, status)),
        Just(Step::Poll),
        Just(Step::Config),
    ]
}

proptest! {
    #[test]
    fn a_page_is_reported_once_and_its_parts_lie_within_it(steps in prop::collection::vec((some_step(), 0_u64..3_000), 1..120)) {
        let mut machine = loads();
        let (mut pages, mut requests, mut reported) = (Vec::new(), Vec::new(), Vec::new());
        let mut now = 0;
        for (step, pause) in steps {
            now += pause;
            let time = at(now);
            let page = |which: usize| pages.get(which % pages.len().max(1)).copied();
            match step {
                Step::Begin(which) => {
                    let name = ["MainActivity", "RestaurantActivity", "AboutActivity"][which];
                    pages.push(machine.begin(name, LaunchKind::Cold, time));
                }
                Step::First(which) => if let Some(page) = page(which) { machine.first_draw(page, time) },
                Step::Draw(which) => reported.extend(page(which).and_then(|page| machine.draw(page, time))),
                Step::Final(which) => reported.extend(page(which).and_then(|page| machine.final_draw(page, time))),
                Step::Abandon(which) => reported.extend(page(which).and_then(|page| machine.abandon(page, time))),
                Step::Request(which) => {
                    let path = ["/poi/filter", "/home/head", "/poi/food", "/else"][which];
                    requests.push(machine.request_begin(path, time));
                }
                Step::Answer(which, status) => if let Some(request) = requests.get(which) {
                    machine.request_end(*request, status, time);
                },
                Step::Poll => reported.extend(machine.poll(time)),
                Step::Config => machine.set_config(&[]),
            }
        }
        reported.extend(machine.poll(at(now + 60_000)));
        prop_assert_eq!(reported.len() as u64 + machine.take_dropped(), pages.len() as u64);
        for load in &reported {
            let begun_before = load.requests.iter().map(|request| -i64::from(request.offset_ms)).max().unwrap_or(0).max(0);
            for part in [load.t1_ms, load.t3_ms, load.t2_ms.map(|part| part - begun_before)] {
                prop_assert!(part.unwrap_or(0) <= load.total_ms, "{:?}", load);
            }
            // T2 by its definition, from the reported requests.
            let begins = load.requests.iter().map(|request| i64::from(request.offset_ms));
            let ends = load.requests.iter().map(|request| i64::from(request.offset_ms) + i64::from(request.duration_ms));
            let t2 = begins.min().zip(ends.clone().max()).map(|(first, last)| last - first);
            prop_assert_eq!(load.t2_ms, t2);
            prop_assert_eq!(load.t3_ms.is_some(), load.t3_ms.is_some() && t2.is_some());
            if let (Some(t3), Some(last)) = (load.t3_ms, ends.max()) {
                prop_assert_eq!(t3, load.total_ms - last);
            }
        }
    }
}
