"""A memory service of Google's Agent Development Kit on Palimpsest."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from google.adk.events import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from .api import API


class PalimpsestMemoryService(BaseMemoryService):
    """Keeps events as episodes of (user, app, session), and finds facts and episodes.

    An event is recorded once, however often its session is added. The app is the
    agent of Palimpsest.
    """

    def __init__(self, address: str, *, limit: int = 10, api_key: str | None = None, project: str | None = None):
        self.api = API(address, api_key=api_key, project=project)
        self.limit = limit
        self._at: dict[tuple[str, str], str] = {}  # by app and user: the newest write, which each search waits for

    async def add_session_to_memory(self, session: Session) -> None:
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        messages = [message(event, dict(custom_metadata or {})) for event in events if text(event.content)]
        if messages:
            body = scope(app_name, user_id) | {"session": session_id, "messages": messages}
            await self._write("/v1/episodes", body, app_name, user_id)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        for memory in memories:
            metadata = dict(custom_metadata or {}) | memory.custom_metadata
            body = scope(app_name, user_id) | {
                "text": text(memory.content),
                "event_time": memory.timestamp,
                "metadata": metadata or None,
            }
            await self._write("/v1/facts", body, app_name, user_id)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        if not query.strip():
            return SearchMemoryResponse()
        body = scope(app_name, user_id) | {"text": query, "limit": self.limit, "at": self._at.get((app_name, user_id))}
        found = await asyncio.to_thread(self.api.post, "/v1/search", body)
        return SearchMemoryResponse(memories=[entry(hit) for hit in found["results"]])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Closes a fact. The id of an episode is an error: what was said is not deleted alone."""
        if memory_id:
            await asyncio.to_thread(self.api.delete, f"/v1/facts/{memory_id}")

    async def _write(self, path: str, body: dict[str, Any], app_name: str, user_id: str) -> None:
        written = await asyncio.to_thread(self.api.post, path, body)
        self._at[(app_name, user_id)] = written["at"]


def scope(app_name: str, user_id: str) -> dict[str, Any]:
    return {"agent": app_name, "user": user_id}


def text(content: types.Content | None) -> str:
    parts = content.parts if content and content.parts else []
    return "\n".join(part.text for part in parts if part.text and not part.thought).strip()


def message(event: Event, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": event.id,
        "role": "user" if event.author == "user" else "assistant",
        "content": text(event.content),
        "timestamp": datetime.fromtimestamp(event.timestamp, timezone.utc).isoformat(),
        "metadata": metadata | {"adk": {"author": event.author}},
    }


def entry(hit: dict[str, Any]) -> MemoryEntry:
    """A fact has the id by which delete_memory closes it; an episode has its author."""
    if hit["type"] == "fact":
        author, at = "memory", hit["fact"]["event_time"]
    else:
        episode = hit["episode"]
        author, at = (episode.get("metadata") or {}).get("adk", {}).get("author", episode["role"]), episode["timestamp"]
    role = "model" if hit["type"] == "episode" and author != "user" else "user"
    return MemoryEntry(
        id=hit["id"],
        author=author,
        timestamp=at,
        content=types.Content(role=role, parts=[types.Part(text=hit["text"])]),
        custom_metadata={"type": hit["type"], "score": hit["score"]},
    )
