"""The sentence encoder all-MiniLM-L6-v2 in numpy: WordPiece, six layers, mean."""

import json
import math
import unicodedata

import numpy as np

HEADS, EPSILON, LONGEST = 12, 1e-12, 256


def tensors(data):
    """Read a safetensors file of float32 tensors."""
    size = int.from_bytes(data[:8], "little")
    out = {}
    for name, t in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and t["dtype"] == "F32":
            begin, end = t["data_offsets"]
            raw = data[8 + size + begin : 8 + size + end]
            out[name] = np.frombuffer(raw, np.float32).reshape(t["shape"])
    return out


class Tokenizer:
    """WordPiece of the uncased BERT vocabulary."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.unknown = self.ids["[UNK]"]
        self.start, self.end = self.ids["[CLS]"], self.ids["[SEP]"]

    def words(self, text):
        text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
        word = ""
        for c in text:
            category = unicodedata.category(c)
            ascii_mark = c.isascii() and c.isprintable() and not c.isalnum() and c != " "
            ideograph = "\u3400" <= c <= "\u9fff" or "\U00020000" <= c <= "\U0002fa1f" or "\uf900" <= c <= "\ufaff"
            if c.isspace():
                yield word
                word = ""
            elif ascii_mark or ideograph or category[0] == "P":
                yield word
                yield c
                word = ""
            elif category[0] != "C":
                word += c
        yield word

    def encode(self, text):
        out = []
        for word in self.words(text):
            if word:
                out += self.pieces(word)
        return out

    def pieces(self, word):
        out, at = [], 0
        if len(word) > 100:
            return [self.unknown]
        while at < len(word):
            for end in range(len(word), at, -1):
                piece = self.ids.get(("##" if at else "") + word[at:end])
                if piece is not None:
                    break
            else:
                return [self.unknown]
            out.append(piece)
            at = end
        return out


def erf(x):
    """Abramowitz and Stegun 7.1.26; the error is below 1.5e-7."""
    t = 1 / (1 + np.float32(0.3275911) * np.abs(x))
    y = 1 - t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * np.exp(-x * x)
    return np.sign(x) * y.astype(np.float32)


class Model:
    def __init__(self, weights):
        self.w = {name.removeprefix("bert."): t for name, t in weights.items()}
        self.layers = 1 + max(int(name.split(".")[2]) for name in self.w if name.startswith("encoder.layer."))

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)
        return x * self.w[name + ".weight"] + self.w[name + ".bias"]

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def batch(self, ids):
        """Mean of the last layer of token ids [texts, length], all of one length."""
        n, length = ids.shape
        e = "embeddings."
        x = self.w[e + "word_embeddings.weight"][ids] + self.w[e + "position_embeddings.weight"][:length]
        x = self.norm(x + self.w[e + "token_type_embeddings.weight"][0], e + "LayerNorm").reshape(n * length, -1)
        for layer in range(self.layers):
            x = self.layer(x, f"encoder.layer.{layer}.", n, length)
        return x.reshape(n, length, -1).mean(1)

    def layer(self, x, name, n, length):
        def heads(part):
            return self.linear(x, name + "attention.self." + part).reshape(n, length, HEADS, -1).transpose(0, 2, 1, 3)

        q, k, v = heads("query"), heads("key"), heads("value")
        a = q @ k.transpose(0, 1, 3, 2) / np.float32(math.sqrt(q.shape[-1]))
        a = np.exp(a - a.max(-1, keepdims=True))
        a /= a.sum(-1, keepdims=True)
        mixed = (a @ v).transpose(0, 2, 1, 3).reshape(n * length, -1)
        x = self.norm(x + self.linear(mixed, name + "attention.output.dense"), name + "attention.output.LayerNorm")
        h = self.linear(x, name + "intermediate.dense")
        h = h * np.float32(0.5) * (1 + erf(h * np.float32(math.sqrt(0.5))))
        return self.norm(x + self.linear(h, name + "output.dense"), name + "output.LayerNorm")

    def sentences(self, tokenizer, encoded, size=128):
        """Unit sentence vectors of lists of token ids."""
        by_length = {}
        for i, ids in enumerate(encoded):
            by_length.setdefault(min(len(ids), LONGEST - 2), []).append(i)
        out = np.zeros((len(encoded), self.w["embeddings.LayerNorm.weight"].size), np.float32)
        for length, members in sorted(by_length.items()):
            for at in range(0, len(members), size):
                some = members[at : at + size]
                ids = np.array([[tokenizer.start, *encoded[i][:length], tokenizer.end] for i in some])
                out[some] = self.batch(ids)
        return out / np.linalg.norm(out, axis=1, keepdims=True)
