"""The samples of the guide run, one after the other, in a folder with a `model.pt2`."""

import pathlib
import re
import shutil

import pytest

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"
SAMPLES = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_of_the_guide_runs(sample, folder, tmp_path, monkeypatch):
    shutil.copy(folder("digits_cnn") / "model.pt2", tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(compile(sample, str(GUIDE), "exec"), {})
