//! The columns of each table, and its rows in parts that can be made independently.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{
    Customer, CustomerGenerator, LineItem, LineItemGenerator, Nation, NationGenerator, Order,
    OrderGenerator, PartGenerator, PartSupp, PartSuppGenerator, Region, RegionGenerator, Supplier,
    SupplierGenerator,
};

use super::columns::{self, Column, date, decimal, int32, int64, shown, text};
use super::{Table, Tpch};

/// One of several parts of a table: a run of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// From 0.
    pub index: u32,
    /// How many parts there are.
    pub of: u32,
}

impl Part {
    /// The table in one part.
    pub const WHOLE: Self = Self { index: 0, of: 1 };
}

/// The batches of a part of a table.
type Batches = Box<dyn Iterator<Item = RecordBatch> + Send>;

impl Tpch {
    /// The Arrow schema of a table.
    #[must_use]
    pub fn schema(&self, table: Table) -> SchemaRef {
        match table {
            Table::Region => columns::schema(&region()),
            Table::Nation => columns::schema(&nation()),
            Table::Supplier => columns::schema(&supplier()),
            Table::Customer => columns::schema(&customer()),
            Table::Part => columns::schema(&part()),
            Table::PartSupp => columns::schema(&partsupp()),
            Table::Orders => columns::schema(&orders()),
            Table::LineItem => columns::schema(&lineitem()),
        }
    }

    /// The rows of a part of a table, in batches of at most `batch_rows`. Region and nation have
    /// all their rows in the first part.
    ///
    /// # Panics
    /// Unless `part.index < part.of`, and `of` fits the generator's 31 bits.
    #[must_use]
    pub fn batches(&self, table: Table, part: Part, batch_rows: usize) -> Batches {
        assert!(part.index < part.of && i32::try_from(part.of).is_ok());
        // The generator counts parts from one.
        let (scale, at, of) = (self.scale(), part.index as i32 + 1, part.of as i32);
        let first = if part.index == 0 { usize::MAX } else { 0 };
        match table {
            Table::Region => {
                cut(region(), RegionGenerator::new(scale, 1, 1).iter().take(first), batch_rows)
            }
            Table::Nation => {
                cut(nation(), NationGenerator::new(scale, 1, 1).iter().take(first), batch_rows)
            }
            Table::Supplier => {
                cut(supplier(), SupplierGenerator::new(scale, at, of).iter(), batch_rows)
            }
            Table::Customer => {
                cut(customer(), CustomerGenerator::new(scale, at, of).iter(), batch_rows)
            }
            Table::Part => cut(self::part(), PartGenerator::new(scale, at, of).iter(), batch_rows),
            Table::PartSupp => {
                cut(partsupp(), PartSuppGenerator::new(scale, at, of).iter(), batch_rows)
            }
            Table::Orders => cut(orders(), OrderGenerator::new(scale, at, of).iter(), batch_rows),
            Table::LineItem => {
                cut(lineitem(), LineItemGenerator::new(scale, at, of).iter(), batch_rows)
            }
        }
    }
}

/// Cuts a run of generated rows into batches.
fn cut<R: Send + 'static>(
    columns: Vec<Column<R>>,
    mut rows: impl Iterator<Item = R> + Send + 'static,
    batch_rows: usize,
) -> Batches {
    let schema = columns::schema(&columns);
    let mut taken = Vec::new();
    Box::new(std::iter::from_fn(move || {
        taken.clear();
        taken.extend(rows.by_ref().take(batch_rows));
        (!taken.is_empty()).then(|| columns::batch(&schema, &columns, &taken))
    }))
}

fn region() -> Vec<Column<Region<'static>>> {
    vec![
        int64("r_regionkey", |r| r.r_regionkey),
        text("r_name", |r| r.r_name),
        text("r_comment", |r| r.r_comment),
    ]
}

fn nation() -> Vec<Column<Nation<'static>>> {
    vec![
        int64("n_nationkey", |n| n.n_nationkey),
        text("n_name", |n| n.n_name),
        int64("n_regionkey", |n| n.n_regionkey),
        text("n_comment", |n| n.n_comment),
    ]
}

fn supplier() -> Vec<Column<Supplier>> {
    vec![
        int64("s_suppkey", |s| s.s_suppkey),
        shown("s_name", |s| &s.s_name),
        shown("s_address", |s| &s.s_address),
        int64("s_nationkey", |s| s.s_nationkey),
        shown("s_phone", |s| &s.s_phone),
        decimal("s_acctbal", |s| s.s_acctbal),
        text("s_comment", |s| &s.s_comment),
    ]
}

fn customer() -> Vec<Column<Customer<'static>>> {
    vec![
        int64("c_custkey", |c| c.c_custkey),
        shown("c_name", |c| &c.c_name),
        shown("c_address", |c| &c.c_address),
        int64("c_nationkey", |c| c.c_nationkey),
        shown("c_phone", |c| &c.c_phone),
        decimal("c_acctbal", |c| c.c_acctbal),
        text("c_mktsegment", |c| c.c_mktsegment),
        text("c_comment", |c| c.c_comment),
    ]
}

fn part() -> Vec<Column<tpchgen::generators::Part<'static>>> {
    vec![
        int64("p_partkey", |p| p.p_partkey),
        shown("p_name", |p| &p.p_name),
        shown("p_mfgr", |p| &p.p_mfgr),
        shown("p_brand", |p| &p.p_brand),
        text("p_type", |p| p.p_type),
        int32("p_size", |p| p.p_size),
        text("p_container", |p| p.p_container),
        decimal("p_retailprice", |p| p.p_retailprice),
        text("p_comment", |p| p.p_comment),
    ]
}

fn partsupp() -> Vec<Column<PartSupp<'static>>> {
    vec![
        int64("ps_partkey", |p| p.ps_partkey),
        int64("ps_suppkey", |p| p.ps_suppkey),
        int32("ps_availqty", |p| p.ps_availqty),
        decimal("ps_supplycost", |p| p.ps_supplycost),
        text("ps_comment", |p| p.ps_comment),
    ]
}

fn orders() -> Vec<Column<Order<'static>>> {
    vec![
        int64("o_orderkey", |o| o.o_orderkey),
        int64("o_custkey", |o| o.o_custkey),
        text("o_orderstatus", |o| o.o_orderstatus.as_str()),
        decimal("o_totalprice", |o| o.o_totalprice),
        date("o_orderdate", |o| o.o_orderdate),
        text("o_orderpriority", |o| o.o_orderpriority),
        shown("o_clerk", |o| &o.o_clerk),
        int32("o_shippriority", |o| o.o_shippriority),
        text("o_comment", |o| o.o_comment),
    ]
}

fn lineitem() -> Vec<Column<LineItem<'static>>> {
    vec![
        int64("l_orderkey", |l| l.l_orderkey),
        int64("l_partkey", |l| l.l_partkey),
        int64("l_suppkey", |l| l.l_suppkey),
        int32("l_linenumber", |l| l.l_linenumber),
        // The generator counts whole units; the specification has a decimal.
        decimal("l_quantity", |l| TPCHDecimal::new(l.l_quantity * 100)),
        decimal("l_extendedprice", |l| l.l_extendedprice),
        decimal("l_discount", |l| l.l_discount),
        decimal("l_tax", |l| l.l_tax),
        text("l_returnflag", |l| l.l_returnflag),
        text("l_linestatus", |l| l.l_linestatus),
        date("l_shipdate", |l| l.l_shipdate),
        date("l_commitdate", |l| l.l_commitdate),
        date("l_receiptdate", |l| l.l_receiptdate),
        text("l_shipinstruct", |l| l.l_shipinstruct),
        text("l_shipmode", |l| l.l_shipmode),
        text("l_comment", |l| l.l_comment),
    ]
}
