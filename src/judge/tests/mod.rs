//! The evaluator, told as the manual tells it: each test bears the sentence it proves. A policy and a request
//! go in, one line that says what is to be done comes out.

mod captures;
mod claims;
mod databases;
mod delegation;
mod groups;
mod layers;
mod paths;
mod persons;
mod rules;
mod selectors;
mod site;
mod times;
