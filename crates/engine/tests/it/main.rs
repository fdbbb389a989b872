//! What both surfaces share, in one program: opening, running, exporting, passes and files.

mod autocast;
mod caches;
mod checkpoints;
mod corpus;
mod custom;
mod decompositions;
mod each_pass;
mod examples;
mod extensions;
mod files;
mod guards;
mod joint;
mod loops;
mod mutations;
mod opening;
mod passes;
mod plans;
mod programs;
mod random_networks;
mod random_plans;
mod reexport;
mod rules;
mod threads;
mod types;
mod unflatten;
mod verify;
