//! Values that many records have in common.
//!
//! A hundred thousand pending jobs ask for a handful of different things. `Shared` holds such a part behind one pointer:
//! it reads like the value itself, cloning is free, and writing to it makes a copy first. Equal parts of different jobs
//! become one when somebody who sees them all (the controller) replaces them by one; nothing depends on that having
//! happened, and equality is always that of the values.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value behind a shared pointer, copied when it is written to.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    pub fn new(value: T) -> Self {
        Shared(Arc::new(value))
    }
    /// The pointer itself, for a table of known values. Not a method, as with `Arc`: the value may have one of that name.
    pub fn arc(this: &Self) -> &Arc<T> {
        &this.0
    }
}

// Not derived: a shared value need not be one that can be copied.
impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Shared::new(value)
    }
}

impl<'a, T> IntoIterator for &'a Shared<T>
where
    &'a T: IntoIterator,
{
    type Item = <&'a T as IntoIterator>::Item;
    type IntoIter = <&'a T as IntoIterator>::IntoIter;
    fn into_iter(self) -> Self::IntoIter {
        (**self).into_iter()
    }
}

impl<T, C: FromIterator<T>> FromIterator<T> for Shared<C> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Shared::new(C::from_iter(items))
    }
}

impl<T: fmt::Display> fmt::Display for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_to_one_holder_leaves_the_others_alone() {
        let first = Shared::new(vec![1, 2]);
        let mut second = first.clone();
        assert!(Arc::ptr_eq(Shared::arc(&first), Shared::arc(&second)));
        second.push(3);
        assert_eq!((first.len(), second.len()), (2, 3));
        second.pop();
        assert_eq!(first, second, "equal by value, though not one any more");
    }
}
