//! How deep an expression nests, for those who are to write it out: writing recurses, and stacks
//! end.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Query, Visit, Visitor};

/// What of an expression is too much, if at most `levels_max` may lie in each other and no query
/// in any.
pub fn too_much(of: &Expr, levels_max: usize) -> Option<&'static str> {
    of.visit(&mut Levels { open: 0, levels_max }).break_value()
}

/// Levels that are open at a place in an expression.
struct Levels {
    open: usize,
    levels_max: usize,
}

impl Visitor for Levels {
    type Break = &'static str;

    fn pre_visit_expr(&mut self, _expr: &Expr) -> ControlFlow<Self::Break> {
        self.open += 1;
        match self.open > self.levels_max {
            true => ControlFlow::Break("an expression in it"),
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, _expr: &Expr) -> ControlFlow<Self::Break> {
        self.open -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<Self::Break> {
        ControlFlow::Break("a subquery")
    }
}
