import json
import os
import time

from mem0 import Memory

ROWS, COUNTED, LISTED, WORK = int(os.environ["ROWS"]), 200, 50, os.environ["WORK"]
memory = Memory.from_config(
    {
        "embedder": {
            "provider": "openai",
            "config": {"api_key": "none", "openai_base_url": os.environ["EMBEDDINGS"], "model": "stub", "embedding_dims": 256},
        },
        "vector_store": {
            "provider": "qdrant",
            "config": {"path": f"{WORK}/qdrant", "on_disk": True, "embedding_model_dims": 256, "collection_name": "m"},
        },
        "llm": {"provider": "openai", "config": {"api_key": "none"}},
        "history_db_path": f"{WORK}/history-python.db",
    }
)


def text(n):
    return f"The user put item {n} of batch {n * 7919 % 1009} on shelf {n * 104729 % 9973}"


def rate(start, count, one):
    """The files of the library have one writer: its calls follow each other."""
    began = time.perf_counter()
    for n in range(start, start + count):
        one(n)
    return count / (time.perf_counter() - began)


def add(n):
    memory.add(text(n), user_id="u", infer=False)


def add_list(n):
    start = ROWS + COUNTED + n * LISTED
    memory.add([{"role": "user", "content": text(i)} for i in range(start, start + LISTED)], user_id="u", infer=False)


rate(0, ROWS, add)
added = rate(ROWS, COUNTED, add)
lists = LISTED * rate(0, COUNTED // LISTED, add_list)
searched = rate(0, COUNTED, lambda n: memory.search(text(n), filters={"user_id": "u"}, top_k=5))
print(json.dumps({"add": added, "list": lists, "search": searched}))
memory.vector_store.client.close()
