//! The parts of a statement that several warnings look at.

use crate::ast::{IndexExpr, Name, Reference, Statement};
use crate::names::{occurrence, walk};

/// References and assignments of a statement, the left side included.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub(super) references: Vec<&'a Reference>,
    pub(super) values: Vec<&'a IndexExpr>,
    pub(super) indices: Vec<&'a str>,
}

impl<'a> walk::Visitor<'a> for Parts<'a> {
    fn reference(&mut self, reference: &'a Reference) {
        self.references.push(reference);
    }

    fn index(&mut self, index: &'a Name) {
        self.indices.push(&index.text);
    }

    fn assign(&mut self, index: &'a Name, value: &'a IndexExpr) {
        self.indices.push(&index.text);
        self.values.push(value);
    }
}

impl<'a> Parts<'a> {
    pub(super) fn of(statement: &'a Statement) -> Parts<'a> {
        let mut parts = Parts::default();
        parts.references.extend(occurrence::head(statement));
        walk::reads(statement, &mut parts);
        let places = parts.references.iter().flat_map(|reference| &reference.places);
        parts.values.extend(places.flat_map(walk::parts));
        for value in &parts.values {
            parts.indices.extend(walk::indices_of(value).iter().map(|(name, _)| *name));
        }
        parts
    }
}
