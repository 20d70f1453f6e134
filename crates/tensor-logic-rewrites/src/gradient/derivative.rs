//! The derivatives of elementwise functions, as expressions of their arguments.

use super::forms::under;
use crate::ast::{Comparison, Span};
use crate::function::Function;
use crate::program::{Call, Expr, Guard, When};

fn call(function: Function, arguments: Vec<Expr>, span: Span) -> Expr {
    Expr::Call(Box::new(Call { function, arguments, when: When::default(), span }))
}

fn one_minus(expr: Expr) -> Expr {
    Expr::Plus(vec![Expr::Number(1.0), Expr::Negate(Box::new(expr))])
}

fn quotient(a: Expr, b: Expr) -> Expr {
    Expr::Quotient(Box::new(a), Box::new(b))
}

/// The derivative of a function of one argument by its value, where that is simple.
pub(super) fn by_value(function: &Function, value: Expr, span: Span) -> Option<Expr> {
    Some(match function {
        Function::Relu => call(Function::Step, vec![value], span),
        Function::Exp => value,
        Function::Tanh => one_minus(Expr::Product(vec![value.clone(), value])),
        Function::Sig => Expr::Product(vec![value.clone(), one_minus(value)]),
        _ => return None,
    })
}

/// Whether the derivative is 0 everywhere.
pub(super) fn is_flat(function: &Function) -> bool {
    matches!(function, Function::Step | Function::Sign | Function::Floor)
}

/// The derivative by the argument of the number given, or `None` where it is 0 everywhere.
/// At kinks it is that of section 4, N12.
pub(super) fn of(function: &Function, arguments: &[Expr], by: usize, span: Span) -> Option<Expr> {
    let x = arguments.first()?.clone();
    let number = Expr::Number;
    Some(match function {
        Function::Step | Function::Sign | Function::Floor => return None,
        Function::Sig => {
            let s = call(Function::Sig, arguments.to_vec(), span);
            let slope = Expr::Product(vec![s.clone(), one_minus(s)]);
            match (arguments.get(1), by) {
                (None, _) => slope,
                // A temperature of 0 is the step: its slope is 0, not 0/0.
                (Some(t), by) => {
                    let ratio = if by == 0 {
                        quotient(slope, t.clone())
                    } else {
                        let squared = Expr::Product(vec![t.clone(), t.clone()]);
                        Expr::Negate(Box::new(quotient(Expr::Product(vec![slope, x]), squared)))
                    };
                    let warm = Guard::Compare(Comparison::NotEqual, t.clone(), number(0.0));
                    under(vec![warm].into(), ratio, span)
                }
            }
        }
        Function::Tanh => {
            let t = call(Function::Tanh, vec![x], span);
            one_minus(Expr::Product(vec![t.clone(), t]))
        }
        Function::Relu => call(Function::Step, vec![x], span),
        Function::Leaky => {
            let slope = arguments.get(1)?.clone();
            let positive = call(Function::Step, vec![x.clone()], span);
            if by == 0 {
                let rest = Expr::Product(vec![slope, one_minus(positive.clone())]);
                Expr::Plus(vec![positive, rest])
            } else {
                Expr::Product(vec![x, one_minus(positive)])
            }
        }
        Function::Gelu => {
            // Φ(x) + x φ(x), and Φ(x) = gelu(x) / x, and 1/2 at 0: there 1 - sign(x)² is 1, and 0 elsewhere. No guard, which
            // would be a mask of its own.
            let density = {
                let square = Expr::Product(vec![number(-0.5), x.clone(), x.clone()]);
                let height = 1.0 / (2.0 * std::f64::consts::PI).sqrt();
                Expr::Product(vec![number(height), call(Function::Exp, vec![square], span)])
            };
            let gelu = call(Function::Gelu, vec![x.clone()], span);
            let sign = call(Function::Sign, vec![x.clone()], span);
            let zero = one_minus(Expr::Product(vec![sign.clone(), sign]));
            let half = Expr::Product(vec![number(0.5), zero.clone()]);
            let cumulative = quotient(Expr::Plus(vec![gelu, half]), Expr::Plus(vec![x.clone(), zero]));
            Expr::Plus(vec![cumulative, Expr::Product(vec![x, density])])
        }
        Function::Silu => {
            let s = call(Function::Sig, vec![x.clone()], span);
            let inner = Expr::Plus(vec![number(1.0), Expr::Product(vec![x, one_minus(s.clone())])]);
            Expr::Product(vec![s, inner])
        }
        Function::Softplus => call(Function::Sig, vec![x], span),
        Function::Exp => call(Function::Exp, vec![x], span),
        Function::Log => quotient(number(1.0), x),
        Function::Sqrt => quotient(number(0.5), call(Function::Sqrt, vec![x], span)),
        Function::Sin => call(Function::Cos, vec![x], span),
        Function::Cos => Expr::Negate(Box::new(call(Function::Sin, vec![x], span))),
        Function::Abs => call(Function::Sign, vec![x], span),
        Function::Max | Function::Min => {
            // (1 + sign(mine - other)) / 2: 1, 1/2 on a tie, 0.
            let (mine, other) = (arguments.get(by)?.clone(), arguments.get(1 - by)?.clone());
            let (first, second) =
                if matches!(function, Function::Max) { (mine, other) } else { (other, mine) };
            let difference = Expr::Plus(vec![first, Expr::Negate(Box::new(second))]);
            let sign = call(Function::Sign, vec![difference], span);
            quotient(Expr::Plus(vec![number(1.0), sign]), number(2.0))
        }
        Function::User(user) => {
            call(Function::User(std::sync::Arc::new(user.derivative_function(by))), arguments.to_vec(), span)
        }
    })
}
