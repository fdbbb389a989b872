use crate::case::{Case, Check, same_graphs};
use tracefx_ops::registry;
use tracefx_rewrite::{CseOptions, CsePass, Pass};

/// Calls that compute the same, merged in place. PyTorch makes a new graph of what is left, so what it says of a graph in
/// which nothing changed holds of any.
pub(crate) fn check(case: &Case) -> Check {
    let mut module = case.module();
    let banned = case.option("banned_ops").as_array().expect("a list of operators");
    let banned_ops = banned.iter().map(|it| it.as_str().expect("a name").to_owned()).collect();
    let pass = CsePass { registry: registry(), options: CseOptions { banned_ops } };
    let result = pass.call(&mut module).map_err(|it| it.to_string())?;
    if case.get("modified").as_bool() != Some(result.modified) {
        return Err(format!("modified is {}", result.modified));
    }
    same_graphs(&module, case.get("after"))
}
