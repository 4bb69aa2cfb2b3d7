"""The protocol: prompts, answers, episodes, judgments, seeds, and their verification."""
