"""With PyTorch: tensors both ways, and programs that it exports. These tests are skipped where PyTorch is not installed."""

import numpy
import pytest
import tracefx

torch = pytest.importorskip("torch")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x, *, scale):
        return {"y": torch.relu(self.linear(x)) * scale, "n": x.shape[0]}


@pytest.fixture
def exported():
    torch.manual_seed(0)
    return torch.export.export(Net(), (torch.randn(5, 4),), {"scale": torch.tensor(2.0)})


def test_a_program_of_pytorch_is_verified_in_one_line(exported):
    found = tracefx.verify(exported)
    assert found and found.largest_difference < 1e-5
    assert str(found).startswith("runs in the browser: ") and "PyTorch" in str(found) and "\n" not in str(found)
    again = tracefx.verify(exported, torch.randn(5, 4, requires_grad=True), scale=torch.tensor(0.5))
    assert again.relative_difference < 1e-5
    computed = torch.randn(5, 4, requires_grad=True) * 2
    assert tracefx.verify(exported, computed, scale=torch.tensor(0.5)).relative_difference < 1e-5


def test_what_is_no_program_and_what_is_not_in_memory_are_refused(exported):
    with pytest.raises(tracefx.errors.UsageError) as refused:
        tracefx.verify(Net())
    assert refused.value.help.startswith("export the module")
    with pytest.raises(tracefx.errors.UsageError):
        tracefx.verify(torch.nn.ReLU())
    with pytest.raises(tracefx.errors.InputError, match="not on the CPU"):
        tracefx.load(saved(exported)).run(torch.ones(5, 4, device="meta"), scale=torch.tensor(1.0))


def test_what_is_missing_is_told():
    library = torch.library.Library("tracefx_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")

    class Custom(torch.nn.Module):
        def forward(self, x):
            return torch.ops.tracefx_test.twice(x)

    found = tracefx.verify(torch.export.export(Custom(), (torch.ones(2),)))
    assert not found and found.missing == (("torch.ops.tracefx_test.twice.default", 1),)
    assert str(found) == "does not run in the browser: 1 operator is missing: torch.ops.tracefx_test.twice.default (1 node)"


def test_programs_go_to_pytorch_and_back(exported, tmp_path):
    exported_here = tmp_path / "theirs.pt2"
    torch.export.save(exported, exported_here)
    program = tracefx.load(exported_here)
    assert str(program.graph) == str(exported.graph).rstrip("\n")
    program.save(tmp_path / "ours.pt2")
    back = torch.export.load(tmp_path / "ours.pt2")
    x, scale = torch.randn(5, 4), torch.tensor(3.0)
    expected = exported.module()(x, scale=scale)["y"]
    assert torch.equal(back.module()(x, scale=scale)["y"], expected)
    ours = program.run(x, scale=scale)
    assert ours["n"] == 5
    torch.testing.assert_close(torch.from_dlpack(ours["y"]), expected.detach())


def test_tensors_of_pytorch_are_shared(exported):
    program = tracefx.load(saved(exported))
    x, scale = torch.randn(4, 5).t(), torch.tensor(1.0)
    y = program.run(x, scale=scale)["y"]
    first, second = torch.from_dlpack(y), torch.from_dlpack(y)
    assert first.data_ptr() == second.data_ptr() == y.numpy().__array_interface__["data"][0]
    torch.testing.assert_close(first, exported.module()(x, scale=scale)["y"].detach())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "bool", "int32", "complex64", "float8_e4m3fn"])
def test_dtypes_go_both_ways(dtype):
    class Same(torch.nn.Module):
        def forward(self, x):
            return x.reshape(-1)

    x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    given = tracefx.load(saved(torch.export.export(Same(), (x,)))).run(x)
    assert str(given.dtype) == f"torch.{dtype}" and given.shape == (6,)
    back = torch.from_dlpack(given)
    assert back.dtype == x.dtype and torch.equal(back.view(torch.uint8), x.reshape(-1).view(torch.uint8))
    if dtype in ("bfloat16", "float8_e4m3fn"):
        with pytest.raises(TypeError, match="use torch.from_dlpack"):
            given.numpy()
    else:
        assert numpy.asarray(given).shape == (6,)


def saved(program):
    import io

    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()
