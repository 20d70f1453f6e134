//! The named rules of short proofs: each has a schema, a generator and a checker.
//!
//! Enter at [`check`], which says whether premises and a conclusion are an instance of a rule up to names of bound variables,
//! and at [`generate`](generate()), which makes one of letters that a [`Letters`] gives. Premises may stand in any order. Where a rule
//! treats two sides alike, its mirror image is an instance too: `A ∧ B ⊢ B`, `A ∨ B, ¬B ⊢ A`, `A ⊢ B ∨ A`, `A ↔ B ⊢ B → A`.

mod alpha;
mod check;
mod generate;
mod resolution;

use fol::ast::{Formula, Term, Variable};
use seeded::Stream;

pub use alpha::same;
pub use check::check;
pub use generate::generate;

/// What two clauses, written as formulas, give by one binary resolution; nothing where one of them is no clause.
pub fn resolvents(first: &Formula, second: &Formula) -> Vec<Formula> {
    let all = resolution::resolvents(first, second).into_iter();
    all.map(|(variables, literals)| resolution::closed(&variables, &literals)).collect()
}

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident $name:literal $schema:literal;)*) => {
        /// The name of a rule.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Name { $($(#[$doc])* $variant,)* }

        impl Name {
            /// All rules, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// As it is written.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Premises and conclusion over letters.
            pub fn schema(self) -> &'static str {
                match self { $(Self::$variant => $schema,)* }
            }
        }
    };
}

rules! {
    /// Modus ponens.
    Mp "MP" "A, A → B ⊢ B";
    /// Modus tollens.
    Mt "MT" "¬B, A → B ⊢ ¬A";
    /// Hypothetical syllogism.
    Hs "HS" "A → B, B → C ⊢ A → C";
    /// Disjunctive syllogism.
    Ds "DS" "A ∨ B, ¬A ⊢ B";
    /// Conjunction introduced.
    AndI "AND-I" "A, B ⊢ A ∧ B";
    /// Conjunction eliminated.
    AndE "AND-E" "A ∧ B ⊢ A";
    /// Disjunction introduced.
    OrI "OR-I" "A ⊢ A ∨ B";
    /// Contraposition.
    Cp "CP" "A → B ⊢ ¬B → ¬A";
    /// Equivalence eliminated.
    IffE "IFF-E" "A ↔ B ⊢ A → B";
    /// Universal instantiation.
    Ui "UI" "∀x φ ⊢ φ[t/x]";
    /// Existential generalisation.
    Eg "EG" "φ[t/x] ⊢ ∃x φ";
    /// Universal modus ponens.
    Ump "UMP" "∀x (φ → ψ), φ[t/x] ⊢ ψ[t/x]";
    /// Universal hypothetical syllogism.
    Uhs "UHS" "∀x (φ → ψ), ∀x (ψ → χ) ⊢ ∀x (φ → χ)";
    /// Binary resolution of clauses.
    Res "RES" "∀(C ∨ L), ∀(D ∨ ¬L′) ⊢ ∀(C ∨ D)σ";
    /// Substitution of equals.
    EqSub "EQ-SUB" "s = t, φ[s/x] ⊢ φ[t/x]";
    /// Transitivity of equality.
    EqTrans "EQ-TRANS" "s = t, t = u ⊢ s = u";
    /// Quantifiers and negation, all four ways.
    Qn "QN" "¬∀x φ ⊢ ∃x ¬φ";
}

/// An application of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// In the order of the schema.
    pub premises: Vec<Formula>,
    /// What follows.
    pub conclusion: Formula,
}

/// Where the letters of a schema come from.
pub trait Letters {
    /// A formula in which these variables may be free.
    fn formula(&mut self, free: &[Variable], draw: &mut Stream) -> Formula;

    /// An atom in which these variables may be free.
    fn atom(&mut self, free: &[Variable], draw: &mut Stream) -> Formula;

    /// A term in which these variables may occur.
    fn term(&mut self, free: &[Variable], draw: &mut Stream) -> Term;
}
