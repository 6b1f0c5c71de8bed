//! Plans as bytes and back.

use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionConfig;
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::physical_plan_node::PhysicalPlanType;
use datafusion_proto::protobuf::{PhysicalExtensionNode, PhysicalPlanNode};
use workahead_datafusion::WorkaheadCodec;

use crate::{count, partitioned, plan, register_sides, rows, session};

/// A query with a sideways filter.
const SIDEWAYS: &str = "select x.text, g.text from (select * from l where at < 3) x join \
                        (select r.b, y.text from r join r y on r.at = y.at) g on x.a = g.b";

const QUERIES: [&str; 7] = [
    "select l.text, r.text from l join r on l.a = r.b",
    "select l.text from l join r on l.a = r.b and l.at * 2 < r.at",
    "select count(*) from l join r on l.a + 1 = r.b",
    "select l.text, r.text from l full join r on l.a is not distinct from r.b",
    "select l.text from l where l.a not in (select b from r where b is not null)",
    SIDEWAYS,
    "select x.text from l x join r on x.a = r.b join l y on y.a = r.at and y.at < x.at limit 9",
];

#[tokio::test]
async fn a_decoded_plan_returns_the_same_rows() {
    for partitions in [1, 3] {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let context = session(true, config);
        register_sides(&context);
        let codec = WorkaheadCodec::default();
        for sql in QUERIES {
            let sent = plan(&context, sql).await;
            let joins = count(&sent, "WorkaheadJoinExec");
            assert!(joins > 0, "{sql}");
            let bytes = physical_plan_to_bytes_with_extension_codec(sent.clone(), &codec).unwrap();
            let task = context.task_ctx();
            let decoded = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec);
            let decoded = decoded.unwrap();
            let has_filter = count(&sent, "SidewaysFilterExec") > 0;
            assert!(has_filter || sql != SIDEWAYS, "{sql}");
            assert_eq!(count(&decoded, "SidewaysFilterExec"), 0, "{sql}");
            assert_eq!(count(&decoded, "WorkaheadJoinExec"), joins, "{sql}");
            let (sent, decoded) =
                (rows(&context, sent).await.unwrap(), rows(&context, decoded).await.unwrap());
            if sql.contains("limit") {
                assert_eq!(sent.len(), decoded.len(), "{sql}");
            } else {
                assert_eq!(sent, decoded, "{sql}");
            }
        }
    }
}

#[tokio::test]
async fn join_options_are_encoded_with_the_plan() {
    let (changed, other) = (session(true, partitioned(2)), session(true, partitioned(2)));
    register_sides(&changed);
    for set in ["layout = 'buckets'", "build_side = 'runtime'"] {
        changed.sql(&format!("set workahead.{set}")).await.unwrap();
    }
    let codec = WorkaheadCodec::default();
    let sent = plan(&changed, QUERIES[0]).await;
    let bytes = physical_plan_to_bytes_with_extension_codec(sent.clone(), &codec).unwrap();
    let task = other.task_ctx();
    let decoded = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec).unwrap();
    let [sent_text, decoded_text] =
        [&sent, &decoded].map(|plan| displayable(plan.as_ref()).indent(false).to_string());
    assert!(decoded_text.contains("layout=buckets, build_side=runtime"));
    assert_eq!(decoded_text, sent_text);
    assert_eq!(rows(&other, decoded).await.unwrap(), rows(&changed, sent).await.unwrap());
}

#[tokio::test]
async fn without_the_codec_the_error_names_the_node() {
    let context = session(true, SessionConfig::new());
    register_sides(&context);
    let plan = plan(&context, QUERIES[0]).await;
    let error = datafusion_proto::bytes::physical_plan_to_bytes(plan).unwrap_err().to_string();
    assert!(error.contains("WorkaheadJoinExec"), "{error}");
}

#[test]
fn a_join_in_the_bytes_of_a_join_is_refused() {
    let mut node = PhysicalPlanNode { physical_plan_type: None };
    // As deep as no stack.
    for _ in 0..3000 {
        let mut bytes = b"\xffworkahead join 2\nauto planned\n".to_vec();
        node.try_encode(&mut bytes).unwrap();
        let inner = PhysicalExtensionNode { node: bytes, inputs: Vec::new() };
        node.physical_plan_type = Some(PhysicalPlanType::Extension(inner));
    }
    let mut bytes = Vec::new();
    node.try_encode(&mut bytes).unwrap();
    let task = session(true, SessionConfig::new()).task_ctx();
    let codec = WorkaheadCodec::default();
    let refused = physical_plan_from_bytes_with_extension_codec(&bytes, &task, &codec);
    assert!(refused.unwrap_err().to_string().contains("hold another node"));
}
