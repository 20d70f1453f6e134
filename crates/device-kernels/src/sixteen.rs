//! The numbers of sixteen bits that tensor cores multiply.

/// A number of sixteen bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sixteen {
    /// bf16: the range of f32, and eight binary digits.
    Bf16,
    /// IEEE 754's binary16: eleven binary digits, from 2⁻²⁴ to 65,504. What is larger becomes infinite and what is smaller
    /// nothing, so that gradients must be scaled before they are multiplied.
    F16,
}

impl Sixteen {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Bf16, Self::F16];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }

    /// The nearest of these numbers, ties to the even one.
    pub fn round(self, x: f32) -> f32 {
        match self {
            Self::Bf16 => half::bf16::from_f32(x).to_f32(),
            Self::F16 => half::f16::from_f32(x).to_f32(),
        }
    }
}
