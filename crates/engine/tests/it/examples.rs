//! The examples do what they say.

#[expect(dead_code, reason = "its main function writes a file")]
#[path = "../../examples/export.rs"]
mod export;

#[test]
fn the_example_of_exporting_runs_for_two_sizes_and_is_saved() {
    let (program, told) = export::run().unwrap();
    assert!(told.contains("torch.ops.aten.gelu.default") && told.contains("torch.ops.aten.addmm.default"), "{told}");
    assert!(told.contains("3 rows give [3, 3]\n50 rows give [50, 3]\n65 rows: guard failed"), "{told}");
    let mut bytes = Vec::new();
    tracefx_pt2::save(&program, &Default::default(), &mut bytes).unwrap();
    let again = tracefx_engine::open(&bytes, &Default::default()).unwrap();
    assert_eq!(again.module.graph.to_string(), program.module.graph.to_string());
    assert_eq!(again.range_constraints, program.range_constraints);
}
