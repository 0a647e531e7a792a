"""A session of the OpenAI Agents SDK whose items are episodes of Palimpsest."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from agents import TResponseInputItem
from agents.memory import SessionSettings

from .api import API

KEY = "openai_agents"


class PalimpsestSession:
    """Keeps the items of a conversation as episodes, from which facts are extracted.

    The history of Palimpsest is only appended to: ``pop_item`` and ``clear_session``
    record that items were removed. The session then leaves these items out. Their
    episodes and facts stay until they are forgotten or the user is erased.

    One session has one writer at a time, as in the SDK.
    """

    def __init__(
        self,
        session_id: str,
        address: str,
        *,
        user: str,
        agent: str = "",
        api_key: str | None = None,
        project: str | None = None,
        session_settings: SessionSettings | None = None,
    ):
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self.api = API(address, api_key=api_key, project=project)
        self._scope = {"user": user, "agent": agent, "session": session_id}
        self._at: str | None = None  # the newest write, which each read waits for

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        if limit is None:
            limit = self.session_settings.limit
        return await asyncio.to_thread(self._items, limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        if items:
            await asyncio.to_thread(self._record, [message(item) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        return await asyncio.to_thread(self._pop)

    async def clear_session(self) -> None:
        await asyncio.to_thread(self._record, [removal({"cleared": True})])

    async def recall(self, text: str, budget: int | None = None) -> str:
        """Returns what is known of the user about a text, for the instructions of an agent."""

        def ask() -> str:
            body = {"user": self._scope["user"], "text": text, "budget": budget, "at": self._at}
            return self.api.post("/v1/context", body).get("context", "")

        return await asyncio.to_thread(ask)

    async def end(self) -> None:
        """Ends the session, so that what is left of it is consolidated now."""
        path = f"/v1/sessions/{quote(self.session_id, safe='')}/end"
        await asyncio.to_thread(self.api.post, path, {k: v for k, v in self._scope.items() if k != "session"})

    def _record(self, messages: list[dict[str, Any]]) -> None:
        self._at = self.api.post("/v1/episodes", self._scope | {"messages": messages})["at"]

    def _episodes(self) -> Iterator[dict[str, Any]]:
        """Yields the episodes of the items that were not removed, newest first."""
        removed = set()
        for episode in self.api.pages("/v1/episodes", "episodes", limit=100, at=self._at, **self._scope):
            note = (episode.get("metadata") or {}).get(KEY) or {}
            if note.get("cleared"):
                return
            if "removed" in note:
                removed.add(note["removed"])
            elif KEY in (episode.get("metadata") or {}) and episode["id"] not in removed:
                yield episode

    def _items(self, limit: int | None) -> list[TResponseInputItem]:
        newest = []
        if limit is None or limit > 0:
            for episode in self._episodes():
                newest.append(item(episode))
                if len(newest) == limit:
                    break
        return newest[::-1]

    def _pop(self) -> TResponseInputItem | None:
        newest = next(self._episodes(), None)
        if newest is None:
            return None
        self._record([removal({"removed": newest["id"]})])
        return item(newest)


def removal(note: dict[str, Any]) -> dict[str, Any]:
    return {"role": "system", "content": "An item of the conversation was removed.", "metadata": {KEY: note}}


def message(entry: TResponseInputItem) -> dict[str, Any]:
    """The episode of an item. Its content is the one text of the item; the rest of the
    item is metadata. An item without a text, or with several, is kept as JSON."""
    rest: Any = copy.deepcopy(entry)
    content = rest.get("content")
    if isinstance(content, str):
        rest["content"] = None
    elif isinstance(content, list) and len(content) == 1 and isinstance(content[0].get("text"), str):
        part, content = content[0], content[0]["text"]
        part["text"] = None
    if not isinstance(content, str) or not content.strip():
        return {"role": "tool", "content": json.dumps(entry, ensure_ascii=False), "metadata": {KEY: {"json": True}}}
    role = {"user": "user", "assistant": "assistant"}.get(rest.get("role"), "system")
    return {"role": role, "content": content, "metadata": {KEY: {"rest": rest}}}


def item(episode: dict[str, Any]) -> TResponseInputItem:
    note = episode["metadata"][KEY]
    if note.get("json"):
        return json.loads(episode["content"])
    entry = note["rest"]
    if entry["content"] is None:
        entry["content"] = episode["content"]
    else:
        entry["content"][0]["text"] = episode["content"]
    return entry
