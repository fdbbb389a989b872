//! Random networks by their compiled plans: [`Case`] says what is compared.

use proptest::prelude::*;
use tracefx_compile::Precision;
use tracefx_fuzz::networks::Case;

/// As many cases as `PROPTEST_CASES` says, or some: what is rare in a network takes many of them.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() }
}

fn bytes(n: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u64>(), n / 8).prop_map(|it| it.into_iter().flat_map(u64::to_le_bytes).collect())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_plan_gives_what_the_interpreter_gives(
        is_strict in prop::bool::weighted(0.25),
        sizes in bytes(16),
        steps in prop::collection::vec(bytes(96), 1..9),
        outputs in prop::collection::vec(any::<u8>(), 1..3),
    ) {
        let precision = if is_strict { Precision::Strict } else { Precision::Fast };
        let case = Case { precision, sizes, steps, outputs };
        if let Err(problem) = case.check() {
            prop_assert!(false, "{problem}");
        }
    }
}
