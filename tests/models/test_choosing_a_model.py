"""Settings name the language model, and a wrong folder is said before anything is loaded."""

import subprocess
import sys

import pytest
from wardround.errors import ModelError, SettingsError
from wardround.models import llm_from_settings
from wardround.settings import LlmSettings, Settings


def test_a_missing_model_folder_is_said(tmp_path):
    with pytest.raises(ModelError, match="no such folder"):
        llm_from_settings(LlmSettings(path=tmp_path / "qwen"))


def test_a_whole_folder_without_vllm_says_what_to_install(tmp_path, monkeypatch):
    for name in ("config.json", "tokenizer_config.json", "model.safetensors"):
        (tmp_path / name).write_bytes(b"{}")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelError, match="needs vLLM"):
        llm_from_settings(LlmSettings(path=tmp_path))


def test_server_and_folder_together_are_refused(tmp_path):
    file = tmp_path / "wardround.toml"
    file.write_text('[llm]\nbase_url = "http://127.0.0.1:1/v1"\npath = "qwen"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="exclude each other"):
        Settings.load(file)


def test_importing_the_vllm_package_leaves_no_traceback_at_exit():
    code = "import wardround.models.in_process"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_importing_the_models_does_not_import_torch_or_the_client():
    code = (
        "import sys, wardround.models; print(sorted({'torch', 'openai', 'FlagEmbedding'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
