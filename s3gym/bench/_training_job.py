"""What every pass of ``training`` does, written to a file; in a process of its own, because it imports torch.

Reads two arguments, JSON with the fields of ``training.Load`` and a folder; prints one JSON object: what is measured.
"""

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers

from s3gym.bench._episode import REPLY, TURN_COUNT, user_texts
from s3gym.config import TrainingSettings
from s3gym.models.local import PREFIX, load
from s3gym.models.local.loading import load_tokenizer
from s3gym.models.local.tiny import ASSISTANT, ENDED, USER
from s3gym.models.local.weights import TINY, device_type, find

SHAPE = {
    "hidden_size": 320,
    "intermediate_size": 1280,
    "num_hidden_layers": 6,
    "num_attention_heads": 5,
    "num_key_value_heads": 5,
    "max_position_embeddings": 8192,
}
"""Of the random model: 10 million parameters."""
TEMPLATE = (
    f"{{%- for message in messages -%}}{{{{ '{USER}' if message['role'] == 'user' else '{ASSISTANT}' }}}}"
    f"{{{{ message['content'] }}}}{{%- if message['role'] != 'user' -%}}{{{{ '{ENDED}' }}}}{{%- endif -%}}"
    f"{{%- endfor -%}}{{%- if add_generation_prompt -%}}{{{{ '{ASSISTANT}' }}}}{{%- endif -%}}"
)

_library: Any = transformers  # it is typed here and there only


def main(request: dict[str, Any], folder: Path) -> None:
    """Writes the job and prints the rest."""
    name, _, query = (request["model"] or "").removeprefix(PREFIX).partition("?")
    if not name:
        name = str(_written(folder / "model"))
    model_folder = find(name).folder(True)
    # the last of two that say different things holds
    model = load(f"{PREFIX}{name}?{query}&answers=free&batch={request['batch']}")
    tokenizer = load_tokenizer(model_folder)
    prompts = _prompts(tokenizer, request)
    examples = [model.example([{"role": "user", "content": prompt}], REPLY) for prompt in prompts]
    longest = max(len(example.tokens) for example in examples)
    settings = TrainingSettings(
        batch=request["batch"], epochs=1, warmup=0.0, batch_tokens=request["batch"] * longest, row_tokens=longest
    )
    job = {
        "model": model.model_id,
        "model_folder": str(model_folder),
        "dtype": model.options.dtype,
        "device": device_type(),
        "folder": str(folder),
        "adapter": str(folder / "own"),
        "seed": 0,
        "settings": settings.model_dump(mode="json"),
        "rows": [{"tokens": example.tokens, "prompt_count": example.prompt_count} for example in examples],
        "prompts": prompts,
        "new_tokens": request["new_tokens"],
        "first_prompt": "Hello",
        "first_new_tokens": 2,
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
    facts = {
        "parameter_count": _parameter_count(model_folder),
        "row_tokens": [len(example.tokens) for example in examples],
        "prompt_tokens": [example.prompt_count for example in examples],
        "settings": {name: job["settings"][name] for name in ("rank", "alpha", "learning_rate", "weight_decay")},
        "dtype": job["dtype"],
        "device": job["device"],
        "thread_count": torch.get_num_threads(),
        "versions": {name: version(name) for name in ("torch", "transformers", "peft")},
        "python": platform.python_version(),
    }
    print(json.dumps(facts))


def _written(folder: Path) -> Path:
    """A random model that reads and writes bytes, as ``local:tiny``, but sees all of its prompt; it never ends."""
    tokenizer = load_tokenizer(find(TINY).folder(True))
    tokenizer.chat_template = TEMPLATE
    tokenizer.model_max_length = SHAPE["max_position_embeddings"]
    end = tokenizer.eos_token_id
    marks = {f"{mark}_token_id": end for mark in ("bos", "eos", "pad")}
    torch.manual_seed(0)
    model = _library.LlamaForCausalLM(_library.LlamaConfig(**SHAPE, **marks, vocab_size=len(tokenizer)))
    with torch.no_grad():
        model.get_output_embeddings().weight[tokenizer.all_special_ids] = 0  # so that a mark is never the likeliest
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _prompts(tokenizer: Any, request: dict[str, Any]) -> list[str]:
    """So many that each is in one step; different from the first word on, and such that a row is as long as asked."""
    text = "\n\n".join(user_texts(TURN_COUNT))

    def count(text: str) -> int:
        return len(tokenizer(text, add_special_tokens=False).input_ids)

    empty = tokenizer.apply_chat_template([{"role": "user", "content": ""}], add_generation_prompt=True, tokenize=False)
    room = request["tokens"] - count(empty) - count(REPLY) - 1
    prompts = []
    for index in range(request["batch"] * request["steps"]):
        tokens = tokenizer(f"{index}. {text}", add_special_tokens=False).input_ids[: max(room, 1)]
        prompts.append(tokenizer.decode(tokens))
    return prompts


def _parameter_count(folder: Path) -> int:
    config = _library.AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        return int(_library.AutoModelForCausalLM.from_config(config).num_parameters())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
