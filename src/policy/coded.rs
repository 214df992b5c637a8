//! Findings with stable codes.

/// Defines an enum of findings together with their codes, so that no finding can be without one.
macro_rules! coded {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $({ $($field:ident: $type:ty),+ $(,)? })? = $code:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub(super) enum $name { $($(#[$doc])* $variant $({ $($field: $type),+ })?,)+ }

        impl $name {
            pub(super) const CODES: &'static [&'static str] = &[$($code),+];

            pub(super) fn code(&self) -> &'static str {
                match self { $($name::$variant { .. } => $code,)+ }
            }
        }
    };
}
pub(super) use coded;
