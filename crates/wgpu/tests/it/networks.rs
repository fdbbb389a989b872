//! Random networks by plans on the GPU: whole plans, with what crosses between it and the CPU.

use crate::steps::gpu;
use proptest::prelude::*;
use tracefx_compile::Precision;
use tracefx_exec::Accelerator;
use tracefx_fuzz::networks::Case;

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() }
}

fn bytes(n: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u64>(), n / 8).prop_map(|it| it.into_iter().flat_map(u64::to_le_bytes).collect())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_plan_gives_on_the_gpu_what_the_interpreter_gives(
        sizes in bytes(16),
        steps in prop::collection::vec(bytes(96), 1..9),
        outputs in prop::collection::vec(any::<u8>(), 1..3),
    ) {
        let Some(gpu) = gpu() else { return Ok(()) };
        let case = Case { precision: Precision::Fast, sizes, steps, outputs };
        if let Err(problem) = case.check_on(Some(gpu as &dyn Accelerator)) {
            prop_assert!(false, "{problem}");
        }
    }
}
