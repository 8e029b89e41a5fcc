//! Finds how a name is used in a block, for a rule that already suspects the name.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

/// One use of a name.
#[derive(Clone, Copy, Debug)]
pub struct Use<'a> {
    /// The name itself.
    pub expr: &'a Expr,
    /// The enclosing expressions, innermost first.
    pub around: [Option<&'a Expr>; 4],
    /// The enclosing statement.
    pub statement: &'a Stmt,
    /// Whether the name is assigned or deleted.
    pub is_store: bool,
}

impl<'a> Use<'a> {
    /// Returns the method that is called on the name.
    pub fn method(&self) -> Option<&'a str> {
        match (self.around[0], self.around[1]) {
            (Some(Expr::Attribute(attribute)), Some(Expr::Call(call)))
                if call.func.range() == attribute.range() =>
            {
                Some(attribute.attr.as_str())
            }
            _ => None,
        }
    }

    /// Returns the call that the name is an argument of.
    pub fn argument_of(&self) -> Option<&'a ruff_python_ast::ExprCall> {
        match self.around[0] {
            Some(Expr::Call(call)) if call.func.range() != self.expr.range() => Some(call),
            _ => None,
        }
    }
}

/// Returns all uses of a plain or dotted name in a block, including nested functions.
pub fn find_uses<'a>(text: &'a str, name: &str, block: &'a [Stmt]) -> Vec<Use<'a>> {
    let mut search = Search {
        text,
        name,
        around: Vec::new(),
        statement: None,
        found: Vec::new(),
    };
    search.visit_body(block);
    search.found
}

struct Search<'a, 'n> {
    text: &'a str,
    name: &'n str,
    around: Vec<&'a Expr>,
    statement: Option<&'a Stmt>,
    found: Vec<Use<'a>>,
}

impl<'a> Visitor<'a> for Search<'a, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let outer = self.statement.replace(statement);
        let around = std::mem::take(&mut self.around);
        visitor::walk_stmt(self, statement);
        self.around = around;
        self.statement = outer;
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        let is_name = matches!(
            expression,
            Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_)
        );
        if is_name
            && let Some(statement) = self.statement
            && &self.text[expression.range()] == self.name
        {
            let mut outer = self.around.iter().rev().copied();
            self.found.push(Use {
                expr: expression,
                around: [(); 4].map(|()| outer.next()),
                statement,
                is_store: match expression {
                    Expr::Name(name) => !name.ctx.is_load(),
                    Expr::Attribute(attribute) => !attribute.ctx.is_load(),
                    Expr::Subscript(subscript) => !subscript.ctx.is_load(),
                    _ => false,
                },
            });
            return;
        }
        self.around.push(expression);
        visitor::walk_expr(self, expression);
        self.around.pop();
    }
}

/// Whether one range lies inside another.
pub fn lies_in(inner: TextRange, outer: TextRange) -> bool {
    outer.contains_range(inner)
}
