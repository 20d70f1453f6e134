//! Random well-typed terms, as explicit text: every connective, with redexes wherever they fit.

use linear_logic::formula::{Connective, Formula};
use seeded::Stream;

/// The numbers of so many draws, from the seed of the run on.
pub(crate) fn numbers(count: u64) -> impl Iterator<Item = u64> {
    let first = seeded::test_seed();
    (0..count).map(move |number| first.wrapping_add(number))
}

/// Variables that must all be used.
type Context = Vec<(String, Formula)>;

/// Makes terms from a stream.
pub(crate) struct Terms<'a> {
    pub(crate) stream: &'a mut Stream,
    fresh: usize,
    fuel: usize,
}

fn atom(name: &str) -> Formula {
    Formula::atom(name)
}

impl<'a> Terms<'a> {
    pub(crate) fn new(stream: &'a mut Stream, fuel: usize) -> Self {
        Self { stream, fresh: 0, fuel }
    }

    fn below(&mut self, n: usize) -> usize {
        self.stream.below(n as u64) as usize
    }

    fn name(&mut self) -> String {
        self.fresh += 1;
        format!("x{}", self.fresh)
    }

    fn spend(&mut self) -> bool {
        self.fuel = self.fuel.saturating_sub(1);
        self.fuel > 0
    }

    /// A formula without `!`.
    fn finite(&mut self, depth: usize) -> Formula {
        if depth == 0 || self.below(3) == 0 {
            return match self.below(5) {
                0 => Formula::one(),
                1 | 2 => atom("b"),
                _ => atom("a"),
            };
        }
        let (a, b) = (self.finite(depth - 1), self.finite(depth - 1));
        match self.below(4) {
            0 => a.tensor(b),
            1 => a.with(b),
            2 => a.plus(b),
            _ => a.lolli(b),
        }
    }

    /// The type of an argument that a test can make up: finite, or ! of that.
    fn argument(&mut self) -> Formula {
        let formula = self.finite(2);
        if self.below(2) == 0 { formula.bang() } else { formula }
    }

    /// A closed term: λ over arguments, then a body that uses them all.
    pub(crate) fn closed(&mut self) -> (String, Formula) {
        let count = self.below(4);
        let arguments: Context = (0..count).map(|_| (self.name(), self.argument())).collect();
        let (text, formula) = self.any(arguments.clone());
        // Now and then a box is left as it is, so that boxes meet boxes.
        let (mut text, mut formula) =
            if self.below(4) == 0 { (text, formula) } else { self.observe(text, formula) };
        for (name, domain) in arguments.into_iter().rev() {
            text = format!("(\\{name}:{domain}. {text})");
            formula = domain.lolli(formula);
        }
        (text, formula)
    }

    /// A term made finite where eliminations can do it, so that its denotation can be compared.
    fn observe(&mut self, t: String, a: Formula) -> (String, Formula) {
        if a.is_finite() {
            return (t, a);
        }
        let (x, y) = (self.name(), self.name());
        match a.connective() {
            Connective::Bang(inner) => self.observe(format!("(derelict {t})"), inner.clone()),
            Connective::Tensor(b, c) => {
                let ((u, b), (v, c)) =
                    (self.observe(x.clone(), b.clone()), self.observe(y.clone(), c.clone()));
                (format!("(let {x} * {y} = {t} in {u} * {v})"), b.tensor(c))
            }
            Connective::With(b, c) => {
                let ((u, b), (v, c)) = (
                    self.observe(format!("(fst {x})"), b.clone()),
                    self.observe(format!("(snd {x})"), c.clone()),
                );
                (format!("((\\{x}:{a}. <{u}, {v}>) {t})"), b.with(c))
            }
            Connective::Plus(b, c) => {
                let ((u, b), (v, c)) =
                    (self.observe(x.clone(), b.clone()), self.observe(y.clone(), c.clone()));
                (format!("(case {t} of inl {x} -> inl{{{c}}} {u} | inr {y} -> inr{{{b}}} {v})"), b.plus(c))
            }
            Connective::Lolli(domain, codomain) => match domain.as_bang().and_then(Formula::as_end) {
                // Inside of something else no argument can be given: the identity is.
                Some(end) => self.observe(format!("({t} [\\{x}:{end}. {x}])"), codomain.clone()),
                None => {
                    let (u, c) = self.observe(format!("({t} {x})"), codomain.clone());
                    (format!("(\\{x}:{domain}. {u})"), domain.clone().lolli(c))
                }
            },
            _ => (t, a),
        }
    }

    /// Some term that uses a context.
    fn any(&mut self, mut context: Context) -> (String, Formula) {
        if !self.spend() {
            return self.finish(context);
        }
        match self.below(13) {
            // Introductions around a split of the context.
            0 => {
                let (left, right) = self.split(context);
                let ((t, a), (u, b)) = (self.any(left), self.any(right));
                (format!("({t} * {u})"), a.tensor(b))
            }
            1 => {
                let ((t, a), (u, b)) = (self.any(context.clone()), self.any(context));
                (format!("<{t}, {u}>"), a.with(b))
            }
            2 => {
                let ((t, a), b) = (self.any(context), self.finite(1));
                if self.below(2) == 0 {
                    (format!("(inl{{{b}}} {t})"), a.plus(b))
                } else {
                    (format!("(inr{{{b}}} {t})"), b.plus(a))
                }
            }
            3 => {
                let (x, a) = (self.name(), self.argument());
                context.push((x.clone(), a.clone()));
                let (t, b) = self.any(context);
                (format!("(\\{x}:{a}. {t})"), a.lolli(b))
            }
            4 => match self.boxed(&context) {
                Some(boxed) => boxed,
                None => self.finish(context),
            },
            // Cuts: a redex of each connective, or an elimination of what a part happens to be.
            5 => {
                let (left, right) = self.split(context);
                let ((u, a), x) = (self.any(left), self.name());
                let (t, b) = self.any(and(right, &x, &a));
                (format!("((\\{x}:{a}. {t}) {u})"), b)
            }
            6 => {
                let (left, right) = self.split(context);
                let (t, a) = self.any(left);
                self.eliminate(t, &a, right)
            }
            7 => {
                let (left, right): (Context, Context) = context.into_iter().partition(|(_, a)| a.is_banged());
                match self.boxed(&left) {
                    Some((t, a)) => self.eliminate(t, &a, right),
                    None => self.finish(right),
                }
            }
            8 => {
                let ((t, a), (u, _)) = (self.any(context.clone()), self.any(context));
                (format!("(fst <{t}, {u}>)"), a)
            }
            9 => {
                let ((t, _), (u, b)) = (self.any(context.clone()), self.any(context));
                (format!("(snd <{t}, {u}>)"), b)
            }
            10 => match self.boxed(&context) {
                Some((t, a)) => (format!("(derelict {t})"), a.as_bang().cloned().unwrap_or(a)),
                None => self.finish(context),
            },
            // Eliminations of a variable.
            _ => match context.pop() {
                Some((x, a)) => self.eliminate(x, &a, context),
                None => self.finish(context),
            },
        }
    }

    /// A box with the context as its sources; `None` if one of them is not banged.
    fn boxed(&mut self, context: &Context) -> Option<(String, Formula)> {
        if !context.iter().all(|(_, a)| a.is_banged()) {
            return None;
        }
        let mut context = context.clone();
        if self.below(3) == 0 {
            // A source that is a box itself: a redex.
            context.extend(self.boxed(&Vec::new()));
        }
        let names: Vec<String> = context.iter().map(|_| self.name()).collect();
        let inside: Context =
            context.iter().zip(&names).map(|((_, a), name)| (name.clone(), a.clone())).collect();
        let (t, a) = self.any(inside);
        let sources: Vec<String> =
            context.iter().zip(&names).map(|((x, _), name)| format!("{x} for {name}")).collect();
        let text = if sources.is_empty() {
            format!("[{t}]")
        } else {
            format!("(promote ({}) in {t})", sources.join(", "))
        };
        Some((text, a.bang()))
    }

    /// An elimination of a term, in front of what uses the rest of the context.
    fn eliminate(&mut self, t: String, a: &Formula, context: Context) -> (String, Formula) {
        let (x, y) = (self.name(), self.name());
        match a.connective() {
            Connective::Tensor(a, b) => {
                let (u, c) = self.any(and(and(context, &x, a), &y, b));
                (format!("(let {x} * {y} = {t} in {u})"), c)
            }
            Connective::One => {
                let (u, c) = self.any(context);
                (format!("(let () = {t} in {u})"), c)
            }
            Connective::With(a, b) => {
                let (word, part) = if self.below(2) == 0 { ("fst", a) } else { ("snd", b) };
                let (u, c) = self.any(and(context, &x, part));
                (format!("((\\{x}:{part}. {u}) ({word} {t}))"), c)
            }
            Connective::Plus(a, b) => {
                let ((u, c), (v, d)) = (self.any(and(context.clone(), &x, a)), self.any(and(context, &y, b)));
                (format!("(case {t} of inl {x} -> inl{{{d}}} {u} | inr {y} -> inr{{{c}}} {v})"), c.plus(d))
            }
            Connective::Bang(inner) => match self.below(4) {
                0 => {
                    let (u, c) = self.any(context);
                    (format!("(discard {t} in {u})"), c)
                }
                1 => {
                    let (u, c) = self.any(and(context, &x, inner));
                    (format!("((\\{x}:{inner}. {u}) (derelict {t}))"), c)
                }
                _ => {
                    let (u, c) = self.any(and(and(context, &x, a), &y, a));
                    (format!("(copy {t} as {x}, {y} in {u})"), c)
                }
            },
            Connective::Lolli(domain, codomain) if *domain == Formula::one() => {
                let (u, c) = self.any(and(context, &x, codomain));
                (format!("((\\{x}:{codomain}. {u}) ({t} ()))"), c)
            }
            Connective::Lolli(domain, codomain) if context.iter().any(|(_, a)| a == domain) => {
                let mut context = context;
                let place = context.iter().position(|(_, a)| a == domain).unwrap_or(0);
                let (argument, _) = context.remove(place);
                let (u, c) = self.any(and(context, &x, codomain));
                (format!("((\\{x}:{codomain}. {u}) ({t} {argument}))"), c)
            }
            _ => {
                let (u, c) = self.any(and(context, &x, a));
                (format!("((\\{x}:{a}. {u}) {t})"), c)
            }
        }
    }

    /// The context as it is.
    fn finish(&mut self, mut context: Context) -> (String, Formula) {
        let Some((x, a)) = context.pop() else {
            return match self.below(4) {
                0 => ("()".to_owned(), Formula::one()),
                1 => ("(\\i:a. i)".to_owned(), Formula::end(atom("a"))),
                2 => ("[\\i:a. i]".to_owned(), Formula::end(atom("a")).bang()),
                _ => (format!("{}{{b}}", self.below(4)), Formula::int(atom("b"))),
            };
        };
        context.into_iter().fold((x, a), |(t, a), (y, b)| (format!("({t} * {y})"), a.tensor(b)))
    }

    fn split(&mut self, context: Context) -> (Context, Context) {
        context.into_iter().partition(|_| self.below(2) == 0)
    }
}

fn and(mut context: Context, name: &str, formula: &Formula) -> Context {
    context.push((name.to_owned(), formula.clone()));
    context
}
