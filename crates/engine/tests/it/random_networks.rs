//! Random networks by their compiled plans: [`Case`] says what is compared.

use proptest::prelude::*;
use tracefx_compile::Precision;
use tracefx_fuzz::networks::Case;

/// Four times as many cases as `PROPTEST_CASES` says, or 256: what is rare in a network takes many of them.
fn config() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { failure_persistence: None, cases: config.cases.saturating_mul(4), ..config }
}

fn bytes(n: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), n)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_plan_gives_what_the_interpreter_gives(
        is_strict in prop::bool::weighted(0.25),
        sizes in bytes(12),
        steps in prop::collection::vec(bytes(48), 1..16),
        outputs in prop::collection::vec(any::<u8>(), 1..4),
    ) {
        let precision = if is_strict { Precision::Strict } else { Precision::Fast };
        let case = Case { precision, sizes, steps, outputs };
        if let Err(problem) = case.check() {
            prop_assert!(false, "{problem}");
        }
    }
}
