"""``local:tiny``: a reflex agent with random weights for controls and tests, no language model.

A causal model of about a million parameters that reads and writes bytes. Its weights are drawn from a fixed seed,
the same on every machine, so before training it knows nothing; a few hundred judged steps train it in seconds.
It is a folder like any other: transformers and peft load it without us.

Its chat template lets it see little, so that it is quick: of the last message the end of the current state; where
that is a board with a head ``H``, only what stands around the head. It sees no rules and nothing of earlier steps or
episodes, whatever the pathway shows.
"""

from pathlib import Path
from typing import Any

import torch
import transformers

from s3gym.transcript import CURRENT_CLOSE, CURRENT_OPEN

SEED = 0
SHAPE = {
    "hidden_size": 160,
    "intermediate_size": 640,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 4096,
}
SIGHT = 24
"""Characters of a state without a head that it sees; two rounds of ``trust`` and more."""
USER, ASSISTANT, ENDED = "<|user|>", "<|assistant|>", "<|end|>"

SIDES = ("abc", "def", "ghi", "jkl")
"""What it sees left of a head, right, above and below: empty, an apple, or anything else; each side has letters of its
own, so that a reflex can tell them apart without counting."""

TEMPLATE = (
    "{%- set asked = (messages | selectattr('role', 'equalto', 'user') | list)[-1]['content'] -%}\n"
    f"{{%- set state = asked.split('{CURRENT_OPEN}')[-1].split('{CURRENT_CLOSE}')[0].strip() -%}}\n"
    "{%- set rows = state.split('\\n') -%}\n"
    "{%- set head = namespace(row=-1, at=0) -%}\n"
    "{%- for row in rows if row[1:2] == ' ' and ' H' in row -%}\n"
    "  {%- set head.row = rows.index(row) -%}{%- set head.at = row.find(' H') + 1 -%}\n"
    "{%- endfor -%}\n"
    f"{{{{- '{USER}' -}}}}\n"
    "{%- if head.row > 0 -%}\n"
    "  {%- set at, row = head.at, rows[head.row] -%}\n"
    "  {%- set beside = (row[at - 2], row[at + 2:at + 3], rows[head.row - 1][at:at + 1], rows[head.row + 1][at:at + 1])"
    " -%}\n"
    f"  {{%- for letters in {SIDES} -%}}{{{{- letters['.A'.find(beside[loop.index0] or '?')] -}}}}{{%- endfor -%}}\n"
    "{%- else -%}\n"
    f"  {{{{- state[-{SIGHT}:] -}}}}\n"
    "{%- endif -%}\n"
    "{%- if messages[-1]['role'] == 'assistant' -%}\n"
    f"  {{{{- '{ASSISTANT}' ~ messages[-1]['content'] ~ '{ENDED}' -}}}}\n"
    "{%- elif add_generation_prompt -%}\n"
    f"  {{{{- '{ASSISTANT}' -}}}}\n"
    "{%- endif -%}"
)

_library: Any = transformers  # it is typed here and there only


def write(folder: Path) -> None:
    """Writes the model and its tokenizer."""
    tokenizer = _tokenizer()
    end = tokenizer.eos_token_id
    config = _library.LlamaConfig(
        **SHAPE,
        vocab_size=len(tokenizer),
        tie_word_embeddings=False,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
    )
    model = _library.LlamaForCausalLM(config)
    _draw(model)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _draw(model: Any) -> None:
    """Every matrix from one generator: what is read with a spread of 1, the others such that they keep a spread.

    Uniform, because those numbers do not depend on the processor.
    """
    generator = torch.Generator().manual_seed(SEED)
    for name, weights in sorted(model.state_dict().items()):
        if weights.dim() == 2:
            spread = 1.0 if "embed" in name else weights.shape[1] ** -0.5
            weights.copy_((2 * torch.rand(weights.shape, generator=generator) - 1) * (3**0.5 * spread))


def _tokenizer() -> Any:
    """A token a byte."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(letters)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(mark, special=True) for mark in (ENDED, USER, ASSISTANT)])
    tokenizer = _library.PreTrainedTokenizerFast(
        tokenizer_object=made,
        eos_token=ENDED,
        pad_token=ENDED,
        clean_up_tokenization_spaces=False,
        model_max_length=SHAPE["max_position_embeddings"],
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer
