//! Our node in DataFusion's plan format, so that plans travel between processes.
//!
//! The bytes are our mark, a line with the join's options, then the hash join that describes the
//! node, encoded by DataFusion with empty inputs: the real ones travel as the node's children.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use datafusion_common::error::Result;
use datafusion_common::{DataFusionError, internal_datafusion_err};
use datafusion_execution::TaskContext;
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, WindowUDF};
use datafusion_physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion_physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion_proto::physical_plan::{
    AsExecutionPlan, DefaultPhysicalExtensionCodec, PhysicalExtensionCodec,
    PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::PhysicalPlanNode;
use datafusion_proto::protobuf::physical_plan_node::PhysicalPlanType;

use crate::key_filter::KeyFilterExec;
use crate::key_publisher::{KeyPublisherExec, PublishedKey};
use crate::key_set::KeyScope;
use crate::options::JoinOptions;
use crate::plan::{as_hash_join, with_inputs};
use crate::sideways_filter::SidewaysFilterExec;
use crate::{Caches, WorkaheadJoinExec};

/// The first bytes of a join, with the version of the format.
const JOIN_MARK: &[u8] = b"\xffworkahead join 2\n";

/// The bytes of a sideways filter. It is left out: the join that would fill it may be run by
/// another process, and every row may pass.
const SIDEWAYS_FILTER_MARK: &[u8] = b"\xffworkahead passes 1\n";

/// The first bytes of a key publisher and of a key filter; then numbers in a line.
const KEY_PUBLISHER_MARK: &[u8] = b"\xffworkahead key publisher 1\n";
const KEY_FILTER_MARK: &[u8] = b"\xffworkahead key filter 1\n";

/// Encodes our nodes, and leaves everything else to another codec.
#[derive(Debug)]
pub struct WorkaheadCodec {
    inner: Arc<dyn PhysicalExtensionCodec>,
    caches: Caches,
}

impl Default for WorkaheadCodec {
    fn default() -> Self {
        Self::new(Arc::new(DefaultPhysicalExtensionCodec {}))
    }
}

impl WorkaheadCodec {
    /// Around the codec of a program's other nodes and functions.
    #[must_use]
    pub fn new(inner: Arc<dyn PhysicalExtensionCodec>) -> Self {
        Self { inner, caches: Caches::ASSUMED }
    }

    /// With the caches of the machine that decodes.
    #[must_use]
    pub fn with_caches(self, caches: Caches) -> Self {
        Self { caches, ..self }
    }
}

/// The join's options, and the bytes of its node.
fn decode_options(bytes: &[u8]) -> Result<(JoinOptions, &[u8])> {
    let cut = bytes.iter().position(|byte| *byte == b'\n');
    let line = cut.and_then(|at| Some((str::from_utf8(&bytes[..at]).ok()?, &bytes[at + 1..])));
    let (options, node) =
        line.ok_or_else(|| internal_datafusion_err!("the bytes of a join end too soon"))?;
    Ok((JoinOptions::from_text(options)?, node))
}

/// Whether it is what [`try_encode`](PhysicalExtensionCodec::try_encode) writes: a hash join of
/// empty inputs. Joins that hold joins in their bytes could nest until the stack is full.
fn is_alone(node: &PhysicalPlanNode) -> bool {
    let Some(PhysicalPlanType::HashJoin(join)) = &node.physical_plan_type else { return false };
    [&join.left, &join.right].into_iter().all(|input| {
        let input = input.as_ref().and_then(|input| input.physical_plan_type.as_ref());
        matches!(input, Some(PhysicalPlanType::Empty(_)))
    })
}

fn write_number(bytes: &mut Vec<u8>, number: impl fmt::Display) {
    bytes.extend_from_slice(format!("{number} ").as_bytes());
}

fn numbers_of(bytes: &[u8]) -> Result<Vec<u32>> {
    let text = str::from_utf8(bytes).ok();
    let numbers = text.map(|text| text.split_whitespace().map(str::parse).collect());
    numbers.and_then(Result::ok).ok_or_else(damaged)
}

fn damaged() -> DataFusionError {
    internal_datafusion_err!("the bytes of a key filter or publisher are damaged")
}

fn write_key(bytes: &mut Vec<u8>, key: PublishedKey) {
    let PublishedKey { filter, column, scope } = key;
    write_number(bytes, filter);
    write_number(bytes, column);
    write_number(bytes, scope.to_number());
}

/// A key of a plan that was read.
fn key_of(input: &Arc<dyn ExecutionPlan>, numbers: [u32; 3]) -> Result<PublishedKey> {
    let [filter, column, scope] = numbers;
    let column = column as usize;
    let scope = KeyScope::from_number(scope);
    let scope = scope.filter(|_| column < input.schema().fields().len());
    Ok(PublishedKey { filter, column, scope: scope.ok_or_else(damaged)? })
}

fn decode_key_publisher(
    input: &Arc<dyn ExecutionPlan>,
    numbers: &[u32],
) -> Result<Arc<dyn ExecutionPlan>> {
    let (keys, []) = numbers.as_chunks() else { return Err(damaged()) };
    let keys = keys.iter().map(|key| key_of(input, *key)).collect::<Result<_>>()?;
    Ok(Arc::new(KeyPublisherExec::new(Arc::clone(input), keys)))
}

fn decode_key_filter(
    input: &Arc<dyn ExecutionPlan>,
    numbers: &[u32],
) -> Result<Arc<dyn ExecutionPlan>> {
    let [filter, column, scope, wait] = *numbers else { return Err(damaged()) };
    let key = key_of(input, [filter, column, scope])?;
    let wait = Duration::from_millis(wait.into());
    Ok(Arc::new(KeyFilterExec::new(Arc::clone(input), key, wait)))
}

impl PhysicalExtensionCodec for WorkaheadCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let ([input], SIDEWAYS_FILTER_MARK) = (inputs, bytes) {
            return Ok(Arc::clone(input));
        }
        if let ([input], Some(numbers)) = (inputs, bytes.strip_prefix(KEY_PUBLISHER_MARK)) {
            return decode_key_publisher(input, &numbers_of(numbers)?);
        }
        if let ([input], Some(numbers)) = (inputs, bytes.strip_prefix(KEY_FILTER_MARK)) {
            return decode_key_filter(input, &numbers_of(numbers)?);
        }
        let Some(ours) = bytes.strip_prefix(JOIN_MARK) else {
            return self.inner.try_decode(bytes, inputs, context, converter);
        };
        let (options, node) = decode_options(ours)?;
        let node = PhysicalPlanNode::try_decode(node)?;
        if !is_alone(&node) {
            return Err(internal_datafusion_err!("the bytes of a join hold another node"));
        }
        let context = PhysicalPlanDecodeContext::new(context, self);
        let plan =
            with_inputs(converter.proto_to_execution_plan(&node, &context)?, inputs.to_vec())?;
        let plan = as_hash_join(plan)
            .ok_or_else(|| internal_datafusion_err!("the bytes of a join hold another node"))?;
        Ok(Arc::new(
            WorkaheadJoinExec::of(plan).with_caches(self.caches).with_join_options(options),
        ))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let publishes = |node: &KeyPublisherExec| node.is_local();
        let filters = |node: &KeyFilterExec| node.is_local();
        if node.is::<SidewaysFilterExec>()
            || node.downcast_ref().is_some_and(publishes)
            || node.downcast_ref().is_some_and(filters)
        {
            bytes.extend_from_slice(SIDEWAYS_FILTER_MARK);
            return Ok(());
        }
        if let Some(publisher) = node.downcast_ref::<KeyPublisherExec>() {
            bytes.extend_from_slice(KEY_PUBLISHER_MARK);
            publisher.keys().iter().for_each(|key| write_key(bytes, *key));
            return Ok(());
        }
        if let Some(filter) = node.downcast_ref::<KeyFilterExec>() {
            bytes.extend_from_slice(KEY_FILTER_MARK);
            write_key(bytes, filter.key);
            write_number(bytes, filter.wait.as_millis());
            return Ok(());
        }
        let Some(ours) = node.downcast_ref::<WorkaheadJoinExec>() else {
            return self.inner.try_encode(node, bytes, converter);
        };
        let empty = |input: &Arc<dyn ExecutionPlan>| Arc::new(EmptyExec::new(input.schema())) as _;
        let inputs = ours.children().into_iter().map(empty).collect();
        let plan = with_inputs(Arc::clone(ours.planned()) as _, inputs)?;
        bytes.extend_from_slice(JOIN_MARK);
        bytes.extend_from_slice(ours.options().to_text().as_bytes());
        bytes.push(b'\n');
        converter.execution_plan_to_proto(&plan, self)?.try_encode(bytes)
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.inner.try_decode_udf(name, bytes)
    }

    fn try_encode_udf(&self, function: &ScalarUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udf(function, bytes)
    }

    fn try_decode_higher_order_function(
        &self,
        name: &str,
        bytes: &[u8],
    ) -> Result<Arc<HigherOrderUDF>> {
        self.inner.try_decode_higher_order_function(name, bytes)
    }

    fn try_encode_higher_order_function(
        &self,
        function: &HigherOrderUDF,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        self.inner.try_encode_higher_order_function(function, bytes)
    }

    fn try_decode_expr(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn PhysicalExpr>],
        context: &PhysicalExprDecodeCtx<'_>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        self.inner.try_decode_expr(bytes, inputs, context)
    }

    fn try_encode_expr(
        &self,
        expression: &Arc<dyn PhysicalExpr>,
        bytes: &mut Vec<u8>,
        context: &PhysicalExprEncodeCtx<'_>,
    ) -> Result<()> {
        self.inner.try_encode_expr(expression, bytes, context)
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        self.inner.try_decode_udaf(name, bytes)
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udaf(function, bytes)
    }

    fn try_decode_udwf(&self, name: &str, bytes: &[u8]) -> Result<Arc<WindowUDF>> {
        self.inner.try_decode_udwf(name, bytes)
    }

    fn try_encode_udwf(&self, function: &WindowUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udwf(function, bytes)
    }
}
