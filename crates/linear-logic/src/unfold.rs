//! Definitions and literals replaced by their proofs, all the way down.

use crate::argument::supported;
use crate::elaborate::Extension;
use crate::error::{Kind, Refusal, Result};
use crate::formula::{Formula, Instance};
use crate::literal::{self, Order};
use crate::term::{Node, NodeId, Term, Variable};

/// The largest term that reduction and sequent proofs work on.
pub(crate) const MAX_NODES: usize = 5_000_000;

/// The refusal of a term that is too large.
pub(crate) fn too_large() -> Refusal {
    Refusal::new(Kind::Limit, format!("the term has more than {MAX_NODES} nodes"))
}

/// Nodes where parts no longer stand before wholes, with what is still to be unfolded.
pub(crate) struct Unfolded {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
    pub(crate) variables: usize,
}

/// The term without definitions and literals.
///
/// # Errors
/// `limit`, if it would have more than [`MAX_NODES`] nodes; `unsupported`, if a differential term occurs.
pub(crate) fn unfold(term: &Term, order: Order) -> Result<Unfolded> {
    supported(term, Extension::None)?;
    let mut unfolded = Unfolded { nodes: Vec::new(), root: term.root(), variables: 0 };
    unfolded.import(term, None)?;
    let mut next = 0;
    while let Some(node) = unfolded.nodes.get(next) {
        let inner = match node {
            Node::Global { definition, arguments } => {
                let (definition, arguments) = (definition.clone(), arguments.clone());
                let instance = Instance::new(&definition.parameters, &arguments);
                match &definition.term {
                    Some(inner) => Some(unfolded.import(inner, Some(&instance))?),
                    None => None,
                }
            }
            Node::Numeral { value, base } => {
                let (value, base) = (*value, base.clone());
                unfolded.room(5 * value as usize)?;
                Some(unfolded.import(&literal::numeral(value, &base), None)?)
            }
            Node::Word { digits, base } => {
                let (digits, base) = (digits.clone(), base.clone());
                unfolded.room(5 * digits.len())?;
                Some(unfolded.import(&literal::word(&digits, &base, order), None)?)
            }
            _ => None,
        };
        if let Some(inner) = inner {
            // The root of what was imported moves here; its old place stays behind, unreachable.
            let last = unfolded.nodes.pop().filter(|_| inner.index() == unfolded.nodes.len());
            if let (Some(last), Some(place)) = (last, unfolded.nodes.get_mut(next)) {
                *place = last;
            }
        } else {
            next += 1;
        }
    }
    Ok(unfolded)
}

impl Unfolded {
    fn room(&self, more: usize) -> Result<()> {
        if self.nodes.len() + more > MAX_NODES { Err(too_large()) } else { Ok(()) }
    }

    /// Appends the nodes of a term, with variables and ids of their own; the root is the last.
    fn import(&mut self, term: &Term, instance: Option<&Instance<'_>>) -> Result<NodeId> {
        self.room(term.size())?;
        let (nodes, variables) = (self.nodes.len(), self.variables);
        for node in term.nodes() {
            let mut node = node.clone();
            node.children_mut(|child| *child = NodeId::new(child.index() + nodes));
            node.variables_mut(|variable| *variable = Variable::new(variable.index() + variables));
            if let Some(instance) = instance {
                node.instantiate(instance);
                check_size(&node)?;
            }
            self.nodes.push(node);
        }
        self.variables += term.names().len();
        Ok(NodeId::new(self.nodes.len() - 1))
    }
}

/// Instances of instances can make formulas that no text could mean.
fn check_size(node: &Node) -> Result<()> {
    use crate::formula::{MAX_DEPTH, MAX_SIZE};
    let small = |formula: &Formula| formula.size() <= MAX_SIZE && formula.depth() <= MAX_DEPTH;
    let fits = match node {
        Node::Lambda { domain, codomain, .. } => small(domain) && small(codomain),
        Node::InLeft(formula, _) | Node::InRight(formula, _) => small(formula),
        Node::Numeral { base, .. } | Node::Word { base, .. } => small(base),
        Node::Global { arguments, .. } => arguments.iter().all(small),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    Err(Refusal::new(
        Kind::Limit,
        format!("a formula has more than {MAX_SIZE} connectives or {MAX_DEPTH} levels"),
    ))
}
