"""litellm, imported when first needed (it takes seconds), without its network look-ups and its logs."""

import logging
import os
from functools import cache
from typing import Any


@cache
def litellm_module() -> Any:
    """The library, quiet and offline until a call is made."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else importing it fetches a price list
    import litellm

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)  # its logs may quote a request
    return litellm
