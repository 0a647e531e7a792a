"""Runs the same operations on PalimpsestStore and on LangGraph's InMemoryStore, and
compares the answers. PALIMPSEST names the server."""

import asyncio
import os
import re
import sys
import unittest
import uuid

from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from palimpsest_adapters.langgraph import PalimpsestStore

WORDS = ["cats", "dogs", "pizza", "sushi", "hiking", "violin"]


def embed(texts):
    """Counts a few words, so that the ranking of the reference is exact."""
    return [[float(len(re.findall(word, text))) for word in WORDS] + [0.01] for text in texts]


def plain(answer):
    """An answer without times and scores, which differ between stores."""
    if isinstance(answer, list):
        return [plain(one) for one in answer]
    return (answer.namespace, answer.key, answer.value) if hasattr(answer, "key") else answer


def unordered(answer):
    return sorted(plain(answer), key=repr)


class Behaviour(unittest.TestCase):
    def setUp(self):
        self.reference = InMemoryStore(index={"dims": len(WORDS) + 1, "embed": embed, "fields": ["text"]})
        self.store = PalimpsestStore(os.environ["PALIMPSEST"], agent=f"lg-{uuid.uuid4()}", user_of=lambda ns: ns[-1])
        self.addCleanup(self.store.api.close)

    def both(self, ask, view=plain):
        """Asks both stores, compares what view shows of the answers, and returns ours."""
        want, got = ask(self.reference), ask(self.store)
        self.assertEqual(view(got), view(want))
        return got

    def put_some(self):
        for store in (self.reference, self.store):
            store.put(("memories", "nora"), "a", {"text": "likes cats", "n": 1, "tags": ["x"]})
            store.put(("memories", "nora"), "b", {"text": "eats pizza", "n": 2, "by": {"name": "Bob"}})
            store.put(("memories", "bob"), "a", {"text": "goes hiking", "n": 3})
            store.put(("notes", "bob"), "a b/c", {"text": "likes cats", "n": 4.5, "done": True})

    def test_get_put_delete(self):
        self.both(lambda s: s.get(("memories", "nora"), "a"))
        self.put_some()
        first = self.both(lambda s: s.get(("memories", "nora"), "a"))
        self.both(lambda s: s.get(("memories", "bob"), "a"))
        self.both(lambda s: s.get(("notes", "bob"), "a b/c"))
        self.both(lambda s: s.get(("memories",), "a"))
        self.both(lambda s: s.put(("memories", "nora"), "a", {"text": "likes dogs", "nothing": None}))
        second = self.both(lambda s: s.get(("memories", "nora"), "a"))
        self.assertEqual(first.created_at, second.created_at)
        self.assertLess(first.updated_at, second.updated_at)
        self.both(lambda s: s.put(("memories", "nora"), "a", {"text": "likes dogs", "nothing": None}))
        self.both(lambda s: s.delete(("memories", "nora"), "a"))
        self.both(lambda s: s.get(("memories", "nora"), "a"))
        self.both(lambda s: s.delete(("memories", "nora"), "a"))
        self.both(lambda s: s.put(("memories", "nora"), "a", {"text": "likes cats", "n": 1}))
        self.both(lambda s: s.get(("memories", "nora"), "a"))

    def test_equal_values_are_separate_items(self):
        for store in (self.reference, self.store):
            for key in ("one", "two", "three"):
                store.put(("memories", "nora"), key, {"text": "likes cats"})
        self.both(lambda s: s.search(("memories", "nora")), unordered)

    def test_case_tells_keys_apart(self):
        keys = ["Key", "key", "KEY", "k%C3", "k%c3", "Ä", "ä", "ﬁ", "fi"]
        for store in (self.reference, self.store):
            for n, key in enumerate(keys):
                store.put(("Memories", "nora"), key, {"text": "likes cats", "n": n})
            store.put(("memories", "nora"), "Key", {"text": "likes cats"})
        for key in keys:
            self.both(lambda s: s.get(("Memories", "nora"), key))
        self.both(lambda s: s.search(("Memories",)), unordered)

    def test_search_by_prefix_and_filter(self):
        self.put_some()
        for prefix in [(), ("memories",), ("memories", "nora"), ("mem",), ("memories", "nora", "x")]:
            self.both(lambda s: s.search(prefix), unordered)
        for wanted in [
            {"n": 1}, {"n": {"$gt": 1}}, {"n": {"$gte": 2, "$lt": 4}}, {"n": {"$ne": 1}}, {"n": {"$lte": 1}}, {"n": {"$eq": 4.5}},
            {"by": {"name": "Bob"}}, {"by": {"name": "Eve"}}, {"tags": ["x"]}, {"done": True}, {"text": "likes cats"}, {"absent": None},
        ]:  # fmt: skip
            with self.subTest(wanted):
                self.both(lambda s: s.search((), filter=wanted), unordered)
        for store in (self.reference, self.store):
            with self.assertRaises(ValueError):
                store.search((), filter={"n": {"$like": 1}})

    def test_pages(self):
        self.put_some()
        for limit, offset in [(1, 0), (3, 2), (10, 4), (0, 0)]:
            self.both(lambda s: s.search((), limit=limit, offset=offset), len)
        seen = [plain(self.store.search((), limit=1, offset=i))[0] for i in range(4)]
        self.assertEqual(sorted(seen, key=repr), unordered(self.reference.search(())))

    def test_search_ranks(self):
        self.put_some()
        for query, prefix in [("pizza", ("memories",)), ("hiking", ()), ("cats", ("notes",))]:
            found = self.both(lambda s: s.search(prefix, query=query), lambda a: (plain(a[0]), unordered(a)))
            self.assertGreater(found[0].score, 0)
        self.both(lambda s: s.search((), query="cats", filter={"n": {"$gt": 1}}, limit=1))

    def test_not_indexed(self):
        for store in (self.reference, self.store):
            store.put(("memories", "nora"), "a", {"text": "likes cats"}, index=False)
            store.put(("memories", "nora"), "b", {"text": "likes dogs"})
        found = self.both(lambda s: s.search(("memories",), query="cats"), unordered)
        self.assertEqual([i.score for i in found if i.key == "a"], [None])

    def test_namespaces(self):
        self.put_some()
        for store in (self.reference, self.store):
            store.put(("memories", "x", "y", "bob"), "k", {"text": "plays the violin"})
        for ask in [
            {}, {"prefix": ("memories",)}, {"suffix": ("bob",)}, {"max_depth": 1}, {"max_depth": 2, "limit": 2},
            {"prefix": ("memories", "*", "y")}, {"limit": 2, "offset": 1}, {"prefix": ("notes",), "suffix": ("nora",)},
        ]:  # fmt: skip
            with self.subTest(ask):
                self.both(lambda s: s.list_namespaces(**ask))

    def test_batch_reads_what_was_there_before(self):
        ops = [
            PutOp(("memories", "nora"), "a", {"text": "one"}),
            GetOp(("memories", "nora"), "a"),
            PutOp(("memories", "nora"), "a", {"text": "two"}),
            SearchOp(("memories",)),
        ]
        self.both(lambda s: s.batch(ops))
        self.both(lambda s: asyncio.run(s.abatch(ops)))
        self.both(lambda s: s.get(("memories", "nora"), "a"))

    def test_refuses(self):
        for store in (self.reference, self.store):
            for namespace in [(), ("a.b",), ("",), ("langgraph", "x")]:
                with self.assertRaises(InvalidNamespaceError):
                    store.put(namespace, "k", {"text": "x"})
        with self.assertRaises(NotImplementedError):
            self.store.put(("memories", "nora"), "a", {"text": "x"}, ttl=1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
