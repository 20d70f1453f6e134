//! Queries: each becomes a tensor of the program, often a hidden one with one equation.

use super::Context;
use super::expression::Bound;
use super::scope::Occurrences;
use super::tensors::combine_of;
use crate::ast::{self, Brackets, Goal, Literal, LiteralKind, PlaceKind, Reference, Span};
use crate::error::{Code, Refusal};
use crate::program::{
    Action, Batch, Combine, Decline, Directives, Duration, Embed, Expr, Form, IndexId, Kind, Minimize,
    ModelQuery, Optimiser, Otherwise, Place, Query, Role, Schedule, Style, Tensor, TensorId, Term, Valid,
    Vectors, default_rate,
};
use crate::value::Const;

impl<'a> Context<'a> {
    pub(super) fn query(&mut self, span: Span, goal: &Goal, directives: &[ast::Directive]) {
        self.in_query = true;
        let goal = self.goal(span, goal);
        self.in_query = false;
        let Some((tensor, form)) = goal else { return };
        let text = self.text.get(span.start..span.end).unwrap_or("").trim().to_owned();
        let directives = self.directives(directives);
        self.draft.program.actions.push(Action::Query(Query { text, span, tensor, form, directives }));
    }

    fn goal(&mut self, span: Span, goal: &Goal) -> Option<(TensorId, Form)> {
        match goal {
            Goal::Literals(literals) => match literals.as_slice() {
                [Literal { kind: LiteralKind::Positive(reference), .. }] => {
                    match self.built_in_goal(span, reference) {
                        Some(goal) => goal,
                        None if self.is_built_in(reference) => self.conjunction(span, literals),
                        None => self.reference_goal(span, reference),
                    }
                }
                _ => self.conjunction(span, literals),
            },
            Goal::Restricted { name, evidence } => {
                let evidence = self.evidence(evidence);
                let query = ModelQuery {
                    conditional: false,
                    targets: Vec::new(),
                    evidence: evidence?,
                    name: name.span,
                };
                Some((self.seen(&name.text)?, Form::Model(query)))
            }
            Goal::Conditional { name, targets, evidence, .. } => {
                let evidence = self.evidence(evidence);
                let mut wanted = Vec::new();
                for target in targets {
                    let value = match &target.value {
                        Some(value) => Some(self.constant(value)?),
                        None => None,
                    };
                    wanted.push((target.index.text.clone(), value, target.index.span));
                }
                let query =
                    ModelQuery { conditional: true, targets: wanted, evidence: evidence?, name: name.span };
                Some((self.seen(&name.text)?, Form::Model(query)))
            }
        }
    }

    fn evidence(&mut self, evidence: &[ast::Evidence]) -> Option<Vec<(String, Const, Span)>> {
        let given = evidence
            .iter()
            .map(|given| Some((given.index.text.clone(), self.constant(&given.value)?, given.index.span)));
        given.collect()
    }

    /// `Even[i]`: 1 where the guard holds. In round brackets it is a literal like others.
    fn built_in_goal(&mut self, span: Span, reference: &Reference) -> Option<Option<(TensorId, Form)>> {
        if reference.brackets != Brackets::Square || !self.is_built_in(reference) {
            return None;
        }
        let mut bound = Bound::default();
        let free = self.free_of(reference, &mut bound);
        let Some(when) = self.parity(reference, true, &mut bound)? else { return Some(None) };
        let term = Term { over: Vec::new(), when, body: Expr::Number(1.0) };
        let form = Form::Values(self.labels(&free));
        let hidden = self.hidden(Style::Square, Combine::Sum, Kind::Bool, free.len(), span);
        self.hidden_equation(hidden, free, term, span);
        Some(Some((hidden, form)))
    }

    /// One reference: the whole tensor by its bare name, otherwise the part that it names.
    fn reference_goal(&mut self, span: Span, reference: &Reference) -> Option<(TensorId, Form)> {
        let tensor = self.seen(&reference.name.text)?;
        let info = self.draft.program.tensor(tensor);
        let (kind, combine, rank, square) =
            (info.kind, info.combine, info.places.len(), info.style == Style::Square);
        if reference.brackets == Brackets::None && (rank > 0 || square) {
            return Some((tensor, Form::Values((0..rank).map(|place| place.to_string()).collect())));
        }
        let round = reference.brackets == Brackets::Round || (rank == 0 && !square);
        let mut bound = Bound::default();
        let free = self.free_of(reference, &mut bound);
        let otherwise = if round { Otherwise::Absent } else { Otherwise::Zero };
        let mut term = self.read_term(reference, otherwise, &mut bound)?;
        // Slices are free, wildcards are summed; both were collected in order of the places.
        let mut loose = std::mem::take(&mut bound.loose).into_iter();
        let mut named = free.into_iter();
        let (mut left, mut seen) = (Vec::new(), Vec::new());
        for place in &reference.places {
            match &place.kind {
                PlaceKind::Wildcard => term.over.extend(loose.next()),
                PlaceKind::Slice(..) => left.extend(loose.next()),
                PlaceKind::Index(_) => {
                    let mut names = Occurrences::default();
                    names.reference(&Reference { places: vec![place.clone()], ..reference.clone() });
                    for (name, _) in names.all() {
                        if !seen.contains(&name.to_owned()) {
                            seen.push(name.to_owned());
                            left.extend(named.next());
                        }
                    }
                }
            }
        }
        let (style, combine, kind) = match (round, kind) {
            (true, Kind::Bool) => (Style::Round, Combine::Exists, Kind::Bool),
            (true, kind) => (Style::Round, combine_of(kind), kind),
            (false, kind) => {
                let wild = !term.over.is_empty();
                let real = if wild && kind == Kind::Bool { Kind::Real } else { kind };
                let _ = combine;
                (Style::Square, Combine::Sum, real)
            }
        };
        let ground = left.is_empty() && round;
        let form = match (ground, kind) {
            (true, Kind::Bool) => Form::Holds,
            (true, _) => Form::ValueOrNull,
            (false, _) => Form::Values(self.labels(&left)),
        };
        let hidden = self.hidden(style, combine, kind, left.len(), span);
        self.hidden_equation(hidden, left, term, span);
        Some((hidden, form))
    }

    /// The free indices of a reference, in order of first occurrence.
    fn free_of(&mut self, reference: &Reference, bound: &mut Bound) -> Vec<IndexId> {
        let mut occurrences = Occurrences::default();
        occurrences.reference(reference);
        let mut free = Vec::new();
        for (name, occurrence) in occurrences.all() {
            let id = self.named_index(name, occurrence.first);
            bound.push(name, id);
            free.push(id);
        }
        free
    }

    /// The labels of free indices; a slice is labelled when its range is known.
    fn labels(&self, free: &[IndexId]) -> Vec<String> {
        free.iter().map(|id| self.draft.program.index(*id).name.clone()).collect()
    }

    fn conjunction(&mut self, span: Span, literals: &[Literal]) -> Option<(TensorId, Form)> {
        let mut occurrences = Occurrences::default();
        occurrences.literals(literals);
        let mut bound = Bound::default();
        let mut free = Vec::new();
        for (name, occurrence) in occurrences.placed_here() {
            let id = self.named_index(name, occurrence.first);
            bound.push(name, id);
            free.push(id);
        }
        // In a semiring it is the body of a rule of that type.
        let asked = self.options.semiring.as_ref().filter(|asked| asked.query == span);
        let kind = asked.map_or(Kind::Bool, |asked| asked.kind);
        let term = self.body(literals, asked.map(|asked| asked.kind), &mut bound)?;
        let form = match (free.is_empty(), kind) {
            (true, Kind::Bool) => Form::Holds,
            (true, _) => Form::ValueOrNull,
            (false, _) => Form::Values(self.labels(&free)),
        };
        let hidden = self.hidden(Style::Round, combine_of(kind), kind, free.len(), span);
        let at = self.hidden_equation(hidden, free, term, span);
        self.draft.rules.push(at);
        Some((hidden, form))
    }

    fn hidden(&mut self, style: Style, combine: Combine, kind: Kind, rank: usize, span: Span) -> TensorId {
        let name = self.text.get(span.start..span.end).unwrap_or("").to_owned();
        let place = Place { domain: None, limit: None, star: false };
        self.push_tensor(Tensor {
            name,
            version: 0,
            hidden: true,
            style,
            kind,
            combine,
            places: vec![place; rank],
            role: Role::Computed,
            given: Vec::new(),
            start: None,
            span,
        })
    }

    fn directives(&mut self, directives: &[ast::Directive]) -> Directives {
        let mut asked = Directives::default();
        for directive in directives {
            let arguments = Arguments(directive.arguments.as_deref().unwrap_or(&[]));
            match directive.name.text.as_str() {
                "explain" => asked.explain = true,
                "minimize" => asked.minimize = Some(minimize(&arguments, directive.span)),
                "sample" => {
                    let seed = arguments.whole("seed").unwrap_or(self.draft.program.settings.seed);
                    let count = arguments.whole("n").unwrap_or(10_000);
                    asked.sample = Some((count, seed, directive.span));
                }
                "embed" => asked.embed = Some(self.embed(&arguments, directive.span)),
                "semiring" => asked.semiring = arguments.first().and_then(|name| semiring(&name)),
                _ => {}
            }
        }
        asked
    }

    fn embed(&mut self, arguments: &Arguments<'_>, span: Span) -> Embed {
        let vectors = match arguments.word("emb").as_deref() {
            None | Some("random") => Vectors::Random,
            Some("identity") => Vectors::Identity,
            Some(name) => match self.seen(name) {
                Some(rows) => Vectors::Rows(rows),
                None => {
                    let message = format!("`{name}` is no tensor");
                    self.refuse(Refusal::new(Code::BadArgument, span, message));
                    Vectors::Identity
                }
            },
        };
        let own = self.draft.program.settings.seed;
        Embed {
            dimension: arguments.whole("D"),
            // The language says 1; a program or a run with a seed of its own has vectors of its own.
            seed: arguments.whole("seed").unwrap_or(if own == 0 { 1 } else { own }),
            theta: arguments.number("theta").unwrap_or(0.5),
            temperature: arguments.number("T").unwrap_or(0.0),
            certify: arguments.word("certify").as_deref() != Some("no"),
            vectors,
            span,
        }
    }
}

/// The arguments of a directive; reading has checked their names and kinds.
struct Arguments<'a>(&'a [ast::Argument]);

impl Arguments<'_> {
    fn find(&self, key: &str) -> Option<&ast::Argument> {
        self.0.iter().find(|argument| argument.key.as_ref().is_some_and(|name| name.text == key))
    }

    fn value(&self, key: &str) -> Option<&ast::Value> {
        self.find(key).map(|argument| &argument.value)
    }

    fn span(&self, key: &str) -> Option<Span> {
        self.find(key).map(|argument| argument.span)
    }

    fn number(&self, key: &str) -> Option<f64> {
        match self.value(key)? {
            ast::Value::Number(number) => Some(number.value),
            _ => None,
        }
    }

    fn whole(&self, key: &str) -> Option<u64> {
        self.value(key)?.number()?.whole()
    }

    fn word(&self, key: &str) -> Option<String> {
        self.value(key).map(word)
    }

    fn first(&self) -> Option<String> {
        self.0.first().map(|argument| word(&argument.value))
    }
}

fn word(value: &ast::Value) -> String {
    match value {
        ast::Value::Number(number) => number.text.clone(),
        ast::Value::Name(name) => name.text.clone(),
        ast::Value::Text(text) => text.value.clone(),
    }
}

/// The types that a query may evaluate in.
fn semiring(name: &str) -> Option<Kind> {
    Some(match name {
        "bool" => Kind::Bool,
        "count" => Kind::Count,
        "real" => Kind::Real,
        "tropical" => Kind::Tropical,
        "maxtimes" => Kind::MaxTimes,
        "maxmin" => Kind::MaxMin,
        "addmult" => Kind::AddMult,
        "prob" => Kind::Prob,
        name => Kind::TopK(crate::read::proofs(name)?),
    })
}

fn minimize(arguments: &Arguments<'_>, span: Span) -> Minimize {
    let word = arguments.word("opt");
    let optimiser = match word.as_deref() {
        Some("sgd") => Optimiser::Sgd { momentum: arguments.number("momentum").unwrap_or(0.0) },
        name => Optimiser::Adam {
            beta1: arguments.number("beta1").unwrap_or(0.9),
            beta2: arguments.number("beta2").unwrap_or(0.999),
            epsilon: arguments.number("eps").unwrap_or(1e-8),
            decoupled: name == Some("adamw"),
        },
    };
    let default_rate = default_rate(matches!(optimiser, Optimiser::Sgd { .. }));
    let whole = |key: &str| arguments.whole(key);
    let duration = match whole("epochs") {
        Some(epochs) => Duration::Epochs(epochs),
        None => Duration::Steps(whole("steps").unwrap_or(500)),
    };
    let batch = arguments.word("batch").map(|index| Batch {
        index,
        size: whole("size").unwrap_or(1).max(1) as usize,
        shuffle: arguments.number("shuffle").is_some_and(|value| value != 0.0),
        valid: arguments.number("valid").map(|part| Valid {
            part,
            patience: whole("patience"),
            span: arguments.span("valid").unwrap_or(span),
        }),
    });
    let schedule = Schedule {
        decline: match arguments.word("schedule").as_deref() {
            Some("linear") => Decline::Linear,
            Some("cosine") => Decline::Cosine,
            _ => Decline::Constant,
        },
        warmup: whole("warmup").unwrap_or(0),
        least: arguments.number("min_lr").unwrap_or(0.0),
    };
    Minimize {
        optimiser,
        rate: arguments.number("lr").unwrap_or(default_rate),
        schedule,
        weight_decay: arguments.number("weight_decay").unwrap_or(0.0),
        clip: arguments.number("clip"),
        duration,
        batch,
        lift: arguments.word("lift").as_deref() == Some("yes"),
        span,
    }
}
