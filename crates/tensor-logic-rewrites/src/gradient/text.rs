//! A gradient as text.

use super::Adjoint;
use crate::analyse::analyse;
use crate::ast::Span;
use crate::error::{Code, Refusal, Result};
use crate::function::UserFunctions;
use crate::lower::{NoFiles, Options};
use crate::presence;
use crate::program::{
    Argument, Combine, Equation, Expr, Index, IndexFn, IndexId, Otherwise, Place, Program, Range, Read, Role,
    Stamp, Style, Tensor, TensorId, Term, When,
};
use crate::show;
use crate::value::{Const, Domain};

impl Adjoint {
    /// The gradient program as text: the original statements without queries, the gradient
    /// equations, and one query for each gradient.
    ///
    /// # Errors
    /// `not-yet` where a gradient goes through proofs: between a relation with probabilities and its weights there are no
    /// equations. And where every text would say something else of the domains of the program's tensors.
    pub fn emit(&self) -> Result<String> {
        let mut program = self.program.clone();
        program.actions.clear();
        if let Some(slopes) = program.equations.iter().find(|equation| self.is_slopes(equation)) {
            let mut relation = None;
            slopes.visit_reads(&mut |read, _| relation = relation.or(Some(read.tensor)));
            let relation = relation.unwrap_or(slopes.tensor);
            let name = program.name(relation);
            let message = format!(
                "the gradient through the proofs of `{name}` is no equation, and no program can be printed"
            );
            let report = Refusal::new(Code::NotYet, program.left_side(relation), message);
            return Err(report.help("`tl grad` without --emit gives its values"));
        }
        let gradient =
            |(found, of): (&Option<TensorId>, &TensorId)| found.unwrap_or_else(|| nothing(&mut program, *of));
        let asked: Vec<TensorId> = self.gradients.iter().zip(&self.wrt).map(gradient).collect();
        for at in self.first_equation..program.equations.len() {
            join_no_class(&mut program, at);
        }
        asked.iter().for_each(|id| be_whole(&mut program, *id));
        let needed = program.needs(&asked);
        // What only the queries needed has no name that could be printed.
        let hidden: Vec<bool> = program.tensors.iter().map(|tensor| tensor.hidden).collect();
        let printed =
            |id: TensorId| needed.contains(&id) || !hidden.get(id.0 as usize).is_some_and(|hidden| *hidden);
        program.equations.retain(|equation| printed(equation.tensor));
        let unnamed: Vec<TensorId> = needed.iter().copied().filter(|id| program.tensor(*id).hidden).collect();
        for id in unnamed {
            if let Some(tensor) = program.tensors.get_mut(id.0 as usize) {
                tensor.name = format!("Goal_{}", id.0);
                tensor.hidden = false;
            }
        }
        let (own, added): (Vec<TensorId>, Vec<TensorId>) =
            needed.into_iter().partition(|id| (id.0 as usize) < self.first_tensor);
        let mut faithful = show::ways(&program).find(|text| has_domains(text, &program, &own));
        let narrow = faithful.as_ref().map_or_else(Vec::new, |text| narrower(text, &program, &added));
        if !narrow.is_empty() {
            // The left sides of these say too little of their places.
            narrow.into_iter().for_each(|id| is_zero_everywhere(&mut program, id));
            let wider = show::ways(&program).find(|text| has_domains(text, &program, &own));
            faithful = wider.or(faithful);
        }
        let Some(mut text) = faithful else {
            let message =
                "places that the program keeps apart are of one class in every text of its gradient";
            let span = self.wrt.first().map_or(Span::default(), |id| program.left_side(*id));
            let report = Refusal::new(Code::NotYet, span, message);
            return Err(report.help("`tl grad` without --emit gives its values"));
        };
        for id in asked {
            text.push_str(program.name(id));
            text.push_str("?\n");
        }
        Ok(text)
    }

    fn is_slopes(&self, equation: &Equation) -> bool {
        self.program.tensor(equation.tensor).combine == Combine::Slopes
    }

    /// The gradient equations, one text each. What comes from circuits is read by them, and has none.
    pub fn equations(&self) -> Vec<String> {
        let added = self.program.equations.iter().skip(self.first_equation);
        added
            .filter(|equation| !self.is_slopes(equation))
            .map(|equation| show::equation(&self.program, equation))
            .collect()
    }
}

/// The square tensors whose places have fewer values in a text than in the program: what is written or read beyond is lost.
fn narrower(text: &str, program: &Program, of: &[TensorId]) -> Vec<TensorId> {
    let (functions, options) = (UserFunctions::default(), Options::default());
    let Ok(read) = analyse(text, &mut NoFiles, &functions, &options) else { return Vec::new() };
    let read = read.program;
    let names = show::tensor_names(program);
    let is_narrower = |id: &&TensorId| {
        let (tensor, name) = (program.tensor(**id), names.get(id.0 as usize));
        let again = read.tensors.iter().find(|tensor| Some(&tensor.name) == name);
        let sums = tensor.style == Style::Square && tensor.combine == Combine::Sum;
        let lacks = |(wanted, found): (&Place, &Place)| match (&wanted.domain, &found.domain) {
            (Some(Domain::Interval { from, to }), Some(Domain::Interval { from: low, to: high })) => {
                from <= to && (from < low || high < to)
            }
            _ => false,
        };
        sums && again.is_some_and(|again| tensor.places.iter().zip(&again.places).any(lacks))
    };
    of.iter().filter(is_narrower).copied().collect()
}

/// Adds 0 to every element of a tensor.
fn is_zero_everywhere(program: &mut Program, id: TensorId) {
    let left = over_its_places(program, id);
    says(program, id, left, Expr::Number(0.0));
}

/// Indices that range over the places of a tensor.
fn over_its_places(program: &mut Program, id: TensorId) -> Vec<IndexId> {
    let tensor = program.tensor(id);
    let (domains, span) = (tensor.domains(), tensor.span);
    let mut left = Vec::new();
    for (at, domain) in domains.into_iter().enumerate() {
        program.indices.push(Index { name: format!("x{at}"), range: Range::Domain(domain), span });
        left.push(IndexId(u32::try_from(program.indices.len() - 1).unwrap_or(u32::MAX)));
    }
    left
}

/// One more equation of a tensor, at these indices.
fn says(program: &mut Program, tensor: TensorId, left: Vec<IndexId>, body: Expr) {
    let span = program.tensor(tensor).span;
    let head = left.iter().copied().map(IndexFn::Index).collect();
    let terms = vec![Term { over: Vec::new(), when: When::default(), body }];
    let (head_span, sign_span, node) = (span, span, Stamp::default());
    program.equations.push(Equation { tensor, head, left, terms, node, span, head_span, sign_span });
}

/// Whether the tensors of a text have the domains that those of a program have: a read outside of one is absent.
fn has_domains(text: &str, program: &Program, of: &[TensorId]) -> bool {
    let (functions, options) = (UserFunctions::default(), Options::default());
    let read = match analyse(text, &mut NoFiles, &functions, &options) {
        Ok(read) => read.program,
        // Functions that a host registers are not known here.
        Err(reports) => return reports.iter().any(|report| report.code == Code::UnknownFunction),
    };
    let names = show::tensor_names(program);
    of.iter().all(|id| {
        let (tensor, name) = (program.tensor(*id), names.get(id.0 as usize));
        let again = read.tensors.iter().find(|tensor| Some(&tensor.name) == name);
        // Of relations whose tuples alone are looked at, domains say nothing.
        let matters = tensor.style == Style::Square || is_read_as_number(program, *id);
        !matters || again.is_some_and(|again| domains(&read, again) == domains(program, tensor))
    })
}

/// The domains of a tensor's places, with the names of symbols: their numbers are those of a program.
fn domains(program: &Program, tensor: &Tensor) -> Vec<Option<String>> {
    let named = |domain: &Domain| match domain {
        empty if empty.is_empty() => String::new(),
        Domain::Interval { from, to } => format!("{from}..{to}"),
        listed => listed.values().map(|value| program.symbols.show(value) + ",").collect(),
    };
    tensor.places.iter().map(|place| place.domain.as_ref().map(named)).collect()
}

/// Whether an element that is no tuple is read as 0 inside of its places.
fn is_read_as_number(program: &Program, id: TensorId) -> bool {
    let mut found = false;
    for equation in &program.equations {
        equation.visit_reads(&mut |read, _| {
            found |= read.tensor == id && read.otherwise == Otherwise::Zero;
        });
    }
    found
}

/// The gradient by a tensor on which nothing depends.
fn nothing(program: &mut Program, of: TensorId) -> TensorId {
    let of = program.tensor(of);
    let (name, version) = (named(program, format!("Grad_{}", of.name)), 0);
    let places = of.places.iter().map(|place| Place { limit: None, star: false, ..place.clone() }).collect();
    let (given, role, combine) = (Vec::new(), Role::Computed, Combine::Sum);
    let tensor =
        Tensor { name, version, places, given, role, combine, start: None, hidden: false, ..of.clone() };
    program.tensors.push(tensor);
    TensorId(u32::try_from(program.tensors.len() - 1).unwrap_or(u32::MAX))
}

/// An index that tuples bind stands alone in a place of a square tensor only where it says of which class the place is: an
/// adjoint's place is of none, and takes `i + 0`.
fn join_no_class(program: &mut Program, at: usize) {
    let Some(equation) = program.equations.get(at) else { return };
    let tensor = program.tensor(equation.tensor);
    let tuples = |index: IndexId| matches!(program.index(index).range, Range::Tuples);
    let head = equation.head.iter().zip(&tensor.places).map(|(function, place)| {
        let joins = tensor.style == Style::Square && function.alone().is_some_and(tuples);
        match &place.domain {
            Some(Domain::Interval { .. }) if joins => {
                let zero = IndexFn::Const(Const::Int(0));
                IndexFn::Add(Box::new(function.clone()), Box::new(zero))
            }
            _ => function.clone(),
        }
    });
    let head = head.collect();
    if let Some(equation) = program.equations.get_mut(at) {
        equation.head = head;
    }
}

/// A printed square tensor has the elements that its left sides name: where these are not just those of its places, another
/// tensor takes what they say, and the one that is asked for what is inside.
fn be_whole(program: &mut Program, id: TensorId) {
    let tensor = program.tensor(id).clone();
    let own = |equation: &&Equation| equation.tensor == id;
    let mut equations = program.equations.iter().filter(own).peekable();
    let is_new = equations.peek().is_none();
    let stays = |equation: &Equation| {
        equation.head.iter().zip(&tensor.places).all(|(function, place)| match &place.domain {
            Some(Domain::Interval { from, to }) => {
                let bounds = presence::bounds(program, function);
                bounds.is_some_and(|(low, high)| from <= &low && &high <= to)
            }
            _ => true,
        })
    };
    let names_all = |equation: &Equation| {
        let named: Option<Vec<IndexId>> = equation.head.iter().map(IndexFn::alone).collect();
        named.is_some_and(|named| {
            (0..named.len()).all(|at| !named[..at].contains(&named[at]))
                && named.iter().zip(&tensor.places).all(|(index, place)| {
                    matches!((&program.index(*index).range, &place.domain),
                        (Range::Domain(range), Some(domain)) if range == domain)
                })
        })
    };
    let own: Vec<&Equation> = equations.collect();
    let whole = own.iter().all(|equation| stays(equation)) && own.iter().any(|equation| names_all(equation));
    let is_given = is_new && !tensor.given.is_empty();
    if tensor.style == Style::Round || whole || is_given {
        return;
    }
    let span = tensor.span;
    let left = over_its_places(program, id);
    let body = match is_new {
        true => Expr::Number(0.0),
        false => {
            let all = TensorId(u32::try_from(program.tensors.len()).unwrap_or(u32::MAX));
            let name = named(program, format!("All_{}", tensor.name));
            program.tensors.push(Tensor { name, ..tensor });
            if let Some(rest) = program.tensors.get_mut(id.0 as usize) {
                rest.given.clear();
            }
            for equation in program.equations.iter_mut().filter(|equation| equation.tensor == id) {
                equation.tensor = all;
            }
            let arguments = left.iter().map(|index| Argument::At(IndexFn::Index(*index))).collect();
            Expr::Read(Read::new(all, arguments, Otherwise::Zero, span))
        }
    };
    says(program, id, left, body);
}

/// A name that no tensor has yet.
fn named(program: &Program, mut name: String) -> String {
    while program.tensors.iter().any(|tensor| tensor.name == name && !tensor.hidden) {
        name.push('\'');
    }
    name
}
