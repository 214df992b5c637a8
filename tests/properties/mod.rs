//! What holds for every policy and every request, tried with many that nobody thought of.

mod admission;
mod agreement;
mod delegation;
mod line;
mod mutations;
mod paths;
mod printing;
mod request;
mod skimming;
