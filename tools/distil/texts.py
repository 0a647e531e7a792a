"""Texts that the map is fitted on; all are generated."""

import random
import re

import lexicon
import templates

SEED = 20240501


def generate(tokens, sentences, framed, mixed):
    """Return texts without repetition; the same arguments give the same texts.

    sentences counts the texts of the templates, framed those with words of the
    vocabulary in a frame, mixed those that are words of the vocabulary alone.
    """
    rng = random.Random(SEED)
    words = [t for t in tokens[1996:29612] if t.isascii() and t.isalpha()]
    texts = [sentence(rng) for _ in range(sentences)]
    texts += [frame(rng, words) for _ in range(framed)]
    texts += [" ".join(draw(rng, words) for _ in range(rng.randint(2, 19))) for _ in range(mixed)]
    return list(dict.fromkeys(texts))


def sentence(rng):
    """One to three sentences of templates."""
    text = fill(rng)
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        text += rng.choice(templates.JOINTS) + fill(rng)
    return text


def fill(rng):
    pattern = rng.choice(rng.choice(templates.GROUPS).split("|"))
    return re.sub(r"{(\w+)}", lambda m: rng.choice(lexicon.SLOTS[m[1]]), pattern)


def frame(rng, words):
    return re.sub(r"\*", lambda _: draw(rng, words), rng.choice(templates.FRAMES))


def draw(rng, words):
    """A word; its rank is distributed as Zipf's law has it, with a flatter tail."""
    if rng.random() < 0.5:
        return rng.choice(words)
    return words[int(len(words) ** rng.random()) - 1]
