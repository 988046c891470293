//! Byte strings that come from the operating system: environment, arguments, paths, names.
//!
//! They are kept byte for byte; only printing for people is lossy.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// An immutable, cheaply cloned byte string. May hold any bytes, NUL and invalid UTF-8 included.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OsBytes(Arc<[u8]>);

impl OsBytes {
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        OsBytes(Arc::from(bytes.as_ref()))
    }
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
    /// How many hold this very copy.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// For people: invalid UTF-8 becomes U+FFFD.
    pub fn to_string_lossy(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl From<&str> for OsBytes {
    fn from(s: &str) -> Self {
        OsBytes::new(s)
    }
}
impl From<String> for OsBytes {
    fn from(s: String) -> Self {
        OsBytes::new(s)
    }
}
impl From<&OsStr> for OsBytes {
    fn from(s: &OsStr) -> Self {
        OsBytes::new(s.as_bytes())
    }
}
impl From<Vec<u8>> for OsBytes {
    fn from(v: Vec<u8>) -> Self {
        OsBytes(Arc::from(v))
    }
}
impl fmt::Display for OsBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(&self.0))
    }
}
impl fmt::Debug for OsBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}
