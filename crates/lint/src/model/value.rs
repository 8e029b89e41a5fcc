//! What an expression may stand for.

use ruff_text_size::TextSize;

/// What kind of thing it is, as far as rules care.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueKind {
    #[default]
    Unknown,
    None,
    Number,
    Text,
    /// Of PyTorch or TensorFlow.
    Tensor,
    /// Of NumPy, or a table of Pandas.
    Array,
    Model,
    Optimizer,
    Scheduler,
    Criterion,
    /// One of a model's weights, and all of them: what is computed from them has a graph.
    Parameter,
    Parameters,
    Loader,
    Dataset,
    Scaler,
    /// What steps for itself: DeepSpeed, Fabric, Accelerate.
    Engine,
    Tape,
    List,
    /// What a loader gives in one turn, where the lengths of it are known: the first of its
    /// parts has the shape of the whole.
    Batch,
    /// A list or queue that drops what is old.
    Bounded,
    Dict,
    /// Some values of its own, in [`super::flow::Flow::rows`].
    Tuple(u32),
    /// A record of names and values, in the same place.
    Fields(u32),
    /// A function or class of this text.
    Function(u32),
    Class(u32),
    /// An object of a class of this text that is nothing of the above.
    Instance(u32),
}

/// Where its memory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    #[default]
    Unknown,
    Gpu,
}

/// What its numbers are like. Of a model: those it puts out; of a criterion: what it makes of
/// those it is given, before anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    #[default]
    Unknown,
    /// What some model put out, of which no more is known.
    ModelOutput,
    /// Any number at all, as a layer without an activation puts them out.
    Linear,
    /// None below zero, and many that are zero.
    Relu,
    /// From zero to one, both ends included: so close is only a matter of rounding.
    Softmax,
    Sigmoid,
}

/// How large it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Size {
    #[default]
    Unknown,
    /// It is this number itself.
    Number(f64),
    /// An array of so many bytes, and so many rows.
    Bytes { bytes: f64, rows: f64 },
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Value {
    pub kind: ValueKind,
    /// It carries the graph it was computed by; a container: what is in it does.
    pub graph: bool,
    /// It was computed from what a model said, with or without its graph.
    pub predicted: bool,
    /// It has one value for each element, and no reduction has been made.
    pub unreduced: bool,
    /// It has a value for each one that a layer put out; how many that are, one for all I know,
    /// is another question.
    pub elementwise: bool,
    pub activation: Activation,
    /// The class of this text that it is an object of, whatever its kind.
    pub class: Option<u32>,
    pub device: Device,
    pub size: Size,
    /// The lengths along its axes, in [`super::flow::Flow::shapes`]; of a dataset or loader,
    /// those of the first thing it gives. 0: not known.
    pub shape: u32,
    /// Where it was made: two values of one place are the same object.
    pub site: TextSize,
}

impl Value {
    pub const UNKNOWN: Value = Value {
        kind: ValueKind::Unknown,
        graph: false,
        predicted: false,
        unreduced: false,
        elementwise: false,
        activation: Activation::Unknown,
        class: None,
        device: Device::Unknown,
        size: Size::Unknown,
        shape: 0,
        site: TextSize::new(0),
    };

    pub const fn of_kind(kind: ValueKind) -> Value {
        Value {
            kind,
            ..Value::UNKNOWN
        }
    }

    pub const fn number(number: f64) -> Value {
        Value {
            size: Size::Number(number),
            ..Value::of_kind(ValueKind::Number)
        }
    }

    pub const fn tensor(graph: bool) -> Value {
        Value {
            graph,
            predicted: graph,
            ..Value::of_kind(ValueKind::Tensor)
        }
    }

    pub fn with_site(self, site: TextSize) -> Value {
        Value { site, ..self }
    }

    pub fn is(&self, kind: ValueKind) -> bool {
        self.kind == kind
    }

    /// The number it is known to be.
    pub fn as_number(&self) -> Option<f64> {
        match self.size {
            Size::Number(number) => Some(number),
            _ => None,
        }
    }

    pub fn bytes(&self) -> Option<f64> {
        match self.size {
            Size::Bytes { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    pub fn rows(&self) -> Option<f64> {
        match self.size {
            Size::Bytes { rows, .. } => Some(rows),
            _ => None,
        }
    }

    /// The same without its graph.
    pub fn detached(self) -> Value {
        Value {
            graph: false,
            ..self
        }
    }

    /// What it is after two ways that meet.
    pub fn join(self, other: Value) -> Value {
        if self == other {
            return self;
        }
        let kind = match (self.kind, other.kind) {
            (one, two) if one == two => one,
            (ValueKind::None, known) | (known, ValueKind::None) => known,
            _ => ValueKind::Unknown,
        };
        Value {
            kind,
            graph: self.graph || other.graph,
            predicted: self.predicted || other.predicted,
            unreduced: match (self.kind, other.kind) {
                (ValueKind::None, _) => other.unreduced,
                (_, ValueKind::None) => self.unreduced,
                _ => self.unreduced && other.unreduced,
            },
            elementwise: match (self.kind, other.kind) {
                (ValueKind::None, _) => other.elementwise,
                (_, ValueKind::None) => self.elementwise,
                _ => self.elementwise && other.elementwise,
            },
            activation: match (self.kind, other.kind) {
                (ValueKind::None, _) => other.activation,
                (_, ValueKind::None) => self.activation,
                _ if self.activation == other.activation => self.activation,
                _ => Activation::Unknown,
            },
            class: match (self.kind, other.kind) {
                (ValueKind::None, _) => other.class,
                (_, ValueKind::None) => self.class,
                _ => self.class.filter(|_| self.class == other.class),
            },
            device: if self.device == other.device {
                self.device
            } else {
                Device::Unknown
            },
            size: if self.size == other.size {
                self.size
            } else {
                Size::Unknown
            },
            shape: if self.shape == other.shape {
                self.shape
            } else {
                0
            },
            site: if self.site == other.site {
                self.site
            } else {
                TextSize::new(0)
            },
        }
    }
}
