//! Plans after the rule, as `EXPLAIN` and metrics show them.

use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use datafusion::prelude::SessionConfig;
use futures::TryStreamExt;

use crate::{count, partitioned, plan, register_sides, rows, session};

const OURS: &str = "WorkaheadJoinExec";
const STOCK: &str = "HashJoinExec";

#[tokio::test]
async fn hash_joins_are_replaced_unless_the_option_is_off() {
    let context = session(true, SessionConfig::new());
    register_sides(&context);
    let sql = "select * from l join r on l.a = r.b left join l x on x.a = r.at";
    let replaced = plan(&context, sql).await;
    assert_eq!((count(&replaced, OURS), count(&replaced, STOCK)), (2, 0));
    context.sql("set workahead.enabled = false").await.unwrap();
    let kept = plan(&context, sql).await;
    assert_eq!((count(&kept, OURS), count(&kept, STOCK)), (0, 2));
}

#[tokio::test]
async fn explain_differs_from_stocks_only_in_the_name() {
    let sql = "select l.text from l join r on l.a = r.b and l.at < r.at limit 5";
    let mut shown = Vec::new();
    for ours in [false, true] {
        let context = session(ours, SessionConfig::new().with_target_partitions(2));
        register_sides(&context);
        let plan = plan(&context, sql).await;
        let text = displayable(plan.as_ref()).indent(false).to_string();
        let trees = displayable(plan.as_ref()).tree_render().to_string();
        shown.push((text, trees.contains("on=") || trees.contains("on")));
    }
    let [stock, ours] = <[_; 2]>::try_from(shown).unwrap();
    assert!(ours.0.contains("WorkaheadJoinExec: mode="), "{}", ours.0);
    assert_eq!(ours.0.replace(OURS, STOCK), stock.0);
    assert_eq!(ours.1, stock.1);
}

#[tokio::test]
async fn ours_has_every_metric_of_stock_with_the_same_rows() {
    let sql = "select count(*), sum(l.at) from l join r on l.a = r.b";
    let mut measured = Vec::new();
    for ours in [false, true] {
        let context = session(ours, SessionConfig::new().with_target_partitions(2));
        register_sides(&context);
        let plan = plan(&context, sql).await;
        rows(&context, plan.clone()).await.unwrap();
        let name = if ours { OURS } else { STOCK };
        let metrics = find(&plan, name).unwrap().metrics().unwrap().aggregate_by_name();
        let names = ["output_rows", "build_input_rows", "input_rows"];
        let counted = names.map(|name| {
            let found = metrics.iter().find(|metric| metric.value().name() == name);
            found.map(|metric| metric.value().as_usize())
        });
        assert!(counted.iter().all(|rows| rows.is_some_and(|rows| rows > 0)), "{metrics}");
        let names: Vec<String> = metrics.iter().map(|m| m.value().name().to_owned()).collect();
        measured.push((counted, names, metrics.to_string()));
    }
    assert_eq!(measured[0].0, measured[1].0);
    for name in &measured[0].1 {
        // DataFusion's count of a layout that ours does not have.
        if name != "array_map_created_count" {
            assert!(measured[1].1.contains(name), "{name} is not in {:?}", measured[1].1);
        }
    }
    assert!(measured[1].2.contains("layout=") && !measured[1].2.contains("layout=none"));
}

fn find(
    plan: &std::sync::Arc<dyn ExecutionPlan>,
    name: &str,
) -> Option<std::sync::Arc<dyn ExecutionPlan>> {
    if plan.name() == name {
        return Some(plan.clone());
    }
    plan.children().into_iter().find_map(|child| find(child, name))
}

#[tokio::test]
async fn sort_merge_joins_are_replaced_when_the_option_is_on() {
    let sql = "select l.text, r.text from l join r on l.a = r.b order by 1, 2";
    let mut results = Vec::new();
    for replace in [false, true] {
        let config = SessionConfig::new()
            .with_target_partitions(2)
            .set_bool("datafusion.optimizer.prefer_hash_join", false);
        let context = session(true, config);
        let set = format!("set workahead.replace_sort_merge_joins = {replace}");
        context.sql(&set).await.unwrap();
        register_sides(&context);
        let plan = plan(&context, sql).await;
        assert_eq!(count(&plan, "SortMergeJoinExec"), usize::from(!replace));
        assert_eq!(count(&plan, OURS), usize::from(replace));
        results.push(rows(&context, plan).await.unwrap());
    }
    assert_eq!(results[0], results[1]);
}

#[tokio::test]
async fn a_limit_in_the_join_ends_it() {
    let context = session(true, SessionConfig::new().with_target_partitions(1));
    register_sides(&context);
    let plan = plan(&context, "select l.text from l join r on l.a = r.b limit 5").await;
    assert_eq!(find(&plan, OURS).unwrap().fetch(), Some(5));
    let join = find(&plan, OURS).unwrap();
    for partition in 0..join.output_partitioning().partition_count() {
        let stream = join.execute(partition, context.task_ctx()).unwrap();
        let batches: Vec<_> = stream.try_collect().await.unwrap();
        assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 5);
    }
}

#[tokio::test]
async fn a_wrong_layout_is_one_clear_error() {
    let context = session(true, SessionConfig::new());
    register_sides(&context);
    context.sql("set workahead.layout = 'fast'").await.unwrap();
    let frame = context.sql("select 1 from l join r on l.a = r.b").await.unwrap();
    let error = frame.create_physical_plan().await.unwrap_err().to_string();
    assert!(error.contains("unknown layout \"fast\"; use auto"), "{error}");
}

#[tokio::test]
async fn join_options_are_shown_and_applied() {
    let context = session(true, partitioned(2));
    register_sides(&context);
    let sql = "select l.text, r.text from l join r on l.a = r.b";
    let expected = rows(&context, plan(&context, sql).await).await.unwrap();
    let options = [("layout", "buckets"), ("build_side", "runtime")];
    for (option, name) in options {
        context.sql(&format!("set workahead.{option} = '{name}'")).await.unwrap();
    }
    let plan = plan(&context, sql).await;
    let text = displayable(plan.as_ref()).indent(false).to_string();
    assert!(text.contains(", layout=buckets, build_side=runtime"), "{text}");
    let tree = displayable(plan.as_ref()).tree_render().to_string();
    assert!(tree.contains("layout") && tree.contains("buckets"), "{tree}");
    assert_eq!(rows(&context, plan.clone()).await.unwrap(), expected);
    let metrics = find(&plan, OURS).unwrap().metrics().unwrap().aggregate_by_name().to_string();
    for word in ["layout=buckets", "build_side=left"] {
        assert!(metrics.contains(word), "{metrics}");
    }
}

#[tokio::test]
async fn dense_keys_get_a_perfect_hash_table_unless_buckets_are_set() {
    let context = session(true, SessionConfig::new());
    register_sides(&context);
    for (setting, layout) in [("auto", "dense"), ("dense", "dense"), ("buckets", "buckets")] {
        context.sql(&format!("set workahead.layout = '{setting}'")).await.unwrap();
        let plan = plan(&context, "select l.text from l join r on l.at = r.at").await;
        rows(&context, plan.clone()).await.unwrap();
        let metrics = find(&plan, OURS).unwrap().metrics().unwrap().aggregate_by_name().to_string();
        assert!(metrics.contains(&format!("layout={layout}")), "{metrics}");
    }
}

#[tokio::test]
async fn a_join_that_is_left_alone_says_why() {
    let context = session(true, SessionConfig::new());
    register_sides(&context);
    let sql = "select at from l where a not in (select b from r where l.at * 3 < r.at)";
    let why = "a null-aware join takes no filter";
    let plan = plan(&context, sql).await;
    assert_eq!((count(&plan, "HashJoinExec"), count(&plan, "WorkaheadJoinExec")), (1, 0));
    let stock = session(false, SessionConfig::new());
    register_sides(&stock);
    let expected = crate::plan(&stock, sql).await;
    let shown = |plan: &Arc<dyn ExecutionPlan>, verbose| {
        displayable(plan.as_ref()).indent(verbose).to_string()
    };
    assert_eq!(shown(&plan, false), shown(&expected, false), "only a verbose plan differs");
    assert!(
        shown(&plan, true).contains(&format!(", left_alone=[{why}: ")),
        "{}",
        shown(&plan, true)
    );
    let found = rows(&context, Arc::clone(&plan)).await.unwrap();
    assert_eq!(found, rows(&stock, expected).await.unwrap());

    let explained = context.sql(&format!("explain analyze verbose {sql}")).await.unwrap();
    let text = rows(&context, explained.create_physical_plan().await.unwrap()).await.unwrap();
    assert!(text.concat().contains(&format!("left_alone={why}: ")), "{text:?}");
}
