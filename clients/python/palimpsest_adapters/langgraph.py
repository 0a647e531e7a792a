"""A LangGraph store whose items are facts of Palimpsest."""

from __future__ import annotations

import asyncio
import itertools
import json
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dateutil.parser import isoparse
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from .api import API

Namespace = tuple[str, ...]

# Rows of one request.
PAGE = 1000


class PalimpsestStore(BaseStore):
    """Keeps each item as one fact. Earlier values stay in the history of the fact.

    The facts belong to ``agent``, and to the user that ``user_of`` returns for a
    namespace: ``user_of=lambda namespace: namespace[1]`` for namespaces such as
    ("memories", "nora"). An erasure of that user then covers the items.

    A search with a query ranks items by ``text``, ``content``, ``memory`` or ``data``
    of their value, or else by all of it. A put with ``index=False`` keeps the item out
    of the ranking; names of fields in ``index`` are not read. The JSON of a value has
    at most 15 KB. There is no TTL.
    """

    supports_ttl = False

    def __init__(
        self,
        address: str,
        *,
        agent: str = "langgraph",
        user_of: Callable[[Namespace], str | None] = lambda namespace: None,
        api_key: str | None = None,
        project: str | None = None,
    ):
        self.api = API(address, api_key=api_key, project=project)
        self.agent = agent
        self.user_of = user_of

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Reads see what was there before the batch; of several puts of a key the last counts."""
        results: list[Result] = []
        puts: dict[tuple[Namespace, str], PutOp] = {}
        for op in ops:
            result: Result = None
            if isinstance(op, GetOp):
                fact = self._fact(op.namespace, op.key)
                result = Item(**members(fact)) if fact else None
            elif isinstance(op, SearchOp):
                result = self._search(op)
            elif isinstance(op, ListNamespacesOp):
                result = self._namespaces(op)
            elif isinstance(op, PutOp):
                puts[(op.namespace, op.key)] = op
            else:
                raise ValueError(f"Unknown operation type: {type(op)}")
            results.append(result)
        for op in puts.values():
            self._put(op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _facts(self, condition: dict[str, Any]) -> Iterator[dict[str, Any]]:
        return self.api.pages("/v1/facts", "facts", agent=self.agent, limit=PAGE, filters=condition)

    def _fact(self, namespace: Namespace, key: str) -> dict[str, Any] | None:
        return next(self._facts(equals("object", path(namespace) + quote(key))), None)

    def _put(self, op: PutOp) -> None:
        known = self._fact(op.namespace, op.key)
        if op.value is None:
            if known:
                self.api.delete(f"/v1/facts/{known['id']}")
            return
        body = {
            "text": text(op),
            "metadata": {
                "langgraph": {
                    "namespace": list(op.namespace),
                    "within": [path(op.namespace[:n]) for n in range(len(op.namespace) + 1)],
                    "key": op.key,
                    "value": op.value,
                    "indexed": op.index is not False,
                }
            },
        }
        if known is None:
            stated = self.api.post(
                "/v1/facts",
                body
                | {
                    "agent": self.agent,
                    "user": self.user_of(op.namespace),
                    # Facts with different objects are different facts, however alike their texts are.
                    "predicate": "item",
                    "object": path(op.namespace) + quote(op.key),
                },
            )
            known = stated["fact"]
            # A confirmed fact does not decay, and is never pruned.
            self.api.post(f"/v1/facts/{known['id']}/confirm", {})
            if stated["results"][0]["event"] == "ADD":
                return
            # Another writer put the item in between.
        self.api.post(f"/v1/facts/{known['id']}/correct", body)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        condition = equals("metadata.langgraph.within", path(op.namespace_prefix))
        found = (SearchItem(**members(fact)) for fact in self._facts(condition))
        if op.query:
            found = self._ranked(op.query, condition, found)
        matching = (i for i in found if matches(i.value, op.filter or {}))
        return list(itertools.islice(matching, op.offset, op.offset + op.limit))

    def _ranked(self, query: str, condition: dict[str, Any], rest: Iterable[SearchItem]) -> Iterator[SearchItem]:
        """Yields what the query finds, best first, and then the rest without a score."""
        indexed = {"AND": [condition, equals("metadata.langgraph.indexed", True)]}
        asked = {"agent": self.agent, "text": query, "types": ["fact"], "limit": PAGE, "filters": indexed}
        seen = set()
        while True:
            page = self.api.post("/v1/search", asked)
            for hit in page["results"]:
                found = SearchItem(**members(hit["fact"]), score=hit["score"])
                seen.add((found.namespace, found.key))
                yield found
            if not page.get("next"):
                break
            asked["cursor"] = page["next"]
        yield from (i for i in rest if (i.namespace, i.key) not in seen)

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        found = {members(fact)["namespace"] for fact in self._facts({"field": "metadata.langgraph.key", "operator": "exists"})}
        kept = {
            namespace[: op.max_depth]
            for namespace in found
            if all(fits(condition, namespace) for condition in op.match_conditions or ())
        }
        return sorted(kept)[op.offset : op.offset + op.limit]


def equals(field: str, value: Any) -> dict[str, Any]:
    return {"field": field, "operator": "eq", "value": value}


def path(namespace: Namespace) -> str:
    """Two namespaces never have the same path: ("a", "b/C") is a/b%2f%43/."""
    return "".join(quote(label) + "/" for label in namespace)


PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_.-~")


def quote(label: str) -> str:
    """Escapes capitals too: texts that differ in case alone are one fact."""
    return "".join(chr(byte) if byte in PLAIN else f"%{byte:02x}" for byte in label.encode())


def text(op: PutOp) -> str:
    """The text that is searched. It ends in the path, because equal texts of one user are one fact."""
    value = op.value or {}
    words = next((value[k] for k in ("text", "content", "memory", "data") if isinstance(value.get(k), str)), None)
    return f"{words or json.dumps(value, ensure_ascii=False)}\n[{path(op.namespace)}{quote(op.key)}]"


def members(fact: dict[str, Any]) -> dict[str, Any]:
    kept = fact["metadata"]["langgraph"]
    return {
        "namespace": tuple(kept["namespace"]),
        "key": kept["key"],
        "value": kept["value"],
        "created_at": isoparse(fact["created_at"]),
        "updated_at": isoparse(fact["updated_at"]),
    }


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": lambda a, b: float(a) > float(b),
    "$gte": lambda a, b: float(a) >= float(b),
    "$lt": lambda a, b: float(a) < float(b),
    "$lte": lambda a, b: float(a) <= float(b),
}


def matches(value: Any, wanted: Any) -> bool:
    """Follows InMemoryStore: a dict of operators compares, another dict is looked into."""
    if not isinstance(wanted, dict):
        return value == wanted
    if any(key.startswith("$") for key in wanted):
        if unknown := wanted.keys() - COMPARISONS.keys():
            raise ValueError(f"Unsupported operator: {', '.join(sorted(unknown))}")
        return all(COMPARISONS[key](value, bound) for key, bound in wanted.items())
    return isinstance(value, dict) and all(matches(value.get(key), bound) for key, bound in wanted.items())


def fits(condition: MatchCondition, namespace: Namespace) -> bool:
    if len(namespace) < len(condition.path):
        return False
    pairs = zip(namespace, condition.path)
    if condition.match_type == "suffix":
        pairs = zip(reversed(namespace), reversed(condition.path))
    return all(wanted in ("*", label) for label, wanted in pairs)
