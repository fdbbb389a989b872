"""Programs are opened, looked at, changed, run and saved."""

import io
import pickle

import numpy
import pytest
import tracefx
from conftest import FIXTURES, arrays

RECORDED = sorted(it.parent.name for it in (FIXTURES / "programs").glob("*/graph.txt"))


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_program_prints_as_pytorch_prints_it(folder, name):
    program = tracefx.load(folder(name) / "model.pt2")
    assert str(program.graph) == (folder(name) / "graph.txt").read_text().rstrip("\n")


def test_a_run_gives_pytorchs_numbers_from_paths_bytes_and_files(digits):
    path, image, expected = digits
    for source in (path, str(path), path.read_bytes(), path.open("rb")):
        given = tracefx.load(source).run(image)
        numpy.testing.assert_allclose(given.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_a_program_says_what_it_is_made_of(digits):
    program = tracefx.load(digits[0])
    signature = program.graph_signature
    assert signature.user_inputs == ("input",) and len(signature.user_outputs) == 1
    assert set(signature.parameters) | set(signature.buffers) == set(program.state_dict)
    first = signature.input_specs[0]
    assert (first.kind, signature.inputs_to_parameters[first.name]) == ("PARAMETER", first.target)
    assert "PARAMETER" in str(signature) and program.torch_version.startswith("2.")
    report = program.inspect()
    assert report["is_supported"] and {it["support"] for it in report["ops"]} <= {"kernel", "view", "decomposition"}


def test_nodes_have_the_members_of_torch_fx(digits):
    graph = tracefx.load(digits[0]).graph
    conv = graph.find_nodes(op="call_function", target="torch.ops.aten.conv2d.default")[0]
    assert (conv.op, conv.name, str(conv)) == ("call_function", "conv2d", "conv2d")
    x, weight, bias = conv.args[:3]
    assert x.op == "placeholder" and conv in x.users and conv.all_input_nodes == [x, weight, bias]
    meta = conv.meta["val"]
    assert (str(meta.dtype), meta.shape[1:], str(meta.device)) == ("torch.float32", (12, 8, 8), "cpu")
    assert meta.dtype == tracefx.Constant("torch.float32") and hash(conv) == hash(x.users[0])
    assert conv.next.prev == conv and conv.format_node().startswith("%conv2d : [num_users=1]")
    assert len(graph) == len(graph.nodes) and graph.output_node() == graph.nodes[-1]


def test_an_edit_changes_what_runs_and_what_is_saved(digits, tmp_path):
    path, image, expected = digits
    program = tracefx.load(path)
    for relu in program.graph.find_nodes(op="call_function", target="torch.ops.aten.relu.default"):
        with program.graph.inserting_after(relu):
            clamped = program.graph.call_function("torch.ops.aten.clamp.default", (relu, 0.0, 0.5))
        relu.replace_all_uses_with(clamped)
        clamped.update_arg(0, relu)
    program.graph.lint()
    changed = program.run(image).numpy()
    assert not numpy.allclose(changed, expected)
    for name in ("model.pt2", "model.fxg"):
        program.save(tmp_path / name)
        again = tracefx.load(tmp_path / name)
        assert str(again.graph) == str(program.graph)
        assert (again.run(image).numpy() == changed).all()
    stream = io.BytesIO()
    program.save(stream)
    assert stream.getvalue() == program.to_bytes()


def test_nodes_are_erased_and_the_outputs_signature_follows(digits):
    path, image, _ = digits
    program = tracefx.load(path)
    (output,) = program.graph.output_node().args[0]
    before = output.args[0]
    output.replace_all_uses_with(before)
    with pytest.raises(tracefx.errors.GraphError) as refused:
        program.graph.erase_node(before)
    assert (refused.value.code, refused.value.name) == ("FX0202", "NodeHasUsers")
    program.graph.erase_node(output)
    assert program.graph_signature.user_outputs == (before.name,)
    assert program.run(image).shape[0] == image.shape[0]
    with pytest.raises(tracefx.errors.GraphError, match="erased"):
        output.name


def test_arguments_of_nodes_are_values_of_python(digits):
    graph = tracefx.load(digits[0]).graph
    x = graph.find_nodes(op="placeholder")[-1]
    args = (x, [1, -2], (None, True, 1.5), {"key": [x]}, slice(x, None, 2), tracefx.Constant("torch.float16"), "text", ..., 2 + 1j)
    with graph.inserting_after(x):
        node = graph.create_node("call_function", "mylib.call", args, {"device": tracefx.Constant("cuda:1")}, "called")
    assert node.args == args and node.kwargs == {"device": tracefx.Constant("cuda:1")} and node.name == "called"
    assert repr(node.kwargs["device"]) == "device(type='cuda', index=1)"
    node.args, node.kwargs, node.target = (x,), {"out": None}, "mylib.other"
    assert (node.args, node.kwargs, node.target) == ((x,), {"out": None}, "mylib.other")
    other = tracefx.load(digits[0]).graph
    with pytest.raises(tracefx.errors.GraphError, match="another program"):
        other.call_function("mylib.call", (x,))
    with pytest.raises(tracefx.errors.GraphError, match="no argument of a node"):
        graph.call_function("mylib.call", (object(),))


def test_passes_run_by_name_and_leave_the_program_as_it_was_where_they_refuse(digits):
    path, image, expected = digits
    program = tracefx.load(path)
    last = program.graph.output_node()
    with program.graph.inserting_before(last):
        program.graph.call_function("torch.ops.aten.relu.default", (last.args[0][0],))
    n = len(program.graph)
    assert program.graph.eliminate_dead_code() and len(program.graph) == n - 1
    assert "modified" in program.apply("CSEPass")
    text = str(program.graph)
    with pytest.raises(tracefx.errors.UsageError, match="there is no pass `nothing`"):
        program.apply("nothing")
    with pytest.raises(tracefx.errors.UsageError, match="unknown field"):
        program.apply("CSEPass", no_such_option=1)
    assert str(program.graph) == text
    numpy.testing.assert_allclose(program.run(image).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_decomposed_programs_give_the_same(digits):
    path, image, expected = digits
    program = tracefx.load(path)
    core = program.run_decompositions()
    assert not core.graph.find_nodes(op="call_function", target="torch.ops.aten.conv2d.default")
    assert program.graph.find_nodes(op="call_function", target="torch.ops.aten.conv2d.default")
    numpy.testing.assert_allclose(core.run(image).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_nested_inputs_and_outputs(folder):
    here = folder("nested_io")
    program = tracefx.load(here / "model.pt2")
    (args, kwargs) = program.example_inputs
    given = program.run(*args, **kwargs)

    def leaves(value):
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (tuple, list)):
            return [leaf for it in value for leaf in leaves(it)]
        return [value]

    expected = arrays(here / "expected.safetensors")
    flat = leaves(given)
    for name, array in expected.items():
        numpy.testing.assert_allclose(flat[int(name[3:])].numpy(), array, rtol=1e-5)
    with pytest.raises(tracefx.errors.InputError) as refused:
        program.run(*args[1:], **kwargs)
    assert refused.value.name == "InputStructure" and "args should have" in str(refused.value)


def test_buffers_keep_their_values_in_one_module_alone(folder):
    program = tracefx.load(folder("conv_bn_relu_train") / "model.pt2")
    args, kwargs = program.example_inputs
    first, second = program.module(), program.module(mode="interpret", precision="strict")
    name = next(it for it in program.state_dict if it.endswith("running_mean"))
    before = program.state_dict[name].numpy().copy()
    first(*args, **kwargs)
    assert not (first.state_dict()[name].numpy() == before).all()
    assert (second.state_dict()[name].numpy() == before).all() and (program.state_dict[name].numpy() == before).all()


def test_opening_an_untrusted_file_runs_nothing(tmp_path):
    class Hostile:
        def __reduce__(self):
            return (open, (str(tmp_path / "touched"), "w"))

    for data in (pickle.dumps(Hostile()), b"", b"PK\x05\x06" + b"\0" * 18, b"<html>"):
        with pytest.raises(tracefx.errors.ArchiveError) as refused:
            tracefx.load(data)
        assert refused.value.code.startswith("FX01")
    assert not (tmp_path / "touched").exists()


def test_limits_have_names(digits):
    with pytest.raises(tracefx.errors.ArchiveError, match="archive_bytes"):
        tracefx.load(digits[0], limits={"archive_bytes": 100})
    with pytest.raises(tracefx.errors.UsageError, match="there is no limit"):
        tracefx.load(digits[0], limits={"bytes": 100})
    with pytest.raises(tracefx.errors.UsageError) as refused:
        tracefx.load("no/such/file.pt2")
    assert (refused.value.name, refused.value.help) == ("Io", "check the path")


def test_every_code_has_an_exception_that_can_be_pickled():
    from tracefx._tracefx import _codes

    codes = _codes()
    assert len(codes) > 40
    for code, name, class_name in codes:
        error = getattr(tracefx.errors, class_name)("text", code, name, "message", "node", None, ["note"], "help")
        again = pickle.loads(pickle.dumps(error))
        assert isinstance(again, tracefx.FxError) and (str(again), again.code, again.help) == ("text", code, "help")
    assert issubclass(tracefx.errors.NotImplementedError, NotImplementedError)


def test_exceptions_say_where_and_what_to_do(digits):
    path, image, _ = digits
    with pytest.raises(tracefx.errors.InputError) as refused:
        tracefx.load(path).run(image[:, :, :4])
    assert refused.value.name == "InputShape" and refused.value.code in str(refused.value)
    with pytest.raises(tracefx.errors.InputError, match="no tensor, number, string or None"):
        tracefx.load(path).run(object())
    with pytest.raises(tracefx.errors.UsageError, match="a program is not called itself"):
        tracefx.load(path)(image)
    with pytest.raises(tracefx.errors.InputError, match="args should have 1 item, and has 2"):
        tracefx.load(path).run(image, image)
    with pytest.raises(tracefx.errors.InputError, match="kwargs should have no keys, and has 'image'"):
        tracefx.load(path).run(image, image=image)


def test_what_is_no_file_is_refused_with_what_to_do(digits, tmp_path):
    (tmp_path / "text").write_text("text")

    class Net:
        def forward(self, x):
            return x

    for mistake, help in [
        (7, "give a path, bytes, or a file that is open for reading bytes"),
        (Net(), "export the module with torch.export.export, save it with torch.export.save, and load that file"),
        (tracefx.load(digits[0]), "save it with torch.export.save, and load that file"),
        (open(tmp_path / "text"), 'open it for reading bytes: open(path, "rb")'),
    ]:
        with pytest.raises(tracefx.errors.UsageError) as refused:
            tracefx.load(mistake)
        assert refused.value.help == help


def test_a_list_that_is_in_itself_is_refused(digits):
    program = tracefx.load(digits[0])
    endless = []
    endless.append(endless)
    with pytest.raises(tracefx.FxError, match="an input is nested deeper than 500 levels"):
        program.run(endless)
    with pytest.raises(tracefx.FxError, match="an argument is nested deeper than 500 levels"):
        program.graph.call_function("mylib.call", (endless,))


def test_verify_tells_that_a_program_runs_and_refuses_inputs_that_it_does_not_take(digits, folder):
    path, image, _ = digits
    found = tracefx.verify(path, image)
    assert found and found.largest_difference is None and str(found).endswith("not compared with PyTorch")
    assert tracefx.verify(folder("nested_io") / "model.pt2"), "the example inputs of the file are taken"
    with pytest.raises(tracefx.errors.InputError):
        tracefx.verify(path, image[:, :, :4])
