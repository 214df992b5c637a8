//! What is installed on a host: programs, packages, and the ways in that find the shims.

mod installation;
mod packaging;
mod ways_in;
