//! A command that is launched below itself: a wrapper that finds itself where it looks for the program, or
//! two that find each other. Some of it is meant; what never ends is not.

use std::path::Path;

use crate::{
    commands::{refusals, run::launch_options::LaunchOptions},
    error::Error,
    launch::{depth::Depth, program::Program},
};

/// How deep below itself the command will be, or that it has gone far enough.
pub(in crate::commands) fn deeper(
    options: &LaunchOptions,
    depth: &Depth,
    program: &Program,
) -> Result<Depth, Error> {
    let name = Path::new(&options.command).file_name().unwrap_or(&options.command);
    depth.clone().below(name).map_err(|too_deep| refusals::too_deep(name, &too_deep, program))
}
