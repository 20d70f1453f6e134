//! The built-in laws, as the tables that a configuration file would hold (F42).

/// Every key of family `depth` but `predicates` and `statements`, which have no default.
const DEPTH: &str = r#"
family = "depth"
depth_mix = [[1,20],[2,40],[3,30],[4,10]]
levels = []
kinds = { atom = 6, quantifier = 7, connective = 7 }
connectives = { NOT = 1, AND = 1, OR = 1, IMPLIES = 1, IFF = 1 }
quantifiers = { FORALL = 1, EXISTS = 1 }
relations = { EQUALS = 1 }
truth = { TRUE = 1, FALSE = 1 }
atoms = { predicate = 7, relation = 3, truth = 0 }
overloaded = { names = 5, arities = [[1,1],[2,1]] }
functions = []
constants = 0
arguments = "public"
terms = { variable = 9, constant = 1, function = 0 }
term_depth = 0
binder = "pool"
names = 5
shadow = 0
vacuous = 0
recent = 0
parentheses = 0
sorted = { no = 1, yes = 0 }
sorts = 0
max_tokens = 512
"#;

/// Every key of family `count`; the signature is that of `pr`.
const COUNT: &str = r#"
family = "count"
predicates = [[1,1],[2,1]]
constants = 0
relations = []
quantifiers = ["FORALL", "EXISTS"]
connectives = ["NOT", "AND", "OR", "IMPLIES", "IFF"]
truth = false
levels = []
sizes = [2,10]
names = "canonical"
pool = 625
max_tokens = 512
"#;

/// Every key of family `boltzmann`; the signature is that of `uniform`.
const BOLTZMANN: &str = r#"
family = "boltzmann"
predicates = [[1,3],[2,2]]
constants = 3
relations = ["EQUALS"]
quantifiers = ["FORALL", "EXISTS"]
connectives = ["NOT", "AND", "OR", "IMPLIES", "IFF"]
truth = false
nodes = 30
tolerance = 10
scope = 2
names = "distinct"
pool = 625
max_tokens = 512
"#;

/// What a table `statements` holds where it says nothing else.
pub(super) const STATEMENTS: &str = r#"
count = [[1,8],[2,1],[3,1]]
dot = { no = 3, yes = 1 }
kinds = { formula = 60, entails = 12, models = 8, equivalent = 5, define_predicate = 5, define_function = 5, define_constant = 5 }
premises = [[0,1],[1,3],[2,3],[3,1]]
conclusion = { formula = 9, unknown = 1 }
"#;

/// The second generator of the public project, on its own names: functions and constants, and binders, variables and
/// parentheses as people write them. Closed, since what stands outside all binders is a constant.
const PUBLIC_ADVANCED: &str = r#"
functions = [[1,2],[2,1]]
constants = 5
arguments = "terms"
terms = { variable = 6, constant = 2, function = 2 }
term_depth = 1
binder = "apart"
names = 10
shadow = 5
vacuous = 5
recent = 70
parentheses = 15
"#;

/// A closed law on a fixed signature: the drawing algorithm and level mix of the technical document.
const SEED: &str = r#"
depth_mix = [[4,1]]
kinds = { atom = 1, quantifier = 1, connective = 1 }
atoms = { predicate = 4, relation = 1, truth = 0 }
predicates = [[1,3],[2,2]]
constants = 3
arguments = "terms"
binder = "fresh"
levels = [[1,20],[2,40],[3,30],[4,10]]
"#;

/// Uniform over the classes of a level and a size.
const UNIFORM: &str = r#"
predicates = [[1,3],[2,2]]
constants = 3
relations = ["EQUALS"]
levels = [[1,20],[2,40],[3,30],[4,10]]
sizes = [[1,1,1],[2,2,10],[3,2,14],[4,3,18]]
names = "distinct"
"#;

/// Every symbol.
const FULL: &str = r#"
quantifiers = { FORALL = 2, EXISTS = 2, EXISTS1 = 1 }
sorted = { no = 3, yes = 1 }
sorts = 625
atoms = { predicate = 6, relation = 3, truth = 1 }
relations = { EQUALS = 1, NOT_EQUALS = 1, LESS_THAN = 1, GREATER_THAN = 1, LESS_EQUAL = 1, GREATER_EQUAL = 1 }
predicates = [[0,25],[1,300],[2,225],[3,75]]
functions = [[1,400],[2,225]]
constants = 625
arguments = "terms"
terms = { variable = 6, constant = 3, function = 1 }
term_depth = 2
names = 625
statements = {}
"#;

/// The names of the built-in laws.
pub(super) const NAMES: [&str; 8] =
    ["public", "public-advanced", "atomic", "seed", "uniform", "pr", "full", "boltzmann"];

/// The defaults of a family.
pub(super) fn family(name: &str) -> Option<&'static str> {
    match name {
        "depth" => Some(DEPTH),
        "count" => Some(COUNT),
        "boltzmann" => Some(BOLTZMANN),
        _ => None,
    }
}

/// A built-in law: the defaults of its family, and what differs from them.
pub(super) fn preset(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "public" => (DEPTH, ""),
        "public-advanced" => (DEPTH, PUBLIC_ADVANCED),
        "atomic" => (DEPTH, "depth_mix = [[0,1]]"),
        "seed" => (DEPTH, SEED),
        "full" => (DEPTH, FULL),
        "pr" => (COUNT, ""),
        "uniform" => (COUNT, UNIFORM),
        "boltzmann" => (BOLTZMANN, ""),
        _ => return None,
    })
}
