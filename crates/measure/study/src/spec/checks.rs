//! Checks beyond serde's: names that must exist elsewhere in the document, values that must differ.

use std::collections::BTreeSet;

use crate::claim::Claim;
use crate::measure::{INSTRUCTIONS, TIMES};
use crate::method::{self, CACHES, repeated};
use crate::nearest;
use crate::protocol::{PROTOCOL, Start};
use crate::setting::{Setting, Settings};
use crate::spec::{Case, Spec};

/// More cells than this are a typing error.
const CELLS_MAX: usize = 10_000;
/// A run would take weeks.
const SAMPLES_MAX: usize = 1_000_000;
/// Each scale is read as a study of its own.
const SCALES_MAX: usize = 64;
/// A page with more is not looked at.
const CHARTS_MAX: usize = 64;
/// The run plan is made axis by axis.
const AXES_MAX: usize = 64;
/// Every cell has all settings, so a long one counts as often as there are cells.
const CELL_BYTES_MAX: usize = 1 << 30;
/// Each claim looks through all cells, for every chart again.
const LOOKS_MAX: usize = 5_000_000;
/// Bytes of a claim's figure, `Fig. 6b`, which stands at each of its cells.
const FIGURE_BYTES_MAX: usize = 200;
/// A setting beside its text: name and value in two maps.
const SETTING_BYTES: usize = 200;

/// The first error, in words.
pub(super) fn check(spec: &Spec) -> Result<(), String> {
    check_axes(spec)?;
    check_sweeps(spec)?;
    check_size(spec)?;
    check_protocol(spec)?;
    check_method(spec)?;
    check_charts(spec)?;
    check_claims(spec)
}

fn check_axes(spec: &Spec) -> Result<(), String> {
    if spec.axes.len() > AXES_MAX {
        return Err(format!("{} axes are more than {AXES_MAX}: remove some", spec.axes.len()));
    }
    for axis in &spec.axes {
        if axis.name == "case" {
            return Err("axes.case: cases are written as [[cases]], rename the axis".to_owned());
        }
        if axis.values.is_empty() {
            return Err(format!("axes.{} has no values: add one or remove it", axis.name));
        }
        if let Some(twice) = repeated(axis.values.iter().map(Setting::to_string)) {
            return Err(format!("axes.{} has {twice} twice: remove one", axis.name));
        }
    }
    if let Some(twice) = repeated(spec.cases.iter().map(|case| case.name.clone())) {
        return Err(format!("two cases are named \"{twice}\": rename one"));
    }
    Ok(())
}

/// Counts cells before any is made. A sweep counts as if it were of all cells.
fn check_size(spec: &Spec) -> Result<(), String> {
    let lengths = spec.axes.iter().map(|axis| axis.values.len());
    let lengths = lengths.chain([spec.cases.len().max(1)]);
    let swept = spec.sweeps.iter().map(|sweep| sweep.values.len());
    let swept = swept.fold(1, usize::saturating_add);
    let cells = lengths.chain([swept]).fold(1, usize::saturating_mul);
    if cells > CELLS_MAX {
        let cells = if cells == usize::MAX { "too many".to_owned() } else { cells.to_string() };
        return Err(format!("{cells} cells are more than {CELLS_MAX}: shorten an axis or a sweep"));
    }
    let samples = cells.saturating_mul(spec.method.repetitions as usize);
    if samples > SAMPLES_MAX {
        return Err(format!(
            "{samples} samples are more than {SAMPLES_MAX}: shorten an axis, or repeat less often"
        ));
    }
    for (count, what, most) in [
        (spec.scales.len(), "scales", SCALES_MAX),
        (spec.method.charts.len(), "charts", CHARTS_MAX),
    ] {
        if count > most {
            return Err(format!("{count} {what} are more than {most}: remove some"));
        }
    }
    // Of each, all settings are compared.
    let excepted = |claim: &Claim| claim.except.iter().map(|cells| 1 + cells.len()).sum::<usize>();
    let claims = spec.claims.iter().map(|claim| 1 + claim.cells.len() + excepted(claim));
    let charts = spec.method.charts.iter().map(|chart| 1 + chart.only.len());
    let compared = claims.sum::<usize>().saturating_mul(1 + charts.sum::<usize>());
    if cells.saturating_mul(compared) > LOOKS_MAX {
        return Err(format!(
            "{} claims with their exceptions, {} charts and {cells} cells are more than {LOOKS_MAX} \
             looks at a cell: remove some, or shorten an axis",
            spec.claims.len(),
            spec.method.charts.len()
        ));
    }
    let widest = |values: &[Setting]| {
        values.iter().map(|value| value.to_string().len()).max().unwrap_or_default()
    };
    let of_axis = |name: &str, values: &[Setting]| SETTING_BYTES + name.len() + widest(values);
    let axes = spec.axes.iter().map(|axis| of_axis(&axis.name, &axis.values));
    let sweeps = spec.sweeps.iter().map(|sweep| of_axis(&sweep.axis, &sweep.values));
    let of_case = |case: &Case| SETTING_BYTES + case.name.len() + bytes(&case.settings);
    let cases = spec.cases.iter().map(of_case).max();
    let cell = axes.chain(sweeps).chain(cases).fold(bytes(&spec.workload), usize::saturating_add);
    match cells.saturating_mul(cell) {
        all if all > CELL_BYTES_MAX => Err(format!(
            "{cells} cells with {cell} bytes of settings each are more than {} MiB: shorten an \
             axis or a setting",
            CELL_BYTES_MAX >> 20
        )),
        _ => Ok(()),
    }
}

fn bytes(settings: &Settings) -> usize {
    let of =
        |(name, value): (&String, &Setting)| SETTING_BYTES + name.len() + value.to_string().len();
    settings.iter().map(of).sum()
}

fn check_sweeps(spec: &Spec) -> Result<(), String> {
    for sweep in &spec.sweeps {
        let at = format!("sweep over {}", sweep.axis);
        if sweep.values.is_empty() {
            return Err(format!("{at} has no values: add one or remove it"));
        }
        if let Some(twice) = repeated(sweep.values.iter().map(Setting::to_string)) {
            return Err(format!("{at} has {twice} twice: remove one"));
        }
        if sweep.axis == "case" || spec.axes.iter().any(|axis| axis.name == sweep.axis) {
            return Err(format!("{at}: that is an axis of all cells already, remove one of them"));
        }
        if sweep.cells.is_empty() {
            return Err(format!("{at} is of all cells: write it as one of the axes"));
        }
        check_cells(spec, &sweep.cells, &at)?;
    }
    Ok(())
}

fn check_protocol(spec: &Spec) -> Result<(), String> {
    let known = Start::ALL.map(Start::name);
    let is_known = |value: &&Setting| value.as_text().is_some_and(|text| known.contains(&text));
    match values_of(spec, PROTOCOL).iter().find(|value| !is_known(value)) {
        Some(value) => {
            let remedy = nearest::remedy(&value.to_string(), &known);
            Err(format!("no {PROTOCOL} is named `{value}`: {remedy}"))
        }
        None => Ok(()),
    }
}

fn check_method(spec: &Spec) -> Result<(), String> {
    let method = &spec.method;
    method.check()?;
    if method.instrumented.is_some() {
        let mut own = values_of(spec, CACHES).into_iter().map(|value| value.to_string());
        own.try_for_each(|text| method::check_caches(&text))?;
        check_untimed(spec)?;
    }
    for name in method.blocks.iter().flatten() {
        check_axis(spec, name, "method.blocks")?;
    }
    if let Some(twice) = repeated(method.blocks.iter().flatten().cloned()) {
        return Err(format!("method.blocks names `{twice}` twice: remove one"));
    }
    check_baseline(spec, &method.baseline, "method.baseline")
}

/// A study without times has no charts and no claims of times.
fn check_untimed(spec: &Spec) -> Result<(), String> {
    let is_of_time =
        |measure: &str| TIMES.contains(&measure) || ["ratio", "latency"].contains(&measure);
    let charts = spec.method.charts.iter().enumerate();
    let mut charts = charts.filter(|(_, chart)| is_of_time(&chart.measure));
    let chart = charts.next().map(|(index, _)| format!("chart {}", index + 1));
    let is_timed = |measure: &Option<String>| measure.as_deref().is_none_or(is_of_time);
    let claim = || spec.claims.iter().find(|claim| is_timed(&claim.measure));
    match chart.or_else(|| claim().map(|claim| format!("claim {}", claim.row))) {
        Some(at) => Err(format!(
            "{at} is of times, and method.instrumented takes none: give it a `measure`, such as \
             `{INSTRUCTIONS}`"
        )),
        None => Ok(()),
    }
}

fn check_charts(spec: &Spec) -> Result<(), String> {
    for (index, chart) in spec.method.charts.iter().enumerate() {
        let at = format!("chart {}", index + 1);
        for name in [&chart.by, &chart.x, &chart.series].into_iter().flatten() {
            check_axis(spec, name, &at)?;
        }
        check_cells(spec, &chart.only, &at)?;
    }
    Ok(())
}

fn check_claims(spec: &Spec) -> Result<(), String> {
    for claim in &spec.claims {
        let at = format!("claim {}", claim.row);
        if claim.figure.len() > FIGURE_BYTES_MAX {
            return Err(format!(
                "{at}: a figure is named by at most {FIGURE_BYTES_MAX} bytes: shorten it"
            ));
        }
        check_cells(spec, &claim.cells, &at)?;
        for except in &claim.except {
            check_cells(spec, except, &format!("{at}: except"))?;
        }
        check_baseline(spec, &claim.against, &format!("{at}: against"))?;
        check_baseline(spec, &claim.than, &format!("{at}: than"))?;
        if claim.over.is_some() && claim.measure.is_none() {
            return Err(format!("{at} has `over` but no `measure`: name the measure above it"));
        }
        if let Some(value) = claim.value {
            check_value_claim(claim, value).map_err(|why| format!("{at}: {why}"))?;
        }
        match claim.ratio {
            Some(ratio) if !(ratio.is_finite() && ratio > 0.0) => {
                return Err(format!("{at}: ratio must be above 0"));
            }
            Some(_) if claim.over.is_some() => {}
            Some(_) if method_has_no_baseline(spec) && claim.against.is_empty() => {
                return Err(format!("{at} has a ratio but no baseline: add method.baseline"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A value is of a measure, and nothing else is claimed beside it.
fn check_value_claim(claim: &Claim, value: f64) -> Result<(), String> {
    if !(value.is_finite() && value > 0.0) {
        return Err("value must be above 0".to_owned());
    }
    if claim.measure.is_none() {
        return Err("it has a `value` but no `measure`: name what it is of".to_owned());
    }
    match claim.ratio.is_some() || claim.direction.is_some() || !claim.than.is_empty() {
        true => Err("a `value` stands alone: write what else is claimed as another".to_owned()),
        false => Ok(()),
    }
}

fn method_has_no_baseline(spec: &Spec) -> bool {
    spec.method.baseline.is_empty()
}

/// A baseline moves along axes, to values that they have.
fn check_baseline(spec: &Spec, baseline: &Settings, at: &str) -> Result<(), String> {
    for (name, value) in baseline {
        check_axis(spec, name, at)?;
        check_value(&values_of(spec, name), name, value, at)?;
    }
    Ok(())
}

/// Cells by any setting that some cell has.
fn check_cells(spec: &Spec, cells: &Settings, at: &str) -> Result<(), String> {
    for (name, value) in cells {
        let values = values_of(spec, name);
        if values.is_empty() {
            let known = setting_names(spec);
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let remedy = nearest::remedy(name, &known);
            return Err(format!("{at}: no cell has a setting `{name}`: {remedy}"));
        }
        check_value(&values, name, value, at)?;
    }
    Ok(())
}

fn check_axis(spec: &Spec, name: &str, at: &str) -> Result<(), String> {
    let mut known: Vec<&str> = spec.axes.iter().map(|axis| axis.name.as_str()).collect();
    known.extend(spec.sweeps.iter().map(|sweep| sweep.axis.as_str()));
    if !spec.cases.is_empty() {
        known.push("case");
    }
    match known.contains(&name) {
        true => Ok(()),
        false => Err(format!("{at}: no axis is named `{name}`: {}", nearest::remedy(name, &known))),
    }
}

fn check_value(values: &[Setting], name: &str, value: &Setting, at: &str) -> Result<(), String> {
    if values.contains(value) {
        return Ok(());
    }
    let known: Vec<String> = values.iter().map(Setting::to_string).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let remedy = nearest::remedy(&value.to_string(), &known);
    Err(format!("{at}: no cell has {name} = `{value}`: {remedy}"))
}

/// Every value that a setting takes in some cell.
fn values_of(spec: &Spec, name: &str) -> Vec<Setting> {
    if name == "case" {
        return spec.cases.iter().map(|case| Setting::Text(case.name.clone())).collect();
    }
    let mut values: Vec<Setting> = Vec::new();
    let axis = spec.axes.iter().find(|axis| axis.name == name);
    match axis {
        Some(axis) => values.extend(axis.values.iter().cloned()),
        None => values.extend(spec.workload.get(name).cloned()),
    }
    values.extend(spec.cases.iter().filter_map(|case| case.settings.get(name)).cloned());
    let sweeps = spec.sweeps.iter().filter(|sweep| sweep.axis == name);
    values.extend(sweeps.flat_map(|sweep| sweep.values.iter().cloned()));
    values
}

fn setting_names(spec: &Spec) -> BTreeSet<String> {
    let axes = spec.axes.iter().map(|axis| axis.name.clone());
    let cases = spec.cases.iter().flat_map(|case| case.settings.keys().cloned());
    let sweeps = spec.sweeps.iter().map(|sweep| sweep.axis.clone());
    let mut names: BTreeSet<String> = axes.chain(cases).chain(sweeps).collect();
    names.extend(spec.workload.keys().cloned());
    if !spec.cases.is_empty() {
        names.insert("case".to_owned());
    }
    names
}
