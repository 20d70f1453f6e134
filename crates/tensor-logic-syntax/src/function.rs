//! The elementwise functions: names, arities, values and derivatives.

use std::fmt;
use std::sync::Arc;

/// The value of a function of numbers.
pub type Numeric = Arc<dyn Fn(&[f64]) -> f64 + Send + Sync>;

/// The derivative of a function of numbers by the argument of the number given.
pub type Slope = Arc<dyn Fn(&[f64], usize) -> f64 + Send + Sync>;

/// A function that the program embedding the crate has registered.
#[derive(Clone)]
pub struct UserFunction {
    /// Its name in programs: a small letter first.
    pub name: String,
    /// The number of arguments.
    pub arity: usize,
    /// The value.
    pub value: Numeric,
    /// The derivative by the argument of the number given.
    pub derivative: Slope,
}

impl UserFunction {
    /// The derivative by an argument, as a function of its own. Its own derivative is not known
    /// and is 0.
    pub fn derivative_function(&self, by: usize) -> UserFunction {
        let derivative = Arc::clone(&self.derivative);
        UserFunction {
            name: format!("{}_d{by}", self.name),
            arity: self.arity,
            value: Arc::new(move |arguments| derivative(arguments, by)),
            derivative: Arc::new(|_, _| 0.0),
        }
    }
}

impl fmt::Debug for UserFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.arity)
    }
}

/// An elementwise function.
#[derive(Debug, Clone)]
pub enum Function {
    /// 1 if x > 0, else 0.
    Step,
    /// 1/(1+exp(-x/T)); step at T = 0. T is 1 where it is not given.
    Sig,
    /// The hyperbolic tangent.
    Tanh,
    /// max(x, 0)
    Relu,
    /// x where x > 0, else a·x.
    Leaky,
    /// x·Φ(x), exact.
    Gelu,
    /// x·sig(x)
    Silu,
    /// log(1 + exp(x))
    Softplus,
    /// The exponential.
    Exp,
    /// The natural logarithm.
    Log,
    /// The square root.
    Sqrt,
    /// The sine of radians.
    Sin,
    /// The cosine of radians.
    Cos,
    /// The absolute value.
    Abs,
    /// -1, 0 or 1.
    Sign,
    /// The largest integer not above.
    Floor,
    /// The larger of two.
    Max,
    /// The smaller of two.
    Min,
    /// One that was registered.
    User(Arc<UserFunction>),
}

/// The built-in elementwise functions: name, smallest and largest number of arguments.
pub const BUILT_IN: &[(&str, Function, usize, usize)] = &[
    ("step", Function::Step, 1, 1),
    ("sig", Function::Sig, 1, 2),
    ("tanh", Function::Tanh, 1, 1),
    ("relu", Function::Relu, 1, 1),
    ("leaky", Function::Leaky, 2, 2),
    ("gelu", Function::Gelu, 1, 1),
    ("silu", Function::Silu, 1, 1),
    ("softplus", Function::Softplus, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("log", Function::Log, 1, 1),
    ("sqrt", Function::Sqrt, 1, 1),
    ("sin", Function::Sin, 1, 1),
    ("cos", Function::Cos, 1, 1),
    ("abs", Function::Abs, 1, 1),
    ("sign", Function::Sign, 1, 1),
    ("floor", Function::Floor, 1, 1),
    ("max", Function::Max, 2, 2),
    ("min", Function::Min, 2, 2),
];

/// The functions that are not elementwise: along an axis, scopes, and `concat`.
pub const OTHERS: &[&str] = &["softmax", "lnorm", "concat", "sum", "prod", "avg", "count", "max", "min"];

/// Whether the language has a function of this name.
pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|(known, ..)| *known == name) || OTHERS.contains(&name)
}

/// A power as the language means it: squares and small whole powers are products, so that
/// `X^2` is `X X` to the last bit.
pub fn power(base: f64, exponent: f64) -> f64 {
    // A 0 has no sign: -0 + 0 is 0.
    if exponent == 2.0 { base * base } else { (base + 0.0).powf(exponent) }
}

fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

fn step(x: f64) -> f64 {
    if x.is_nan() { x } else { f64::from(x > 0.0) }
}

impl Function {
    /// The value. Arguments that are missing are as their documentation says.
    pub fn value(&self, arguments: &[f64]) -> f64 {
        let x = arguments.first().copied().unwrap_or(f64::NAN);
        let second = arguments.get(1).copied();
        match self {
            Function::Step => step(x),
            Function::Sig => match second {
                None => sigmoid(x),
                Some(0.0) => step(x),
                Some(temperature) => sigmoid(x / temperature),
            },
            Function::Tanh => x.tanh(),
            Function::Relu => {
                if x > 0.0 || x.is_nan() {
                    x
                } else {
                    0.0
                }
            }
            Function::Leaky => {
                if x > 0.0 {
                    x
                } else {
                    second.unwrap_or(0.0) * x
                }
            }
            Function::Gelu => x * normal_cdf(x),
            Function::Silu => x * sigmoid(x),
            Function::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Function::Exp => x.exp(),
            Function::Log => x.ln(),
            Function::Sqrt => x.sqrt(),
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Abs => x.abs(),
            Function::Sign => {
                if x > 0.0 {
                    1.0
                } else if x < 0.0 {
                    -1.0
                } else {
                    x * 0.0
                }
            }
            Function::Floor => x.floor(),
            Function::Max => larger(x, second.unwrap_or(f64::NAN)),
            Function::Min => -larger(-x, -second.unwrap_or(f64::NAN)),
            Function::User(user) => (user.value)(arguments),
        }
    }

    /// The derivative by the argument of the number given (from 0). At kinks: step, sign, floor
    /// 0; relu, leaky, abs at 0: 0, the slope, 0; equal arguments of max and min share evenly.
    pub fn derivative(&self, arguments: &[f64], by: usize) -> f64 {
        let x = arguments.first().copied().unwrap_or(f64::NAN);
        let second = arguments.get(1).copied();
        match self {
            Function::Step | Function::Sign | Function::Floor => 0.0,
            Function::Sig => {
                let temperature = second.unwrap_or(1.0);
                if temperature == 0.0 {
                    return 0.0;
                }
                let s = sigmoid(x / temperature);
                let inner = s * (1.0 - s);
                if by == 0 { inner / temperature } else { -inner * x / (temperature * temperature) }
            }
            Function::Tanh => 1.0 - x.tanh().powi(2),
            Function::Relu => f64::from(x > 0.0),
            Function::Leaky => match (by, x > 0.0) {
                (0, true) => 1.0,
                (0, false) => second.unwrap_or(0.0),
                (_, true) => 0.0,
                (_, false) => x,
            },
            Function::Gelu => normal_cdf(x) + x * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt(),
            Function::Silu => {
                let s = sigmoid(x);
                s * (1.0 + x * (1.0 - s))
            }
            Function::Softplus => sigmoid(x),
            Function::Exp => x.exp(),
            Function::Log => 1.0 / x,
            Function::Sqrt => 0.5 / x.sqrt(),
            Function::Sin => x.cos(),
            Function::Cos => -x.sin(),
            Function::Abs => Function::Sign.value(&[x]),
            Function::Max | Function::Min => {
                let y = second.unwrap_or(f64::NAN);
                let (mine, other) = if by == 0 { (x, y) } else { (y, x) };
                let wins = if matches!(self, Function::Max) { mine > other } else { mine < other };
                if mine == other { 0.5 } else { f64::from(wins) }
            }
            Function::User(user) => (user.derivative)(arguments, by),
        }
    }
}

fn larger(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { x.max(y) }
}

/// The distribution function of the standard normal, Φ(x) = ½ erfc(-x/√2), to the last few bits.
fn normal_cdf(x: f64) -> f64 {
    const SQRT_2_LOW: f64 = -9.667_293_313_452_913e-17;
    let z = -x * std::f64::consts::FRAC_1_SQRT_2;
    if !z.is_finite() {
        return 0.5 * libm::erfc(z);
    }
    // In the tail the rounding of z would cost as many digits as z² has: the slope there gives them back.
    let rest = z.mul_add(-std::f64::consts::SQRT_2, -x) - z * SQRT_2_LOW;
    let slope = -std::f64::consts::FRAC_2_SQRT_PI * (-z * z).exp();
    0.5 * (libm::erfc(z) + rest * std::f64::consts::FRAC_1_SQRT_2 * slope)
}

/// The functions of a program: the built-in ones and those that the embedding program registers.
#[derive(Debug, Clone, Default)]
pub struct UserFunctions {
    registered: Vec<Arc<UserFunction>>,
}

impl UserFunctions {
    /// Registers a function; a later one of the same name replaces it.
    pub fn register(&mut self, function: UserFunction) {
        self.registered.retain(|known| known.name != function.name);
        self.registered.push(Arc::new(function));
    }

    /// An elementwise function by name.
    pub fn find(&self, name: &str) -> Option<Function> {
        let registered = self.registered.iter().find(|function| function.name == name);
        let built_in = || BUILT_IN.iter().find(|(known, ..)| *known == name).map(|entry| entry.1.clone());
        registered.map(|function| Function::User(Arc::clone(function))).or_else(built_in)
    }

    /// The registered functions.
    pub fn registered(&self) -> &[Arc<UserFunction>] {
        &self.registered
    }
}
