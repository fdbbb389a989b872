//! Matching, rewriting and passes: those of `torch.fx`, on graphs of any dialect.
//!
//! A pass is a function of a [`GraphModule`](tracefx_ir::GraphModule), which it changes in place. Nothing here has kernels:
//! what needs numbers takes an [`Executor`](tracefx_exec::Executor).
#![forbid(unsafe_code)]

mod const_fold;
mod constant_fold;
mod cse;
mod dead_code;
pub mod devices;
mod effects;
mod fuse_batch_norm;
mod fuse_permute_linear;
mod fuser;
mod graph_drawer;
mod graph_manipulation;
mod graph_transform_observer;
mod impure;
mod in_place;
mod matcher;
mod merge_matmul;
mod net_min;
mod normalize;
mod optimization;
mod order;
mod partitioner;
mod pass;
mod pass_manager;
mod reinplace;
mod replace;
mod replace_with_hop;
mod rules;
mod runtime_assert;
mod source_matcher;
mod split_by_tags;
mod split_module;
mod splitter;
mod switches;
mod tensor_meta;
mod tools_common;
mod topological;
mod verify;
mod write_order;

pub use const_fold::{FoldRules, FoldedGraph, get_unique_attr_name_in_module, split_const_subgraphs};
pub use constant_fold::{ConstantFoldOptions, Constants, FoldConstraint, constant_fold, take_constants};
pub use cse::{CSE_BANNED_OPS, CseOptions, CsePass};
pub use dead_code::{DeadCodeElimination, DeadCodeOptions, eliminate_dead_code};
pub use fuse_batch_norm::fuse_batch_norm;
pub use fuse_permute_linear::linear_permute_fusion;
pub use fuser::{FusedModule, erase_nodes, fuse_as_graphmodule, fuse_by_partitions, insert_subgm, validate_partition};
pub use graph_drawer::{DotGraph, DrawOptions, FxGraphDrawer};
pub use graph_manipulation::{
    SizeBytes, get_size_of_all_nodes, get_size_of_all_nodes_with, get_size_of_node, get_tensor_meta,
    replace_target_nodes_with,
};
pub use graph_transform_observer::GraphTransformObserver;
pub use impure::{Impurity, RANDOM_FUNCTIONS, SIDE_EFFECT_FUNCTIONS};
pub use in_place::IN_PLACE_OPERATORS;
pub use matcher::{
    ANY_OF, ConstantValue, Constraint, InternalMatch, MatcherOptions, Miss, OPTIONAL, SubgraphMatcher,
    SubgraphMatcherWithNameNodeMap,
};
pub use merge_matmul::merge_matmul;
pub use net_min::{MinimizerOptions, TraverseMethod, minimize, minimize_submodule};
pub use normalize::{
    AnnotateOptions, AnnotateTypesWithSchema, ArgumentType, ArgumentTypes, CallArguments, NORMALIZATION_SCHEMAS,
    NormalizeArgs, NormalizeArgsOptions, NormalizeOperators, NormalizeOptions, Normalized, Normalizer,
    annotate_getitem_nodes,
};
pub use optimization::fuse;
pub use partitioner::{CapabilityBasedPartitioner, Partition, PartitionerOptions};
pub use pass::{LeftOut, Pass, PassResult};
pub use pass_manager::{FnPass, ModuleCheck, PassConstraint, PassManager, this_before_that_pass_constraint};
pub use reinplace::reinplace;
pub use replace::{
    MatchFilter, ReplaceOptions, ReplacedPatterns, Replacement, ReplacementCallback, RewriteContext, replace_matches,
    replace_pattern, replace_pattern_with_filters,
};
pub use replace_with_hop::{replace_autocast_with_hop, replace_set_grad_with_hop};
pub use rules::{Fired, Rule, RuleSet, RuleTrace};
pub use runtime_assert::{DeferredAsserts, InsertedAsserts, insert_deferred_runtime_asserts};
pub use source_matcher::{SourcePartition, SourcePartitions, check_subgraphs_connected, get_source_partitions};
pub use split_by_tags::split_by_tags;
pub use split_module::{SplitModule, SplitOptions, split_module};
pub use splitter::{
    AccNodes, NodeEvent, SplitPlan, Splitter, SplitterOptions, Subgraph, find_acc_fusions, find_acc_nodes,
    move_non_tensor_nodes_on_boundary,
};
pub use switches::SWITCHES;
pub use tools_common::{get_acc_ops_name, get_node_target};
pub use topological::{PRIORITIZED, legalize_graph, stable_topological_sort, topo_sort};
pub use verify::VerifyOptions;
