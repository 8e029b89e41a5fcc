//! How a name is used in a block: what a rule asks once it has a suspicion.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

/// One use of a name.
#[derive(Clone, Copy, Debug)]
pub struct Use<'a> {
    /// The name itself.
    pub expr: &'a Expr,
    /// The expressions around it, innermost first.
    pub around: [Option<&'a Expr>; 4],
    /// The statement it stands in.
    pub statement: &'a Stmt,
    pub is_store: bool,
}

impl<'a> Use<'a> {
    /// The method that is called on it, if one is.
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

    /// It is an argument of this call.
    pub fn argument_of(&self) -> Option<&'a ruff_python_ast::ExprCall> {
        match self.around[0] {
            Some(Expr::Call(call)) if call.func.range() != self.expr.range() => Some(call),
            _ => None,
        }
    }
}

/// All uses of a name (plain, or dotted as it is written) in a block, functions inside it
/// included.
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

/// Whether one range lies in another.
pub fn lies_in(inner: TextRange, outer: TextRange) -> bool {
    outer.contains_range(inner)
}
