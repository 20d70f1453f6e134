//! The library of programs: section 9, in the language itself.

use std::rc::Rc;

use crate::error::Source;
use crate::literal::Order;

/// The text that every program begins with.
pub fn source(order: Order) -> Rc<Source> {
    let concat = match order {
        Order::Literal => "s p q (t p q z)",
        Order::FirstDigitFirst => "t p q (s p q z)",
    };
    let text = include_str!("library.ill").replace("CONCATENATION", concat);
    Source::new("<library>", text.into_bytes())
}
