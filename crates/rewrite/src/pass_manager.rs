//! Running passes in order: constraints decide it, and checks run in between.

use crate::{Pass, PassResult};
use std::collections::VecDeque;
use std::fmt;
use tracefx_core::{Code, Diagnostic, Result};
use tracefx_ir::GraphModule;

/// A rule about the order of two passes: whether the first may run before the second.
pub type PassConstraint<'p> = Box<dyn Fn(&dyn Pass, &dyn Pass) -> bool + 'p>;

/// What must hold of a module between passes.
pub type ModuleCheck<'p> = Box<dyn Fn(&GraphModule) -> Result<()> + 'p>;

/// The pass of one name must run before that of another: `this_before_that_pass_constraint`.
pub fn this_before_that_pass_constraint(this: &str, that: &str) -> PassConstraint<'static> {
    let (this, that) = (this.to_owned(), that.to_owned());
    Box::new(move |a, b| a.name() != that || b.name() != this)
}

/// A pass that is a closure.
pub struct FnPass<F> {
    name: String,
    run: F,
}

impl<F: Fn(&mut GraphModule) -> Result<PassResult>> FnPass<F> {
    /// A pass of this name.
    pub fn new(name: &str, run: F) -> Self {
        FnPass { name: name.to_owned(), run }
    }
}

impl<F> fmt::Debug for FnPass<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnPass").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<F: Fn(&mut GraphModule) -> Result<PassResult>> Pass for FnPass<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&self, module: &mut GraphModule) -> Result<PassResult> {
        (self.run)(module)
    }
}

/// Runs passes in an order that constraints decide, until nothing changes or a number of times:
/// `torch.fx.passes.infra.pass_manager.PassManager`.
///
/// ```
/// use tracefx_ir::{Arg, Graph, GraphModule};
/// use tracefx_ops::registry;
/// use tracefx_rewrite::{CsePass, DeadCodeElimination, DeadCodeOptions, PassManager, this_before_that_pass_constraint};
///
/// let mut graph = Graph::new();
/// let x = Arg::Node(graph.placeholder("x"));
/// let [a, b] = [(), ()].map(|()| graph.call_function("torch.relu", vec![x.clone()], vec![]));
/// graph.call_function("torch.add", vec![Arg::Node(a), Arg::Node(b)], vec![]);
/// graph.output(Arg::Node(b));
/// let mut module = GraphModule::new(graph);
///
/// let mut manager = PassManager::new();
/// manager.add_pass(DeadCodeElimination { registry: registry(), options: DeadCodeOptions::default() });
/// manager.add_pass(CsePass::new(registry()));
/// manager.add_constraint(this_before_that_pass_constraint("CSEPass", "eliminate_dead_code"));
/// assert!(manager.run(&mut module).unwrap().modified);
/// assert_eq!(module.graph.len(), 3);
/// ```
#[derive(Default)]
pub struct PassManager<'p> {
    passes: Vec<Box<dyn Pass + 'p>>,
    constraints: Vec<PassConstraint<'p>>,
    checks: Vec<ModuleCheck<'p>>,
    /// How often the passes run at most, where they go on changing something; once where nothing is said.
    pub steps: Option<usize>,
    /// Whether the checks run after each pass as well, and not before the first alone.
    pub run_checks_after_each_pass: bool,
    is_ordered: bool,
}

impl fmt::Debug for PassManager<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassManager").field("passes", &self.names()).field("steps", &self.steps).finish_non_exhaustive()
    }
}

impl<'p> PassManager<'p> {
    /// A manager without passes.
    pub fn new() -> Self {
        PassManager::default()
    }

    /// Adds a pass, to run after the others unless a constraint says otherwise.
    pub fn add_pass(&mut self, pass: impl Pass + 'p) {
        self.passes.push(Box::new(pass));
        self.is_ordered = false;
    }

    /// Adds a constraint.
    pub fn add_constraint(&mut self, constraint: PassConstraint<'p>) {
        self.constraints.push(constraint);
        self.is_ordered = false;
    }

    /// Adds a check, which runs before the passes and, where [`PassManager::run_checks_after_each_pass`] says so, after each.
    pub fn add_checks(&mut self, check: impl Fn(&GraphModule) -> Result<()> + 'p) {
        self.checks.push(Box::new(check));
    }

    /// The names of the passes, in order.
    pub fn names(&self) -> Vec<&str> {
        self.passes.iter().map(|it| it.name()).collect()
    }

    /// Refuses an order of the passes that a constraint forbids.
    ///
    /// # Errors
    /// `PassFailed`, naming the first two passes that stand the wrong way round.
    pub fn validate_constraints(&self) -> Result<()> {
        for (at, a) in self.passes.iter().enumerate() {
            for (other, b) in self.passes.iter().enumerate().skip(at + 1) {
                if self.may_precede(&**a, &**b) {
                    continue;
                }
                let (a, b) = (a.name(), b.name());
                let what = format!(
                    "pass schedule constraint violated: `{a}` at index {at} stands before `{b}` at index {other}"
                );
                return Err(
                    Diagnostic::new(Code::PassFailed, what).help("solve_constraints() finds an order that holds them")
                );
            }
        }
        Ok(())
    }

    /// Puts the passes into an order that holds the constraints, near to the one that they have.
    ///
    /// # Errors
    /// `PassFailed`, naming the passes that would have to run before each other.
    pub fn solve_constraints(&mut self) -> Result<()> {
        let n = self.passes.len();
        let mut after = vec![Vec::new(); n];
        let mut n_before = vec![0; n];
        for (a, waiting) in n_before.iter_mut().enumerate() {
            for b in (0..n).filter(|&b| b != a && !self.may_precede(&*self.passes[a], &*self.passes[b])) {
                after[b].push(a);
                *waiting += 1;
            }
        }
        let mut ready: VecDeque<usize> = (0..n).filter(|&it| n_before[it] == 0).collect();
        let mut order = Vec::new();
        while let Some(pass) = ready.pop_front() {
            order.push(pass);
            for &next in &after[pass] {
                n_before[next] -= 1;
                if n_before[next] == 0 {
                    ready.push_back(next);
                }
            }
        }
        if order.len() < n {
            let names = (0..n).filter(|&it| n_before[it] > 0).map(|it| self.passes[it].name());
            let what = format!(
                "Circular dependency detected within the following passes: [{}]",
                names.collect::<Vec<_>>().join(", ")
            );
            return Err(Diagnostic::new(Code::PassFailed, what).help("take one of the constraints between them away"));
        }
        let mut passes: Vec<Option<Box<dyn Pass + 'p>>> = self.passes.drain(..).map(Some).collect();
        self.passes = order.into_iter().filter_map(|it| passes[it].take()).collect();
        self.is_ordered = true;
        Ok(())
    }

    /// Runs the passes. What the last round left out is in the result.
    ///
    /// # Errors
    /// As [`PassManager::solve_constraints`]; `PassFailed` where a pass or a check fails, naming the pass, those that ran
    /// before it, and the problem. What had changed by then stays changed.
    pub fn run(&mut self, module: &mut GraphModule) -> Result<PassResult> {
        if !self.is_ordered {
            self.solve_constraints()?;
        }
        self.check(module)?;
        let mut res = PassResult::default();
        for _ in 0..self.steps.unwrap_or(1) {
            let mut modified = false;
            res.left_out.clear();
            for (at, pass) in self.passes.iter().enumerate() {
                let result = pass.run(module).and_then(|result| {
                    if self.run_checks_after_each_pass {
                        self.check(module)?;
                    }
                    Ok(result)
                });
                let result = result.map_err(|problem| self.failed(at, &problem))?;
                modified |= result.modified;
                res.left_out.extend(result.left_out);
            }
            res.modified |= modified;
            if !modified {
                break;
            }
        }
        Ok(res)
    }

    fn may_precede(&self, a: &dyn Pass, b: &dyn Pass) -> bool {
        self.constraints.iter().all(|it| it(a, b))
    }

    fn check(&self, module: &GraphModule) -> Result<()> {
        self.checks.iter().try_for_each(|it| it(module))
    }

    fn failed(&self, at: usize, problem: &Diagnostic) -> Diagnostic {
        let names = self.names();
        let what = format!(
            "An error occurred when running the '{}' pass after the following passes: [{}]",
            names[at],
            names[..at].join(", ")
        );
        Diagnostic::new(Code::PassFailed, what).note(problem.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use tracefx_ir::Graph;

    fn pass(name: &str, n_changes: usize) -> impl Pass + use<> {
        let left = Cell::new(n_changes);
        FnPass::new(name, move |_: &mut GraphModule| {
            let modified = left.get() > 0;
            left.set(left.get().saturating_sub(1));
            Ok(PassResult::new(modified))
        })
    }

    fn module() -> GraphModule {
        GraphModule::new(Graph::new())
    }

    #[test]
    fn constraints_decide_the_order() {
        let mut manager = PassManager::new();
        ["a", "b", "c"].into_iter().for_each(|it| manager.add_pass(pass(it, 0)));
        manager.add_constraint(this_before_that_pass_constraint("c", "a"));
        assert_eq!(manager.validate_constraints().unwrap_err().code(), Code::PassFailed);
        manager.run(&mut module()).unwrap();
        assert_eq!(manager.names(), ["b", "c", "a"]);
        manager.validate_constraints().unwrap();
    }

    #[test]
    fn a_circle_of_constraints_is_refused_by_name() {
        let mut manager = PassManager::new();
        ["a", "b", "c"].into_iter().for_each(|it| manager.add_pass(pass(it, 0)));
        manager.add_constraint(this_before_that_pass_constraint("a", "b"));
        manager.add_constraint(this_before_that_pass_constraint("b", "a"));
        let problem = manager.run(&mut module()).unwrap_err();
        assert!(problem.message().ends_with("within the following passes: [a, b]"), "{problem}");
        assert_eq!(manager.names().len(), 3);
    }

    #[test]
    fn passes_run_until_nothing_changes() {
        let runs = RefCell::new(0);
        let mut manager = PassManager { steps: Some(10), ..PassManager::new() };
        manager.add_pass(pass("changes", 3));
        manager.add_pass(FnPass::new("counts", |_: &mut GraphModule| {
            *runs.borrow_mut() += 1;
            Ok(PassResult::default())
        }));
        assert!(manager.run(&mut module()).unwrap().modified);
        drop(manager);
        assert_eq!(*runs.borrow(), 4);
    }

    #[test]
    fn a_failure_names_the_passes_before() {
        let mut manager = PassManager { run_checks_after_each_pass: true, ..PassManager::new() };
        manager.add_pass(pass("good", 0));
        manager.add_pass(FnPass::new("adds", |module: &mut GraphModule| {
            module.graph.placeholder("x");
            Ok(PassResult::new(true))
        }));
        manager.add_checks(|module| match module.graph.len() {
            0 => Ok(()),
            _ => Err(Diagnostic::new(Code::VerifyFailed, "the graph is not empty")),
        });
        let problem = manager.run(&mut module()).unwrap_err().to_string();
        assert!(problem.contains("running the 'adds' pass after the following passes: [good]"), "{problem}");
        assert!(problem.contains("the graph is not empty"), "{problem}");
    }
}
