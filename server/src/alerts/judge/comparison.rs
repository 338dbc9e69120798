//! Comparison with the previous version or with last week. A change is a regression if it has enough samples, a large enough effect, and
//! significance.

use std::collections::BTreeMap;
use std::time::Duration;

use unjank_foundation::clock::{DAY, HOUR};
use unjank_foundation::holm::holm;

use crate::alerts::incident::states::Observation;
use crate::alerts::judge::comparison_sides::{Comparison, Measured, ask, measured};
use crate::alerts::judge::like_devices::{is_mix_shift, kinds_of_devices, standardised};
use crate::alerts::judge::verdict::{Group, Numbers, Sides, Verdict, finite};
use crate::alerts::judge::{Case, Judge, MAX_ROWS, OpenGroup};
use crate::alerts::rule::{Compare, Condition, Effect, Rule, Worse};
use crate::query::{FirstSeen, Periods, QueryError, Version};
use crate::store::reads::{Better, Side, SignificanceTest, Span, Subject, Tested, subject};

const WEEK: Duration = Duration::from_secs(7 * 86_400);

/// Verdicts with the dimension values of their groups.
type Found = Vec<(Vec<String>, Verdict)>;

/// Compares the newest version of each app with the previous one.
pub(crate) async fn with_version_before(
    judge: &Judge,
    case: &Case<'_>,
    compare: Compare,
) -> Result<Vec<Verdict>, QueryError> {
    let mut verdicts = Vec::new();
    let counts = samples_by_version(judge, case).await?;
    for (app, versions) in &*judge.versions.of(case.project, case.now).await? {
        let enough = |version: &&Version| {
            let count = counts.get(&vec![app.clone(), version.name.clone()]);
            count.is_some_and(|(_, samples)| *samples >= f64::from(case.rule.least_samples))
        };
        let mut used = versions.iter().filter(enough);
        let (Some(head), before) = (used.next(), used.next()) else {
            continue;
        };
        if head.first_seen >= case.until() {
            continue;
        }
        let held: Vec<&OpenGroup> = case
            .held
            .iter()
            .filter(|held| held.group.get("app_id").is_none_or(|of| of == app))
            .collect();
        // An open incident keeps the base version that it began with, even after later releases.
        let mut bases: Vec<&Version> = before.into_iter().collect();
        for base in held.iter().filter_map(|held| held.base.as_deref()) {
            let known = versions.iter().find(|version| version.name == base);
            let known = known.filter(|base| !bases.contains(base) && base.name != head.name);
            bases.extend(known);
        }
        for (place, base) in bases.into_iter().enumerate() {
            let contested = of_versions(case, app, head, base, compare);
            let found = contest(judge, case, &contested).await?;
            verdicts.extend(found.into_iter().filter(|verdict| {
                let pinned = held.iter().find(|held| held.group == verdict.group);
                match pinned.and_then(|held| held.base.as_deref()) {
                    Some(pinned) => pinned == base.name,
                    None => place == 0,
                }
            }));
        }
        verdicts.extend(withdrawn(case, &held, head));
    }
    Ok(verdicts)
}

/// Returns good verdicts for groups whose worse version was withdrawn: their base version is the newest again.
fn withdrawn<'a>(
    case: &'a Case<'_>,
    held: &'a [&OpenGroup],
    head: &'a Version,
) -> impl Iterator<Item = Verdict> + 'a {
    let back = held
        .iter()
        .filter(|held| held.base.as_deref() == Some(head.name.as_str()));
    back.map(|held| Verdict {
        group: held.group.clone(),
        observed: Observation::Good,
        numbers: Numbers::default(),
        sides: Sides {
            from: case.now - case.rule.window(),
            to: case.now,
            version: Some(head.name.clone()),
            ..Sides::default()
        },
    })
}

/// An app without two versions that have enough samples in the window.
pub(crate) struct AppWithoutBase {
    pub(crate) app: String,
    /// The samples of the version that has the most.
    pub(crate) samples: f64,
}

/// Returns the apps that sent data in the window but cannot be compared.
pub(crate) async fn without_base(
    judge: &Judge,
    case: &Case<'_>,
) -> Result<Vec<AppWithoutBase>, QueryError> {
    let counts = samples_by_version(judge, case).await?;
    let mut apps: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for (keys, (_, samples)) in &counts {
        apps.entry(&keys[0]).or_default().push(*samples);
    }
    let least = f64::from(case.rule.least_samples);
    let lacks = |samples: &[f64]| samples.iter().filter(|one| **one >= least).count() < 2;
    let apps = apps.into_iter().filter(|(_, samples)| lacks(samples));
    let found = apps.map(|(app, samples)| AppWithoutBase {
        app: app.clone(),
        samples: samples.into_iter().fold(0.0, f64::max),
    });
    Ok(found.collect())
}

/// Counts the samples of each version of each app in the window.
async fn samples_by_version(judge: &Judge, case: &Case<'_>) -> Result<Measured, QueryError> {
    let mut ask = case.ask(case.now - case.rule.window(), case.now);
    ask.by = vec!["app_id".to_owned(), "app_version".to_owned()];
    ask.limit = Some(MAX_ROWS);
    measured(judge, case, &ask).await
}

fn of_versions(
    case: &Case<'_>,
    app: &str,
    head: &Version,
    base: &Version,
    compare: Compare,
) -> Comparison {
    let to = case.until();
    let span = Span {
        from: (to - case.rule.window()).max(head.first_seen),
        to,
    };
    let seen = FirstSeen {
        head: head.first_seen,
        base: base.first_seen,
    };
    let periods = match compare {
        Compare::SameDays => None,
        Compare::SameAge => seen.periods(span, case.now),
    };
    let periods = periods.unwrap_or(Periods {
        head: span,
        base: span,
    });
    let side = |version: &Version, span: Span| Side {
        version: Some(version.name.clone()),
        span,
    };
    Comparison {
        app: Some(app.to_owned()),
        head: side(head, periods.head),
        base: side(base, periods.base),
    }
}

/// Compares with the same time last week, in whole hours or days, so that a partial day is not compared with a whole one.
pub(crate) async fn with_last_week(
    judge: &Judge,
    case: &Case<'_>,
) -> Result<Vec<Verdict>, QueryError> {
    let by_day = subject(&case.rule.metric.signal).is_some_and(Subject::is_by_day);
    let unit = if by_day || case.rule.window() >= 3 * DAY {
        DAY
    } else {
        HOUR
    };
    let to = case.now.floor(unit);
    let side = |shift: Duration| Side {
        version: None,
        span: Span {
            from: to - case.rule.window() - shift,
            to: to - shift,
        },
    };
    let contested = Comparison {
        app: None,
        head: side(Duration::ZERO),
        base: side(WEEK),
    };
    contest(judge, case, &contested).await
}

/// Compares the two sides and returns a verdict per group.
async fn contest(
    judge: &Judge,
    case: &Case<'_>,
    contested: &Comparison,
) -> Result<Vec<Verdict>, QueryError> {
    let (effect, up) = direction(case);
    let head = measured(judge, case, &ask(case, contested, &contested.head)).await?;
    let base = measured(judge, case, &ask(case, contested, &contested.base)).await?;
    let least = f64::from(case.rule.least_samples);
    let mut found = Found::new();
    for (keys, (value, samples)) in head {
        let before = base.get(&keys).copied();
        let (base_value, base_samples) = before.unwrap_or((f64::NAN, 0.0));
        let change = value - base_value;
        let numbers = Numbers {
            value: finite(value),
            base: finite(base_value),
            samples,
            base_samples: Some(base_samples),
            change: finite(change),
            relative: finite(change / base_value.abs()),
            bound: Some(effect.least_relative),
            ..Numbers::default()
        };
        let enough = samples >= least && base_samples >= least && change.is_finite();
        let verdict = Verdict {
            group: group(case, contested, &keys),
            observed: if enough {
                against(&effect, up, &numbers)
            } else {
                Observation::Unknown
            },
            numbers,
            sides: sides(contested),
        };
        found.push((keys, verdict));
    }
    if found
        .iter()
        .any(|(_, verdict)| verdict.observed != Observation::Unknown)
    {
        with_like_devices(judge, case, contested, &mut found).await?;
        for kind in [Observation::Bad, Observation::MixShift] {
            test_significance(judge, case, contested, &mut found, kind).await?;
        }
    }
    Ok(found.into_iter().map(|(_, verdict)| verdict).collect())
}

/// Bases the verdicts on the change between like devices: a different mix can hide a change as well as cause one.
async fn with_like_devices(
    judge: &Judge,
    case: &Case<'_>,
    contested: &Comparison,
    found: &mut Found,
) -> Result<(), QueryError> {
    let (effect, up) = direction(case);
    let mut changes = standardised(judge, case, contested).await?;
    for (keys, verdict) in found
        .iter_mut()
        .filter(|(_, verdict)| verdict.observed != Observation::Unknown)
    {
        let numbers = &mut verdict.numbers;
        numbers.standardised = changes.remove(keys);
        if let (Some(change), Some(base)) = (numbers.standardised, numbers.base) {
            let between_like = Numbers {
                change: Some(change * base.abs()),
                relative: Some(change),
                ..Numbers::default()
            };
            let raw = verdict.observed;
            verdict.observed = match against(&effect, up, &between_like) {
                Observation::Good | Observation::Between
                    if raw == Observation::Bad
                        && is_mix_shift(numbers.relative.unwrap_or_default(), change, up) =>
                {
                    Observation::MixShift
                }
                observed => observed,
            };
        }
        // An open incident was tested when it began. It stays open for as long as the effect lasts.
        if verdict.observed == Observation::Bad
            && case.held.iter().any(|held| held.group == verdict.group)
        {
            verdict.observed = Observation::Between;
        }
    }
    Ok(())
}

/// Tests the groups with the observation `seem`. A change that chance can explain becomes [`Observation::Between`].
async fn test_significance(
    judge: &Judge,
    case: &Case<'_>,
    contested: &Comparison,
    found: &mut Found,
    seem: Observation,
) -> Result<(), QueryError> {
    let (effect, up) = direction(case);
    let seems = |(_, verdict): &&(Vec<String>, Verdict)| verdict.observed == seem;
    if effect.significance >= 1.0 || !found.iter().any(|one| seems(&one)) {
        return Ok(());
    }
    let question = ask(case, contested, &contested.head);
    let asked = question.table(case.project, &case.rule.metric.signal, case.now)?;
    let mut reading = asked.reading;
    // Each side has its own version filter, except in a comparison of weeks.
    if contested.head.version.is_some() {
        reading
            .filters
            .retain(|filter| filter.dimension.name() != "app_version");
    }
    // Strata would hide a shift of the device mix.
    let strata = if seem == Observation::MixShift {
        Vec::new()
    } else {
        kinds_of_devices(case)
    };
    let test = SignificanceTest {
        reading: &reading,
        head: &contested.head,
        base: &contested.base,
        up,
        strata: &strata,
    };
    if let Some(tested) = judge.clickhouse.tested(&test).await? {
        judge_significance(found, seem, &tested, effect.significance);
    }
    Ok(())
}

fn judge_significance(found: &mut Found, seem: Observation, tested: &[Tested], significance: f64) {
    let compared = found
        .iter()
        .filter(|(_, verdict)| verdict.observed != Observation::Unknown)
        .count();
    let seem: Vec<usize> = (0..found.len())
        .filter(|place| found[*place].1.observed == seem)
        .collect();
    let of = |keys: &Vec<String>| tested.iter().find(|one| one.keys == *keys);
    let p: Vec<f64> = seem
        .iter()
        .map(|place| of(&found[*place].0).map_or(1.0, |one| one.p))
        .collect();
    for (place, corrected) in seem.into_iter().zip(holm(&p, compared)) {
        let (keys, verdict) = &mut found[place];
        let one = of(keys);
        verdict.numbers.p = one.map(|one| one.p);
        verdict.numbers.installs = one.map(|one| one.installs);
        verdict.numbers.p_corrected = Some(corrected);
        verdict.numbers.groups = Some(compared);
        if corrected >= significance {
            verdict.observed = Observation::Between;
        }
    }
}

/// Classifies a change by its size alone, without a test.
fn against(effect: &Effect, up: bool, numbers: &Numbers) -> Observation {
    let sign = if up { 1.0 } else { -1.0 };
    let change = sign * numbers.change.unwrap_or_default();
    // A rise from zero exceeds any relative bound.
    let relative = numbers
        .relative
        .map_or(if change > 0.0 { f64::INFINITY } else { 0.0 }, |it| {
            sign * it
        });
    let reaches = |part: f64| {
        change > 0.0
            && relative >= effect.least_relative * part
            && change >= effect.least_absolute * part
    };
    if reaches(1.0) {
        Observation::Bad
    } else if reaches(effect.recover) {
        Observation::Between
    } else {
        Observation::Good
    }
}

/// Returns the effect of the rule's condition, and whether a rise is bad.
fn direction(case: &Case<'_>) -> (Effect, bool) {
    let effect = match &case.rule.condition {
        Condition::Regression { effect, .. } | Condition::LastWeek { effect } => *effect,
        _ => Effect::default(),
    };
    (effect, is_worse_up(case.rule))
}

/// Whether a rise is bad.
pub(crate) fn is_worse_up(rule: &Rule) -> bool {
    let configured = match &rule.condition {
        Condition::Threshold { above, .. } => return above.is_some(),
        Condition::Regression { effect, .. } | Condition::LastWeek { effect } => effect.worse,
        Condition::Absence {} | Condition::Appearance { .. } => None,
    };
    let better = subject(&rule.metric.signal)
        .and_then(|subject| subject.measure(&rule.metric.measure))
        .map_or(Better::Lower, |measure| measure.better);
    configured.map_or(better != Better::Higher, |worse| worse == Worse::Up)
}

fn group(case: &Case<'_>, contested: &Comparison, keys: &[String]) -> Group {
    let mut group = case.group(keys);
    group.extend(
        contested
            .app
            .iter()
            .map(|app| ("app_id".to_owned(), app.clone())),
    );
    group
}

fn sides(contested: &Comparison) -> Sides {
    let (head, base) = (&contested.head, &contested.base);
    Sides {
        from: head.span.from,
        to: head.span.to,
        base_from: Some(base.span.from),
        base_to: Some(base.span.to),
        version: head.version.clone(),
        base_version: base.version.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(change: f64, relative: Option<f64>, up: bool) -> Observation {
        let effect = Effect {
            least_relative: 0.2,
            least_absolute: 10.0,
            ..Effect::default()
        };
        let numbers = Numbers {
            change: Some(change),
            relative,
            ..Numbers::default()
        };
        against(&effect, up, &numbers)
    }

    #[test]
    fn an_effect_reaches_both_bounds_and_ends_at_half_of_them() {
        assert_eq!(observed(20.0, Some(0.2), true), Observation::Bad);
        assert_eq!(
            observed(9.0, Some(0.9), true),
            Observation::Between,
            "too small"
        );
        assert_eq!(observed(900.0, Some(0.15), true), Observation::Between);
        assert_eq!(observed(900.0, Some(0.09), true), Observation::Good);
        assert_eq!(observed(-20.0, Some(-0.2), true), Observation::Good);
        assert_eq!(observed(-20.0, Some(-0.2), false), Observation::Bad);
        assert_eq!(observed(20.0, None, true), Observation::Bad, "from zero");
    }
}
