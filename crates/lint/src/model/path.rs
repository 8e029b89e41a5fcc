//! Dotted names, resolved through the imports.

use ruff_python_ast::{Expr, Stmt, StmtImport, StmtImportFrom};
use rustc_hash::FxHashMap;

/// The maximum length of a dotted name. No rule asks for a longer one.
const MAX_SEGMENTS: usize = 8;

/// A dotted name starting with its package: `F.softmax` is `torch.nn.functional.softmax` if `F` was
/// imported as `torch.nn.functional`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    segments: [&'a str; MAX_SEGMENTS],
    length: u8,
}

impl<'a> Path<'a> {
    fn empty() -> Path<'a> {
        Path {
            segments: [""; MAX_SEGMENTS],
            length: 0,
        }
    }

    /// Appends a segment. Returns `None` if the name gets too long.
    fn join(mut self, segment: &'a str) -> Option<Path<'a>> {
        *self.segments.get_mut(usize::from(self.length))? = segment;
        self.length += 1;
        Some(self)
    }

    fn join_dotted(self, dotted: &'a str) -> Option<Path<'a>> {
        dotted.split('.').try_fold(self, Path::join)
    }

    /// Returns the parts between the dots.
    pub fn segments(&self) -> &[&'a str] {
        &self.segments[..usize::from(self.length)]
    }

    /// Returns the first part, the package.
    pub fn first(&self) -> &'a str {
        self.segments[0]
    }

    /// Returns the last part.
    pub fn last(&self) -> &'a str {
        self.segments().last().copied().unwrap_or("")
    }

    /// Whether this is the given dotted name.
    pub fn is(&self, dotted: &str) -> bool {
        self.segments().iter().copied().eq(dotted.split('.'))
    }

    /// Whether this is one of the given dotted names.
    pub fn is_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.is(name))
    }

    /// Whether this lies in the given package or module.
    pub fn is_in(&self, dotted: &str) -> bool {
        let mut own = self.segments().iter();
        dotted
            .split('.')
            .all(|segment| own.next().is_some_and(|have| *have == segment))
            && own.next().is_some()
    }

    /// Replaces packages that have several names by one name.
    fn canonical(self) -> Path<'a> {
        let cut = |skip: usize, head: &'static str| {
            let mut path = Path::empty();
            path.segments[0] = head;
            let rest = self.segments().get(skip..).unwrap_or(&[]);
            path.segments[1..=rest.len()].copy_from_slice(rest);
            path.length = rest.len() as u8 + 1;
            path
        };
        match self.segments() {
            ["tensorflow", "keras", ..] => cut(2, "keras"),
            ["tensorflow", "python", "keras", ..] => cut(3, "keras"),
            ["tf_keras", ..] => cut(1, "keras"),
            ["tensorflow", "compat", "v1" | "v2", ..] => cut(3, "tensorflow"),
            ["pytorch_lightning", ..] => cut(1, "lightning"),
            ["lightning", "pytorch", ..] => cut(2, "lightning"),
            _ => self,
        }
    }
}

/// The names bound by imports.
#[derive(Default)]
pub struct Imports<'a> {
    names: FxHashMap<&'a str, Path<'a>>,
}

impl<'a> Imports<'a> {
    /// Records an import statement.
    pub fn record_import(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => self.import(import),
            Stmt::ImportFrom(import) => self.import_from(import),
            _ => {}
        }
    }

    fn import(&mut self, import: &'a StmtImport) {
        for alias in &import.names {
            let dotted = alias.name.as_str();
            match &alias.asname {
                Some(name) => self.bind(name.as_str(), Path::empty().join_dotted(dotted)),
                // `import a.b` binds `a`.
                None => {
                    let package = dotted.split('.').next().unwrap_or(dotted);
                    self.bind(package, Path::empty().join(package));
                }
            }
        }
    }

    fn import_from(&mut self, import: &'a StmtImportFrom) {
        // Relative imports of the project itself are unknown.
        let Some(module) = import.module.as_ref().filter(|_| import.level == 0) else {
            return;
        };
        for alias in &import.names {
            let name = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
            let path = Path::empty()
                .join_dotted(module.as_str())
                .and_then(|path| path.join(alias.name.as_str()));
            self.bind(name, path);
        }
    }

    fn bind(&mut self, name: &'a str, path: Option<Path<'a>>) {
        if let Some(path) = path {
            self.names.insert(name, path);
        }
    }

    /// Whether anything from this package was imported.
    pub fn has_package(&self, package: &str) -> bool {
        self.names
            .values()
            .any(|path| path.canonical().first() == package)
    }

    /// Returns the full dotted name of an expression that begins with an imported name.
    pub fn resolve(&self, expression: &'a Expr) -> Option<Path<'a>> {
        self.resolve_spelling(expression).map(Path::canonical)
    }

    fn resolve_spelling(&self, expression: &'a Expr) -> Option<Path<'a>> {
        match expression {
            Expr::Name(name) => self.names.get(name.id.as_str()).copied(),
            Expr::Attribute(attribute) => self
                .resolve_spelling(&attribute.value)
                .and_then(|path| path.join(attribute.attr.as_str())),
            _ => None,
        }
    }
}
