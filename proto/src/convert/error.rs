//! What is wrong with a message.

use std::fmt;

/// A message that can't be a model value: which field, and what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConvertError {
    /// Path from the message's root: `request.gres[2].count`.
    pub field: String,
    pub problem: String,
}

impl ConvertError {
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        ConvertError { field: field.into(), problem: problem.into() }
    }

    /// A field that must be there is not.
    pub fn missing(field: &str) -> Self {
        ConvertError::new(field, "is missing")
    }

    /// The same error, seen from the message that holds this one in its field `outer`.
    pub fn within(mut self, outer: &str) -> Self {
        self.field = match self.field.as_str() {
            "" => outer.to_owned(),
            inner => format!("{outer}.{inner}"),
        };
        self
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message field '{}': {}", self.field, self.problem)
    }
}

impl std::error::Error for ConvertError {}

/// Names the field in which an inner conversion failed.
pub(super) trait Within<T> {
    fn within(self, outer: &str) -> Result<T, ConvertError>;
}

impl<T> Within<T> for Result<T, ConvertError> {
    fn within(self, outer: &str) -> Result<T, ConvertError> {
        self.map_err(|e| e.within(outer))
    }
}
