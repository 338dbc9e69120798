//! The work of the people of the made-up shop: an alert rule, an override of the remote configuration, and decisions about groups of janks.

use serde_json::json;
use unjank_database::{
    Actor, Commented, DocumentChange, GroupDecision, JsonText, NewDecision, RuleText,
};
use unjank_foundation::clock::UnixTime;

use super::{PROJECT, Plan};
use crate::access::configurations::{Draft, save};
use crate::alerts::Rule;
use crate::app::App;
use crate::query::NamedQuery;

const APP_VERSION: &str = "4.12.0";

/// Saves all of it. The project must be new.
pub(super) async fn save_work(app: &App, plan: &Plan) -> anyhow::Result<()> {
    let actor = Actor::cli("unjank demo");
    save_override(app, &actor).await?;
    save_alert_rule(app, &actor).await?;
    decide_on_groups(app, plan, &actor).await
}

/// Measures every checkout of the latest version.
async fn save_override(app: &App, actor: &Actor) -> anyhow::Result<()> {
    let every_checkout = json!({
        "id": "every-checkout-of-4-12",
        "when": {"app_version": ">=4.12"},
        "patch": {"sampling": {"spans": {"overrides": [{"name": "checkout*", "rate": 1.0}]}}},
    });
    let draft = Draft {
        configuration: json!({"base": {}, "overrides": [every_checkout]}),
        note: "Checkout got slower in 4.12: measure all of them".to_owned(),
        expected_revision: 0,
        change: DocumentChange::Saved,
        action: None,
    };
    save(&app.control, PROJECT, draft, actor, app.clock.now()).await?;
    Ok(())
}

/// Fires because of the leak on the product page, in the first round of evaluations. Its bounds are low, so that the few samples of
/// 120 installs are enough.
async fn save_alert_rule(app: &App, actor: &Actor) -> anyhow::Result<()> {
    let rule = Rule::from_value(json!({
        "name": "Memory after 15 minutes of use", "severity": "warning", "owner": "team-catalogue",
        "metric": {
            "signal": "metrics", "measure": "p75", "by": ["page"],
            "filters": {"name": ["memory_used_bytes"], "uptime": ["15m_1h", "over_1h"]},
        },
        "window_minutes": 14 * 1_440, "least_samples": 20, "for_minutes": 0,
        "condition": {
            "kind": "regression", "compare": "same_age",
            "effect": {"worse": "up", "least_relative": 0.2, "significance": 0.01},
        },
    }))
    .map_err(|faults| anyhow::anyhow!("the demo's alert rule has faults: {faults:?}"))?;
    let text = RuleText {
        document: JsonText::new(&rule),
        name: rule.name.clone(),
        enabled: rule.enabled,
        ends: None,
    };
    let now = app.clock.now();
    app.control
        .create_alert_rule(PROJECT, text, actor, now)
        .await?;
    Ok(())
}

/// Resolves the rarest group of janks, and ignores the next one.
async fn decide_on_groups(app: &App, plan: &Plan, actor: &Actor) -> anyhow::Result<()> {
    let ask = NamedQuery {
        from: Some(UnixTime::from_micros(plan.begin())),
        to: Some(UnixTime::from_micros(plan.until)),
        by: vec!["group_id".to_owned(), "title".to_owned()],
        measures: vec!["count".to_owned()],
        order: Some("count".to_owned()),
        filters: vec![("not_a_cause".to_owned(), "false".to_owned())],
        ..NamedQuery::default()
    };
    let now = app.clock.now();
    let asked = ask.table(PROJECT, "janks", now)?;
    let rows = app.clickhouse.read_table(&asked.reading, asked.sort, 2);
    let states = [GroupDecision::Resolved, GroupDecision::Ignored];
    for (row, state) in rows.await?.0.into_iter().zip(states) {
        let [group, title] = &row.keys[..] else {
            continue;
        };
        let group = group.parse()?;
        let new = NewDecision {
            group,
            title: title.clone(),
            state,
            app_id: super::APP.to_owned(),
            app_version: APP_VERSION.to_owned(),
            expected_revision: 0,
        };
        app.control
            .decide_on_group(PROJECT, new, actor, now)
            .await?;
        if state == GroupDecision::Ignored {
            let on = Commented::JankGroup(group);
            let text = "Rare, and only on old devices. Look at it again after the next release.";
            app.control
                .add_comment(PROJECT, (on, title.as_str()), text, actor, now)
                .await?;
        }
    }
    Ok(())
}
