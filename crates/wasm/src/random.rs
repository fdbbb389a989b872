//! The random numbers of the engine: seeding them, and going on where they were.

use crate::Refusal;
use tracefx_core::with_default_generator;
use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = Math, js_name = random)]
    fn host_random() -> f64;
}

/// Seeds with a number of the host, which is another one each time, and gives it back: `torch.seed()`.
#[wasm_bindgen]
pub fn seed() -> u64 {
    let seed = (host_random() * (1u64 << 53) as f64) as u64;
    manual_seed(seed);
    seed
}

/// Starts the random numbers again with this seed: `torch.manual_seed()`.
///
/// ```
/// tracefx_wasm::manual_seed(7);
/// assert_eq!(tracefx_wasm::initial_seed(), 7);
/// ```
#[wasm_bindgen]
pub fn manual_seed(seed: u64) {
    with_default_generator(|it| it.manual_seed(seed));
}

/// The seed that the random numbers started with: `torch.initial_seed()`.
#[wasm_bindgen]
pub fn initial_seed() -> u64 {
    with_default_generator(|it| it.initial_seed())
}

/// The state of the random numbers, in the bytes of `torch.get_rng_state()`.
#[wasm_bindgen]
pub fn rng_state() -> Vec<u8> {
    with_default_generator(|it| it.state())
}

/// Goes on from a state that [`rng_state`] or PyTorch gave: `torch.set_rng_state()`.
///
/// # Errors
///
/// `InvalidArgument` where the bytes are no state of PyTorch's generator.
#[wasm_bindgen]
pub fn set_rng_state(state: &[u8]) -> Result<(), Refusal> {
    Ok(with_default_generator(|it| it.set_state(state))?)
}
