//! Valid studies, and the exact error of each mistake.

use super::*;

const STUDY: &str = r#"
title = "Demo"
question = "Which?"
engine = "native"
seed = 2005
needs = ["siblings"]
workload = { operator = "hash_join", rows = 2_000 }
time_s = 60
memory_mib = 900

[axes]
pages = ["huge", "small"]
size = [64, 128]

[[cases]]
name = "sequential"
technique = "sequential"

[[cases]]
name = "AMAC"
technique = "amac:width=32"

[method]
baseline = { case = "sequential" }
blocks = ["size"]
mean = "trimmed"
charts = [{ kind = "bars", by = "case" }]

[[paper]]
row = "E4.6"
figure = "Fig. 6b"
where = { case = "AMAC" }
ratio = 1.5
says = "+50 %"

[scale.small]
workload.rows = 100
method.repetitions = 2
axes.size = [64]
"#;

/// The message for a study with one piece of text replaced.
fn message(old: &str, new: &str) -> String {
    assert!(STUDY.contains(old), "{old}");
    Spec::parse("demo", &STUDY.replacen(old, new, 1)).unwrap_err().to_string()
}

#[test]
fn everything_is_read() {
    let spec = Spec::parse("demo", STUDY).unwrap();
    assert_eq!(spec.seed, 2005);
    assert_eq!(spec.needs, [Requirement::Siblings]);
    assert_eq!(spec.workload["rows"], Setting::Integer(2000));
    assert_eq!(spec.axes[0].name, "pages", "axes keep their order");
    assert_eq!(spec.cases[1].settings["technique"], Setting::from("amac:width=32"));
    assert_eq!(spec.method.mean, crate::statistics::Mean::Trimmed);
    assert_eq!((spec.method.repetitions, spec.method.warmup), (5, 1));
    assert_eq!(spec.method.charts[0].measure, "mtuples_per_s");
    assert_eq!(spec.claims[0].ratio, Some(1.5));
    assert_eq!(spec.scales, ["small"]);
    assert_eq!(spec.axis_names(), ["size", "pages", "case"], "block axes are the outer ones");
}

/// `engine = { modelled = "M" }` is the engine and its setting in one.
#[test]
fn an_engine_may_be_a_machine() {
    let of = |engine: &str| {
        let text = format!("title = 't'\nquestion = 'q'\nengine = {engine}\n");
        Spec::parse("demo", &text)
    };
    let spec = of("{ modelled = 'p4-ht-2m' }").unwrap();
    assert!(spec.is_modelled() && !of("'native'").unwrap().is_modelled());
    assert_eq!(spec.workload["machine"].as_text(), Some("p4-ht-2m"));
    let twice = of("{ modelled = 'p4-ht-2m' }\nworkload.machine = 'e3-1240'").unwrap_err();
    assert!(twice.to_string().contains("stands twice"), "{twice}");
    let other = of("{ modeled = 'p4-ht-2m' }").unwrap_err();
    assert!(other.to_string().contains("{ modelled = \"MACHINE\" }"), "{other}");
}

#[test]
fn a_scale_changes_what_it_names_and_nothing_else() {
    let whole = Spec::parse("demo", STUDY).unwrap();
    let small = Spec::parse_scaled("demo", STUDY, "small").unwrap();
    assert_eq!(small.workload["rows"], Setting::Integer(100));
    assert_eq!(small.workload["operator"], whole.workload["operator"]);
    assert_eq!(small.method.repetitions, 2);
    assert_eq!(small.method.baseline, whole.method.baseline);
    assert_eq!(small.axes[1].values, [Setting::Integer(64)]);
    assert_eq!(small.scale.as_deref(), Some("small"));
}

#[test]
fn a_setting_may_be_called_scale_and_a_scale_has_none() {
    let named = STUDY.replacen("rows = 2_000", "rows = 2_000, scale = 1.0", 1);
    let named = named.replacen("workload.rows = 100", "workload.scale = 0.1", 1);
    let small = Spec::parse_scaled("demo", &named, "small").unwrap();
    assert_eq!(small.workload["scale"], Setting::Number(0.1));
    let nested = message("workload.rows = 100", "scale.other.seed = 1");
    assert!(nested.ends_with("scale.small: a scale cannot change the scales"), "{nested}");
}

#[test]
fn misspelt_keys_name_the_nearest() {
    let golden = [
        ("title", "titel", "study `demo`: line 2: unknown key `titel`: did you mean `title`?"),
        ("mean =", "maen =", "study `demo`: line 26: unknown key `maen`: did you mean `mean`?"),
        (
            "\"trimmed\"",
            "\"trimed\"",
            "study `demo`: line 26: unknown value `trimed`: did you mean `trimmed`?",
        ),
        (
            "\"siblings\"",
            "\"sibling\"",
            "study `demo`: line 6: unknown value `sibling`: did you mean `siblings`?",
        ),
        (
            "kind = \"bars\"",
            "kind = \"bars\", serie = \"case\"",
            "study `demo`: line 27: unknown key `serie`: did you mean `series`?",
        ),
        ("figure", "figur", "study `demo`: line 31: unknown key `figur`: did you mean `figure`?"),
        (
            "case = \"sequential\"",
            "cas = \"sequential\"",
            "study `demo`: method.baseline: no axis is named `cas`: did you mean `case`?",
        ),
        (
            "case = \"sequential\"",
            "case = \"sequentail\"",
            "study `demo`: method.baseline: no cell has case = `sequentail`: \
             did you mean `sequential`?",
        ),
        (
            "[\"size\"]",
            "[\"sise\"]",
            "study `demo`: method.blocks: no axis is named `sise`: did you mean `size`?",
        ),
        (
            "case = \"AMAC\"",
            "tecnique = \"x\"",
            "study `demo`: claim E4.6: no cell has a setting `tecnique`: \
             did you mean `technique`?",
        ),
        (
            "workload.rows",
            "workload.row",
            "study `demo`: scale.small.workload changes `row`, which workload lacks: \
             did you mean `rows`?",
        ),
        (
            "method.repetitions",
            "method.repetition",
            "study `demo`: scale.small: unknown key `repetition`: did you mean `repetitions`?",
        ),
    ];
    for (old, new, expected) in golden {
        assert_eq!(message(old, new), expected);
    }
}

#[test]
fn other_mistakes_are_named() {
    let golden = [
        ("question = \"Which?\"\n", "", "study `demo`: the key `question` is missing: add it"),
        (
            "[64, 128]",
            "64",
            "study `demo`: axes.size is not a list of values: write `size = [ … ]`",
        ),
        ("[64, 128]", "[]", "study `demo`: axes.size has no values: add one or remove it"),
        ("[64, 128]", "[64, 64]", "study `demo`: axes.size has 64 twice: remove one"),
        (
            "name = \"AMAC\"",
            "nam = \"AMAC\"",
            "study `demo`: case 2 has no name: add `name = \"…\"` to it",
        ),
        (
            "\"AMAC\"\nt",
            "\"sequential\"\nt",
            "study `demo`: two cases are named \"sequential\": rename one",
        ),
        ("ratio = 1.5", "ratio = -1", "study `demo`: claim E4.6: ratio must be above 0"),
    ];
    for (old, new, expected) in golden {
        let found = message(old, new);
        assert!(found.contains(expected.trim_start_matches("study `demo`: ")), "{found}");
    }
    let nested = message("rows = 2_000", "rows = [1]");
    assert!(nested.contains("line 7") && nested.contains("words, a number"), "{nested}");
    let zero = message("method.repetitions = 2", "method.repetitions = 0");
    assert!(zero.contains("repetitions must lie between 1 and"), "{zero}");
    let broken = message("[axes]", "[axes");
    assert!(broken.contains("line 11"), "{broken}");
    assert!(!broken.contains('\n'), "one line: {broken}");
}

#[test]
fn unknown_scales_name_the_known() {
    let error = Spec::parse_scaled("demo", STUDY, "smal").unwrap_err().to_string();
    assert_eq!(error, "study `demo` has no scale `smal`: did you mean `small`?");
    let without = STUDY.split("[scale").next().unwrap();
    let error = Spec::parse_scaled("demo", without, "small").unwrap_err().to_string();
    assert!(error.contains("leave --scale out"), "{error}");
}

/// The events of profiles: read, refused without samples, and left out of fingerprints if unused.
#[test]
fn profiles_are_by_the_requested_events() {
    use workahead_counters::profile::ProfileEvent;
    let with = |lines: &str| STUDY.replacen("[method]", &format!("[method]\n{lines}"), 1);
    let text = with("profile_hz = 99\nprofile_by = [\"time\", \"l3_misses\"]");
    let options = Spec::parse("demo", &text).unwrap().method.collection();
    assert_eq!(options.profile_by, [ProfileEvent::Time, ProfileEvent::L3Misses]);
    let plain = Spec::parse("demo", &with("profile_hz = 99")).unwrap().method.collection();
    assert!(!serde_json::to_string(&plain).unwrap().contains("profile_by"));
    for (lines, expected) in [
        ("profile_by = [\"time\"]", "give profile_hz"),
        ("profile_hz = 99\nprofile_by = [\"time\", \"time\"]", "names `time` twice"),
        ("profile_hz = 99\nprofile_by = [\"l2_mises\"]", "l2_misses"),
    ] {
        let message = message("[method]", &format!("[method]\n{lines}"));
        assert!(message.contains(expected) && !message.contains('\n'), "{message}");
    }
}

/// Also where the number of cells has more than 64 bits, and where axes are short and sweeps long.
#[test]
fn too_many_cells_are_refused_before_any_is_made() {
    let axes = |count: usize, values: &str| -> String {
        (0..count).map(|axis| format!("a{axis} = {values}\n")).collect()
    };
    let many = format!("{:?}", (0..1_000).collect::<Vec<_>>());
    let sweep =
        format!("[[sweeps]]\naxis = \"more\"\nvalues = {many}\nwhere = {{ size = 64 }}\n[method]");
    for (old, new, expected) in [
        ("size =", axes(62, "[1, 2]") + "size =", "too many cells are more than 10000: shorten"),
        ("size =", axes(63, "[1]") + "size =", "65 axes are more than 64: remove some"),
        ("[64, 128]", many.clone(), "4004000 cells are more than 10000: shorten an axis or"),
    ] {
        let text = STUDY.replacen("[method]", &sweep, 1).replacen(old, &new, 1);
        let found = Spec::parse("demo", &text).unwrap_err().to_string();
        assert!(found.contains(expected), "{found}");
    }
    let twice = sweep.replacen(&many, "[1, 2, 1]", 1);
    let found = Spec::parse("demo", &STUDY.replacen("[method]", &twice, 1)).unwrap_err();
    assert!(found.to_string().contains("sweep over more has 1 twice"), "{found}");
    let claim = "[[paper]]\nrow = \"E1\"\nfigure = \"\"\nsays = \"\"\nratio = 2.0\n";
    let figure = format!("figure = \"{}\"", "f".repeat(300));
    let figure = claim.replacen("figure = \"\"", &figure, 1) + "[method]";
    let found = Spec::parse("demo", &STUDY.replacen("[method]", &figure, 1)).unwrap_err();
    assert!(found.to_string().contains("at most 200 bytes: shorten it"), "{found}");
    let claims = claim.repeat(5_000) + "[method]";
    let text = STUDY.replacen("[method]", &claims, 1).replacen("[64, 128]", &many, 1);
    let found = Spec::parse("demo", &text).unwrap_err().to_string();
    assert!(found.contains("looks at a cell: remove some"), "{found}");
    let long = format!("rows = 2_000, sql = \"{}\"", "x".repeat(1 << 19));
    let text = STUDY.replacen("rows = 2_000", &long, 1).replacen("[64, 128]", &many, 1);
    let found = Spec::parse("demo", &text).unwrap_err().to_string();
    assert!(found.contains("settings each are more than 1024 MiB"), "{found}");
}

#[test]
fn products_of_axes_are_bounded() {
    let scales: String = (0..65).map(|at| format!("[scale.s{at}]\n")).collect();
    let charts = format!("charts = [{}]", "{ kind = \"bars\" }, ".repeat(65));
    let many = format!("{:?}", (0..1_000).collect::<Vec<_>>());
    let name = format!("name = \"{}\"", "x".repeat(1 << 19));
    for (old, new, expected) in [
        ("[scale.small]", format!("{scales}[scale.small]"), "66 scales are more than 64"),
        ("charts = [{ kind = \"bars\", by = \"case\" }]", charts, "65 charts are more than 64"),
        ("[axes]", format!("[axes]\nlong = {many}"), "samples are more than 1000000"),
        ("[axes]", format!("# {}\n[axes]", "x".repeat(1 << 20)), "more than 1024 KiB"),
    ] {
        let text = STUDY.replacen("[method]", "[method]\nrepetitions = 2_000", 1);
        assert!(text.contains(old));
        let found = Spec::parse("demo", &text.replacen(old, &new, 1)).unwrap_err().to_string();
        assert!(found.contains(expected), "{found}");
    }
    let text = STUDY.replacen("[64, 128]", &many, 1).replacen("name = \"AMAC\"", &name, 1);
    let found = Spec::parse("demo", &text).unwrap_err().to_string();
    assert!(found.contains("bytes of settings each are more than 1024 MiB"), "{found}");
}
