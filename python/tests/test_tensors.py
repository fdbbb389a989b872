"""Tensors go in and out as they lie in memory."""

import copy
import gc
import pickle
import signal
import sys
import threading
import time
import weakref

import numpy
import pytest
import tracefx


def address(array):
    return array.__array_interface__["data"][0]


def test_outputs_are_looked_at_without_copies_and_stay_as_they_are(digits):
    path, image, _ = digits
    module = tracefx.load(path).module()
    first = module(image)
    view, again = first.numpy(), numpy.asarray(first)
    assert address(view) == address(again) and not view.flags.writeable
    kept = view.copy()
    module(image + 1)
    assert (view == kept).all(), "a later run does not touch what an earlier one gave"
    with pytest.raises(ValueError):
        view[0] = 0
    writable = numpy.array(first)
    writable[0] = 0
    assert (view == kept).all() and numpy.asarray(first, dtype="float64").dtype == numpy.float64
    del first, module
    gc.collect()
    assert (view == kept).all(), "the array keeps the memory"


def test_state_is_looked_at_without_copies(digits):
    program = tracefx.load(digits[0])
    name = next(iter(program.state_dict))
    tensor = program.state_dict[name]
    assert address(tensor.numpy()) == address(program.state_dict[name].numpy())
    assert tensor.shape == tensor.numpy().shape and tensor.nbytes == tensor.numpy().nbytes
    assert tensor.stride() == tuple(it // 4 for it in tensor.numpy().strides)
    assert repr(tensor).startswith("tracefx.Tensor(f32[") and len(tensor) == tensor.shape[0]


def test_inputs_are_read_where_they_lie(folder):
    """An input that a program gives back is the same memory."""
    program = tracefx.load(folder("digits_cnn") / "model.pt2")
    graph = program.graph
    x = graph.find_nodes(op="placeholder", target="input")[0]
    graph.output_node().args = ((x,),)
    graph.eliminate_dead_code()
    image = numpy.random.default_rng(0).random((2, 1, 8, 8), dtype="float32")
    given = program.run(image)
    assert address(given.numpy()) == address(image)
    del given
    # Nothing of the engine keeps an input that is let go.
    class Array(numpy.ndarray):
        pass

    kept = image.view(Array)
    alive = weakref.ref(kept)
    program.run(kept)
    del kept
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("change", [
    lambda it: it[:, :, ::-1, ::-1],
    lambda it: numpy.asfortranarray(it),
    lambda it: numpy.repeat(it, 2, axis=3)[:, :, :, ::2],
    lambda it: it.astype("float64").astype("float32"),
    lambda it: numpy.frombuffer(b"1234" + it.tobytes(), dtype="float32")[1:].reshape(it.shape),
])
def test_arrays_of_every_layout_are_the_same_elements(digits, change):
    path, image, _ = digits
    module = tracefx.load(path).module()
    changed = change(image)
    expected = module(numpy.ascontiguousarray(changed)).numpy()
    numpy.testing.assert_allclose(module(changed).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_read_only_arrays_are_inputs(digits):
    path, image, expected = digits
    image.flags.writeable = False
    numpy.testing.assert_allclose(tracefx.load(path).run(image).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_tensors_of_tracefx_are_inputs(digits):
    path, image, expected = digits
    program = tracefx.load(path)
    x = program.graph.find_nodes(op="placeholder", target="input")[0]
    same = tracefx.load(path)
    same.graph.output_node().args = ((same.graph.find_nodes(op="placeholder", target="input")[0],),)
    tensor = same.run(image)
    assert isinstance(tensor, tracefx.Tensor) and x.op == "placeholder"
    numpy.testing.assert_allclose(program.run(tensor).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_what_is_no_tensor_of_numbers_is_refused(digits):
    program = tracefx.load(digits[0])
    for odd in (numpy.array(["text"]), digits[1].astype(">f4"), numpy.array([object()])):
        with pytest.raises(tracefx.errors.InputError, match="cannot be read") as refused:
            program.run(odd)
        assert "convert it" in refused.value.help


def test_scalars_of_numpy_keep_their_kind(digits):
    for scalar, kind in [(numpy.bool_(True), "bool"), (numpy.int64(1), "int"), (numpy.float32(1), "float")]:
        with pytest.raises(tracefx.errors.InputError, match=rf"\b{kind}\b"):
            tracefx.load(digits[0]).run(scalar)


def test_copies_have_memory_of_their_own(digits):
    tensor = tracefx.load(digits[0]).run(digits[1])
    copied = copy.deepcopy([tensor])[0]
    assert address(copied.numpy()) != address(tensor.numpy()) and (copied.numpy() == tensor.numpy()).all()
    dtype = tensor.dtype
    assert copy.deepcopy(dtype) == pickle.loads(pickle.dumps(dtype)) == dtype


def test_an_input_that_the_program_writes_to_is_changed(folder):
    from conftest import arrays

    here = folder("input_mutation__core")
    program = tracefx.load(here / "model.pt2")
    x, y = args = list(arrays(here / "inputs.safetensors").values())
    program.run(x, {"k": y})
    expected = arrays(here / "expected.safetensors")
    changed = {name: it for name, it in expected.items() if name.startswith("input.")}
    assert len(changed) == len(args)
    for name, it in changed.items():
        numpy.testing.assert_allclose(args[int(name[6:])], it, rtol=1e-6)
    for it in args:
        it.flags.writeable = False
    with pytest.raises(tracefx.errors.OperatorError, match="not writable"):
        program.run(x, {"k": y})


def test_capsules_that_nobody_takes_are_let_go(digits):
    tensor = tracefx.load(digits[0]).run(digits[1])
    for version in (None, (1, 0)):
        for _ in range(100):
            tensor.__dlpack__(max_version=version)
            numpy.from_dlpack(tensor)
    copied = numpy.from_dlpack(tensor, copy=True)
    assert copied.flags.writeable and address(copied) != address(tensor.numpy())
    assert tensor.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError):
        tensor.__dlpack__(stream=1)


def test_threads_run_at_the_same_time(digits):
    path, image, _ = digits
    module = tracefx.load(path).module()
    expected = module(image).numpy()
    results = []

    def call():
        results.extend((module(image).numpy() == expected).all() for _ in range(20))

    threads = [threading.Thread(target=call) for _ in range(8)]
    [it.start() for it in threads]
    [it.join() for it in threads]
    assert results == [True] * 160


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals of this kind")
def test_control_c_stops_a_run_in_the_middle(digits):
    path, image, _ = digits
    program = tracefx.load(path)
    conv = program.graph.find_nodes(op="call_function", target="torch.ops.aten.conv2d.default")[0]
    with program.graph.inserting_after(conv):
        first = last = program.graph.call_function("torch.ops.aten.neg.default", (conv,))
    for _ in range(999):
        with program.graph.inserting_after(last):
            last = program.graph.call_function("torch.ops.aten.neg.default", (last,))
    conv.replace_all_uses_with(last)
    first.update_arg(0, conv)
    module = program.module(mode="interpret")
    images = numpy.repeat(image, 256, axis=0)[:256]
    start = time.perf_counter()
    module(images)
    whole = time.perf_counter() - start
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, whole / 10)
    start = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            module(images)
            time.sleep(whole)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert time.perf_counter() - start < whole * 0.9
    assert module(image).shape[0] == len(image), "the module can be called again"
