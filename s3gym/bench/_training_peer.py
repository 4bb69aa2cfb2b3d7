"""The same update and the same evaluation with transformers and peft alone, as one would write them without us."""

from pathlib import Path
from time import perf_counter
from typing import Any

import peft
import torch
import transformers
from torch.nn.utils.rnn import pad_sequence

_transformers: Any = transformers  # they are typed here and there only
_peft: Any = peft


def update(job: dict[str, Any]) -> dict[str, Any]:
    """Reads the model, trains an adapter on the rows once, writes it."""
    settings, rows, device = job["settings"], job["rows"], job["device"]
    began = perf_counter()
    model = _read(job)
    torch.manual_seed(job["seed"])
    model = _peft.get_peft_model(
        model,
        _peft.LoraConfig(
            r=settings["rank"], lora_alpha=settings["alpha"], target_modules="all-linear", task_type="CAUSAL_LM"
        ),
    )
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=settings["learning_rate"], weight_decay=settings["weight_decay"])
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(job["seed"])).tolist()
    size = settings["batch"]
    schedule = _transformers.get_linear_schedule_with_warmup(optimizer, 0, len(rows) // size)
    model.train()
    started = perf_counter()
    for first in range(0, len(rows), size):
        batch = [rows[index] for index in order[first : first + size]]
        tokens = [torch.tensor(row["tokens"]) for row in batch]
        labels = [row.clone() for row in tokens]
        for row, told in zip(labels, batch, strict=True):
            row[: told["prompt_count"]] = -100  # what the loss leaves out
        output = model(
            input_ids=pad_sequence(tokens, batch_first=True).to(device),
            attention_mask=pad_sequence([torch.ones_like(row) for row in tokens], batch_first=True).to(device),
            labels=pad_sequence(labels, batch_first=True, padding_value=-100).to(device),
            use_cache=False,
        )
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, settings["gradient_norm"])
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        loss = float(output.loss.detach())
    seconds = perf_counter() - started
    model.save_pretrained(Path(job["folder"]) / "peer")
    return {
        "seconds": seconds,
        "whole_seconds": perf_counter() - began,
        "token_count": sum(len(row["tokens"]) for row in rows),
        "said": [f"{loss:.4f}"],
    }


def evaluation(job: dict[str, Any]) -> dict[str, Any]:
    """Reads the model, puts the adapter on it, answers the prompts batch by batch."""
    began = perf_counter()
    model = _peft.PeftModel.from_pretrained(_read(job), job["adapter"]).eval()
    if job["dtype"] == "fp32":
        model = model.merge_and_unload()  # the faster way
    tokenizer = _transformers.AutoTokenizer.from_pretrained(job["model_folder"], padding_side="left")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    ends = model.generation_config.eos_token_id
    ends = torch.tensor(ends if isinstance(ends, list) else [ends])
    _answer(model, tokenizer, [job["first_prompt"]], job["first_new_tokens"])
    started, prompts, size, said, count = perf_counter(), job["prompts"], job["settings"]["batch"], [], 0
    for first in range(0, len(prompts), size):
        for answer in _answer(model, tokenizer, prompts[first : first + size], job["new_tokens"]).cpu():
            ended = torch.isin(answer, ends).nonzero()
            count += int(ended[0]) + 1 if len(ended) else len(answer)
            said.append(tokenizer.decode(answer, skip_special_tokens=True).strip())
    finished = perf_counter()
    return {"seconds": finished - started, "whole_seconds": finished - began, "token_count": count, "said": said}


def _answer(model: Any, tokenizer: Any, prompts: list[str], new_tokens: int) -> Any:
    """[prompts, new tokens], greedy."""
    asked = tokenizer.apply_chat_template(
        [[{"role": "user", "content": prompt}] for prompt in prompts],
        add_generation_prompt=True,
        padding=True,
        return_dict=True,
        return_tensors="pt",
    ).to(model.device)
    with torch.inference_mode():
        written = model.generate(
            **asked, max_new_tokens=new_tokens, do_sample=False, pad_token_id=tokenizer.pad_token_id
        )
    return written[:, asked["input_ids"].shape[1] :]


def _read(job: dict[str, Any]) -> Any:
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[job["dtype"]]
    return _transformers.AutoModelForCausalLM.from_pretrained(job["model_folder"], dtype=dtype).to(job["device"])
