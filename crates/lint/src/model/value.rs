//! Abstract values: what an expression may stand for.

use ruff_text_size::TextSize;

/// The kind of a value, as far as the rules distinguish it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueKind {
    /// Anything else.
    #[default]
    Unknown,
    /// The value `None`.
    None,
    /// A number.
    Number,
    /// A string.
    Text,
    /// A tensor of PyTorch or TensorFlow.
    Tensor,
    /// A NumPy array or a pandas table.
    Array,
    /// A model or a layer.
    Model,
    /// An optimizer.
    Optimizer,
    /// A learning-rate scheduler.
    Scheduler,
    /// A loss.
    Criterion,
    /// One of a model's weights. What is computed from weights has a graph.
    Parameter,
    /// All weights of a model.
    Parameters,
    /// A loader of batches.
    Loader,
    /// A dataset.
    Dataset,
    /// A gradient scaler.
    Scaler,
    /// An engine that runs the training step itself: DeepSpeed, Fabric, Accelerate.
    Engine,
    /// A gradient tape of TensorFlow.
    Tape,
    /// A list or set.
    List,
    /// One batch of a loader whose shape is known. Its first part has that shape.
    Batch,
    /// A list or queue that drops old elements.
    Bounded,
    /// A dict.
    Dict,
    /// A tuple, by its index in `Flow::rows`.
    Tuple(u32),
    /// A record of names and values, by its index in `Flow::rows`.
    Fields(u32),
    /// A function in this text.
    Function(u32),
    /// A class in this text.
    Class(u32),
    /// An object of a class in this text that has no other kind.
    Instance(u32),
}

/// The device that holds a value's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// Main memory, or unknown.
    #[default]
    Unknown,
    /// A GPU.
    Gpu,
}

/// The range of a value, by the activation that produced it. For a model, of its output; for a
/// criterion, the activation it applies to its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// Unknown.
    #[default]
    Unknown,
    /// The output of a model with an unknown last layer.
    ModelOutput,
    /// Any number: the output of a layer without activation.
    Linear,
    /// Not negative, and often exactly zero.
    Relu,
    /// Between zero and one; rounding reaches both ends.
    Softmax,
    /// Between zero and one; rounding reaches both ends.
    Sigmoid,
}

/// The size of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Size {
    /// Unknown.
    #[default]
    Unknown,
    /// A known number.
    Number(f64),
    /// An array of known size.
    Bytes {
        /// The size in bytes.
        bytes: f64,
        /// The length of the first axis.
        rows: f64,
    },
}

/// What is known about the value of an expression.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Value {
    /// What the value is.
    pub kind: ValueKind,
    /// Whether the value, or an element of the container, references an autograd graph.
    pub graph: bool,
    /// Whether the value was computed from a model's output, with or without its graph.
    pub predicted: bool,
    /// Whether a loss has one value per element because no reduction was applied.
    pub unreduced: bool,
    /// Whether the value has one element per output of a layer. The layer may have a single output.
    pub elementwise: bool,
    /// The range of the value's numbers.
    pub activation: Activation,
    /// The class in this text that the value is an object of, whatever its kind.
    pub class: Option<u32>,
    /// The device that holds the value.
    pub device: Device,
    /// The size of the value.
    pub size: Size,
    /// The index of the shape in `Flow::shapes` plus one, or 0 if it is unknown. For
    /// a dataset or loader, the shape of the first part it yields.
    pub shape: u32,
    /// The source offset where the value was created. Values created at one offset are the same
    /// object.
    pub site: TextSize,
}

impl Value {
    /// A value of which nothing is known.
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

    /// Returns a value of which only the kind is known.
    pub const fn of_kind(kind: ValueKind) -> Value {
        Value {
            kind,
            ..Value::UNKNOWN
        }
    }

    /// Returns a known number.
    pub const fn number(number: f64) -> Value {
        Value {
            size: Size::Number(number),
            ..Value::of_kind(ValueKind::Number)
        }
    }

    /// Returns a tensor with or without a graph.
    pub const fn tensor(graph: bool) -> Value {
        Value {
            graph,
            predicted: graph,
            ..Value::of_kind(ValueKind::Tensor)
        }
    }

    /// Sets the offset where the value was created.
    pub fn with_site(self, site: TextSize) -> Value {
        Value { site, ..self }
    }

    /// Whether the value is of this kind.
    pub fn is(&self, kind: ValueKind) -> bool {
        self.kind == kind
    }

    /// Returns the number, if it is known.
    pub fn as_number(&self) -> Option<f64> {
        match self.size {
            Size::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the size in bytes, if it is known.
    pub fn bytes(&self) -> Option<f64> {
        match self.size {
            Size::Bytes { bytes, .. } => Some(bytes),
            _ => None,
        }
    }

    /// Returns the number of rows, if it is known.
    pub fn rows(&self) -> Option<f64> {
        match self.size {
            Size::Bytes { rows, .. } => Some(rows),
            _ => None,
        }
    }

    /// Returns the same value without its graph.
    pub fn detached(self) -> Value {
        Value {
            graph: false,
            ..self
        }
    }

    /// Joins the values of two branches.
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
