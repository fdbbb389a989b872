//! The command as a user runs it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/programs").join(name)
}

/// A path of its own in the folder for temporary files.
fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("tracefx-{}-{name}", std::process::id()))
}

fn tracefx(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tracefx")).args(args).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[track_caller]
fn stdout(args: &[&str]) -> String {
    let output = tracefx(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn inspect_shows_graph_signature_constraints_sizes_and_operators() {
    let file = fixture("digits_cnn/model.pt2");
    let report = stdout(&["inspect", text(&file)]);
    for part in
        ["aten.conv2d.default", "PARAMETER", "0.weight", "s31", "1024", "parameters", "All operators are supported."]
    {
        assert!(report.contains(part), "{part} is not in\n{report}");
    }
    let json: serde_json::Value = serde_json::from_str(&stdout(&["inspect", text(&file), "--json"])).unwrap();
    assert_eq!((json["nodes"].as_array().unwrap().len(), &json["is_supported"]), (33, &true.into()));
    assert_eq!(json["range_constraints"][0], serde_json::json!({ "symbol": "s31", "min": 1, "max": 1024 }));
}

#[test]
fn inspect_tells_what_is_missing() {
    let file = fixture("custom_op_mutating__core/model.pt2");
    assert!(stdout(&["inspect", text(&file)]).contains("the program opens but does not run"));
}

#[test]
fn onnx_writes_a_model_of_what_is_put_in_terms_of_core_operators() {
    let (file, model) = (fixture("digits_cnn/model.pt2"), scratch("digits.onnx"));
    let told: serde_json::Value =
        serde_json::from_str(&stdout(&["onnx", text(&file), text(&model), "--json"])).unwrap();
    let bytes = fs::read(&model).unwrap();
    assert_eq!((told["bytes"].as_u64(), &told["opset"]), (Some(bytes.len() as u64), &20.into()));
    // Its first field is the version of the format.
    assert_eq!(bytes[..2], [0x08, 9]);
    fs::remove_file(&model).unwrap();
    let missing = fixture("linalg_ops__core/model.pt2");
    let output = tracefx(&["onnx", text(&missing), text(&model), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let told: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(told["error"]["name"], "NotImplemented");
    assert!(told["error"]["message"].as_str().unwrap().contains("aten._linalg_eigh.default"), "{told}");
}

#[test]
fn a_converted_program_runs_as_the_original_does() {
    let (file, inputs) = (fixture("digits_cnn/model.pt2"), fixture("digits_cnn/inputs.safetensors"));
    let (converted, first, second) = (scratch("a.fxg"), scratch("1.safetensors"), scratch("2.safetensors"));
    stdout(&["convert", text(&file), text(&converted)]);
    for (program, outputs) in [(&file, &first), (&converted, &second)] {
        let args = ["run", text(program), "--inputs", text(&inputs), "--outputs", text(outputs), "--json"];
        let json: serde_json::Value = serde_json::from_str(&stdout(&args)).unwrap();
        assert_eq!(json["outputs"], 1);
    }
    assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
    let again = scratch("b.fxg");
    stdout(&["convert", text(&converted), text(&again)]);
    assert_eq!(std::fs::read(&converted).unwrap(), std::fs::read(&again).unwrap());
    [converted, first, second, again].iter().for_each(|it| std::fs::remove_file(it).unwrap());
}

#[test]
fn a_joint_program_gives_the_loss_and_the_gradients() {
    let mlp = fixture("../joint/mlp/model.pt2");
    let (joint, outputs) = (scratch("joint.fxg"), scratch("joint.safetensors"));
    stdout(&["joint", text(&mlp), text(&joint)]);
    let numbers = fixture("../joint/mlp/numbers.safetensors");
    let inputs = scratch("joint_in.safetensors");
    let all = tracefx_engine::read_tensors(&fs::read(numbers).unwrap()).unwrap();
    let given: Vec<_> = all.into_iter().filter(|(name, _)| name.starts_with("in")).collect();
    fs::write(&inputs, tracefx_engine::write_tensors(&given).unwrap()).unwrap();
    let args = ["run", text(&joint), "--inputs", text(&inputs), "--outputs", text(&outputs), "--json"];
    let json: serde_json::Value = serde_json::from_str(&stdout(&args)).unwrap();
    assert_eq!(json["outputs"], 5);
    let refused = tracefx(&["joint", text(&mlp), text(&joint), "--loss-index", "4"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("You specified that output index 4 is the loss"));
}

#[test]
fn refusals_say_what_to_do_and_leave_old_files_alone() {
    let output = tracefx(&["inspect", "/no/such/file.pt2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("help: check the path"));
    let output = tracefx(&["convert", text(&fixture("digits_cnn/model.pt2")), "/no/such/folder/model.fxg"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("help: make the folder first"));

    let old = scratch("old.fxg");
    std::fs::write(&old, b"precious").unwrap();
    let not_a_program = fixture("digits_cnn/graph.txt");
    let output = tracefx(&["--json", "convert", text(&not_a_program), text(&old)]);
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(json["error"]["code"], "FX0101");
    assert_eq!(std::fs::read(&old).unwrap(), b"precious");
    std::fs::remove_file(old).unwrap();

    let (file, wrong) = (fixture("digits_cnn/model.pt2"), fixture("cond_simple/inputs.safetensors"));
    let outputs = scratch("3.safetensors");
    let output = tracefx(&["run", text(&file), "--inputs", text(&wrong), "--outputs", text(&outputs)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!outputs.exists());
    assert_eq!(tracefx(&["inspect"]).status.code(), Some(2));
}

#[cfg(unix)]
#[test]
fn endless_files_are_refused_within_their_limit() {
    let converted = scratch("endless.fxg");
    let output = tracefx(&["convert", "/dev/zero", text(&converted)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("neither a .pt2 archive nor an .fxg file"));
    let file = fixture("digits_cnn/model.pt2");
    let outputs = scratch("endless.safetensors");
    let mut args = vec!["run", text(&file), "--inputs", "/dev/zero", "--outputs", text(&outputs)];
    args.extend(["--limit", "stream_bytes=1000000"]);
    let output = tracefx(&args);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the limit `stream_bytes` is 1000000"));
    assert!(!converted.exists() && !outputs.exists());
}

#[cfg(unix)]
#[test]
fn devices_and_links_are_written_through() {
    let file = fixture("cond_simple/model.pt2");
    stdout(&["convert", text(&file), "/dev/null", "--to", "pt2"]);
    assert!(std::os::unix::fs::FileTypeExt::is_char_device(&fs::metadata("/dev/null").unwrap().file_type()));
    let (link, target) = (scratch("link.fxg"), scratch("target.fxg"));
    fs::write(&target, b"old").unwrap();
    fs::set_permissions(&target, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    stdout(&["convert", text(&file), text(&link)]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&target).unwrap().permissions());
    assert_eq!((mode & 0o777, &fs::read(&target).unwrap()[..3] == b"old"), (0o600, false));
    [link, target].iter().for_each(|it| fs::remove_file(it).unwrap());
}

/// Where there is no GPU, it says so and does nothing.
#[test]
fn a_program_runs_on_the_gpu() {
    let (file, inputs) = (fixture("digits_cnn/model.pt2"), fixture("digits_cnn/inputs.safetensors"));
    let output = scratch("gpu.safetensors");
    let args = ["run", text(&file), "--inputs", text(&inputs), "--outputs", text(&output), "--device", "gpu"];
    let run = tracefx(&args);
    let problem = String::from_utf8_lossy(&run.stderr);
    if problem.contains("FX0706") && std::env::var_os("TRACEFX_GPU").is_none() {
        return;
    }
    assert!(run.status.success(), "{problem}");
    assert!(fs::remove_file(&output).is_ok());
    let report = stdout(&["explain", text(&file), "--inputs", text(&inputs), "--device", "gpu"]);
    assert!(report.contains(" steps on the device, 0 on the CPU; "), "{report}");
    let profile = ["profile", text(&file), "--inputs", text(&inputs), "--device", "gpu", "--repeat", "2"];
    let report = stdout(&profile);
    assert!(report.contains("% of peak") && report.contains(" GB/s, as measured now"), "{report}");
    let report: serde_json::Value = serde_json::from_str(&stdout(&[&profile[..], &["--json"]].concat())).unwrap();
    assert!(
        report["device"]["flops"].as_f64() > Some(1e6) && report["device"]["bytes"].as_f64() > Some(1e6),
        "{report}"
    );
    assert!(report["steps"].as_array().unwrap().iter().all(|it| it["milliseconds"].as_f64() > Some(0.0)), "{report}");
    assert_eq!(tracefx(&["explain", text(&file), "--inputs", text(&inputs), "--device", "tpu"]).status.code(), Some(2));
    // Results to the bit are no GPU's.
    let strict = ["explain", text(&file), "--inputs", text(&inputs), "--device", "gpu", "--precision", "strict"];
    assert_eq!(tracefx(&strict).status.code(), Some(1));
}

/// A machine without a driver of Vulkan.
#[cfg(target_os = "linux")]
#[test]
fn a_missing_gpu_is_refused_with_what_to_do() {
    let (file, inputs) = (fixture("digits_cnn/model.pt2"), fixture("digits_cnn/inputs.safetensors"));
    let args = ["explain", text(&file), "--inputs", text(&inputs), "--device", "gpu"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracefx"));
    command.args(args).env("VK_DRIVER_FILES", "/no/such/file").env("VK_ICD_FILENAMES", "/no/such/file");
    let output = command.output().unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(problem.contains("FX0706") && problem.contains("help: install a driver of Vulkan"), "{problem}");
}

#[test]
fn a_session_answers_goes_on_after_a_refusal_and_keeps_state() {
    let results = scratch("4.safetensors");
    let requests = [
        serde_json::json!({ "do": "run" }),
        serde_json::json!({ "do": "open", "file": fixture("digits_cnn/graph.txt") }),
        serde_json::json!({ "do": "open", "file": fixture("digits_cnn/model.pt2") }),
        serde_json::json!({ "do": "start" }),
        serde_json::json!({ "do": "run", "data": fixture("digits_cnn/inputs.safetensors"), "inputs": [{ "tensor": "in0" }], "results": results }),
        serde_json::json!({ "do": "state", "names": ["0.bias"], "results": results }),
    ];
    let mut child = Command::new(env!("CARGO_BIN_EXE_tracefx"))
        .arg("session")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    requests.iter().for_each(|it| writeln!(stdin, "{it}").unwrap());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let replies: Vec<serde_json::Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(replies.len(), requests.len());
    assert_eq!(replies[0]["error"]["code"], "FX0702");
    assert_eq!(replies[1]["error"]["code"], "FX0101");
    assert!(replies[2]["ok"]["graph"].as_str().unwrap().starts_with("graph():"));
    let logits = serde_json::json!({ "tensor": "out0", "dtype": "float32", "size": [4, 10], "stride": [10, 1] });
    assert_eq!(replies[4]["ok"]["outputs"], serde_json::json!([logits]));
    assert!(replies[5].get("ok").is_some());
    std::fs::remove_file(results).unwrap();
}

#[test]
fn bench_times_the_plan_and_the_interpreter_on_one_thread_and_on_several() {
    let (file, inputs) = (fixture("digits_cnn/model.pt2"), fixture("digits_cnn/inputs.safetensors"));
    let args = ["bench", text(&file), "--inputs", text(&inputs), "--repeat", "4"];
    let json: serde_json::Value = serde_json::from_str(&stdout(&[&args[..], &["--json"]].concat())).unwrap();
    assert_eq!(json["inputs"], "given");
    let rows = json["rows"].as_array().unwrap();
    let threads: Vec<_> =
        rows.iter().map(|it| (it["mode"].as_str().unwrap(), it["threads"].as_u64().unwrap())).collect();
    assert_eq!((threads[0], threads[threads.len() / 2]), (("plan", 1), ("interpret", 1)));
    for row in rows {
        assert_eq!((&row["runs"], &row["device"]), (&4.into(), &"cpu".into()));
        let times = ["fastest", "p10", "median", "p90"].map(|it| row[it].as_f64().unwrap());
        assert!(times[0] > 0.0 && times.is_sorted(), "{row}");
    }
    let told = stdout(&[&args[..], &["--threads", "1"]].concat());
    assert_eq!(told.lines().count(), 3, "{told}");
    assert!(told.starts_with("plan, 1 thread") && told.contains("\ninterpret, 1 thread"), "{told}");
}

#[test]
fn bench_asks_for_inputs_where_a_call_decides_sizes() {
    let output = tracefx(&["bench", text(&fixture("digits_cnn/model.pt2"))]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && told.contains("--inputs FILE"), "{told}");
}

#[test]
fn doctor_tells_what_there_is_and_a_cure_for_what_is_missing() {
    let json: serde_json::Value = serde_json::from_str(&stdout(&["doctor", "--json"])).unwrap();
    assert!(json.as_object().unwrap().keys().eq(tracefx_engine::command::FINDINGS), "{json}");
    assert_eq!((&json["command"], &json["is_ready"]), (&"native".into(), &true.into()));
    assert!(json["threads"].as_u64() >= Some(1) && !json["vectors"].as_str().unwrap().is_empty());
    for it in json["missing"].as_array().unwrap() {
        assert!(["of", "what", "cure"].iter().all(|key| !it[*key].as_str().unwrap().is_empty()), "{it}");
    }
    let told = stdout(&["doctor"]);
    for missing in json["missing"].as_array().unwrap() {
        assert!(told.contains(missing["cure"].as_str().unwrap()), "{told}");
    }
}

#[test]
fn completions_know_every_verb_and_option() {
    for shell in tracefx_engine::command::SHELLS {
        let script = stdout(&["completions", shell]);
        // How the script of the shell spells them: the words alone stand in the texts about others, too.
        for name in tracefx_engine::command::VERBS.iter().map(|it| it.name) {
            let spelled = match *shell {
                "bash" => format!("tracefx,{name})"),
                "zsh" => format!("({name})"),
                "fish" => format!("-a \"{name}\""),
                _ => format!("'tracefx;{name}'"),
            };
            assert!(script.contains(&spelled), "{name} is not in the script of {shell}");
        }
        for name in tracefx_engine::command::OPTIONS.iter().map(|it| it.name) {
            let spelled = if *shell == "fish" { format!("-l {name}") } else { format!("--{name}") };
            assert!(script.contains(&spelled), "--{name} is not in the script of {shell}");
        }
    }
}

#[test]
fn what_is_piped_has_no_colours() {
    let output = tracefx(&["nothing"]);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "error: there is no verb nothing\nhelp: tracefx --help shows what there is\n"
    );
}
