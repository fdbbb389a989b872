//! The bytes of a plan are refused with a typed error, or are a valid plan, which is written and read as it is.

use tracefx_core::{Code, Diagnostic};
use tracefx_plan::Plan;

pub(crate) fn check(input: &[u8]) {
    // The numbers of a plan that is valid may be larger than any memory: what it computes is not asked here.
    match Plan::from_bytes(input) {
        Ok(plan) => {
            let bytes = plan.to_bytes().unwrap();
            let again = Plan::from_bytes(&bytes).unwrap();
            assert_eq!(again.to_string(), plan.to_string());
            assert_eq!(again.to_bytes().unwrap(), bytes);
        }
        Err(problem) => is_told(&problem),
    }
    match Plan::from_outline(input) {
        Ok(plan) => assert!(!plan.to_string().is_empty()),
        Err(problem) => is_told(&problem),
    }
}

fn is_told(problem: &Diagnostic) {
    let codes = [Code::WireMalformed, Code::WireVersion, Code::GraphInvalid, Code::ViewOutOfBounds];
    assert!(codes.contains(&problem.code()), "{problem}");
}
