//! Programs as the modules that they were exported from give what they give flat.

use std::path::Path;
use tracefx_engine::{Library, Limits, open};

#[test]
fn modules_give_what_the_program_gives() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/unflattened");
    let mut n_programs = 0;
    for folder in std::fs::read_dir(root).unwrap().map(|it| it.unwrap().path()).filter(|it| it.is_dir()) {
        for file in ["model.pt2", "model_core.pt2"] {
            let Ok(bytes) = std::fs::read(folder.join(file)) else { continue };
            let program = open(&bytes, &Limits::default()).unwrap();
            let inputs = || program.clone().example_inputs.expect("recorded programs have inputs");
            let library = Library::default();
            let (flat, modules) = (
                library.runner(&program).unwrap(),
                library.runner(&program.unflattened(library.registry()).unwrap()).unwrap(),
            );
            // Twice, since some change their buffers.
            for _ in 0..2 {
                let (wanted, given) = (flat.run(&inputs()).unwrap(), modules.run(&inputs()).unwrap());
                assert_eq!(format!("{given:?}"), format!("{wanted:?}"), "{}", folder.display());
            }
            n_programs += 1;
        }
    }
    assert_eq!(n_programs, 35);
}
