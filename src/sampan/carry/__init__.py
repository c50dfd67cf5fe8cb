"""From the workshop to the target: parts for discs and sticks, and the proof that all of them arrived."""
