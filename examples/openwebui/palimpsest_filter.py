"""
title: Palimpsest
description: Adds what Palimpsest knows of the user to each prompt, and records the conversation.
version: 0.1.0
requirements: httpx
"""

import hashlib
from typing import Any, Optional

import httpx
from pydantic import BaseModel, Field


class Filter:
    """A filter function of Open WebUI: paste this file under Admin Panel, Functions."""

    class Valves(BaseModel):
        address: str = Field(default="http://127.0.0.1:8080", description="Address of Palimpsest.")
        api_key: str = Field(default="", description="API key, if the server requires one.")
        agent: str = Field(default="openwebui", description="The agent that the messages belong to.")
        budget: int = Field(default=1000, description="Tokens of memory that a prompt gets at most.")
        timeout: float = Field(default=3, description="Seconds after which the chat goes on without memory.")

    def __init__(self):
        self.valves = self.Valves()

    async def inlet(self, body: dict, __user__: Optional[dict] = None, __metadata__: Optional[dict] = None) -> dict:
        """Runs before the model: adds a system message, and records what the user said."""
        said = last(body, "user")
        if not said or not __user__:
            return body
        try:
            known = await self._post("/v1/context", {"user": __user__["id"], "text": said, "budget": self.valves.budget})
            await self._record(said, "user", body, __user__, __metadata__)
        except httpx.HTTPError as error:
            print(f"palimpsest: {error!r}")
            return body
        if known.get("context"):
            body["messages"].insert(0, {"role": "system", "content": known["context"]})
        return body

    async def outlet(self, body: dict, __user__: Optional[dict] = None, __metadata__: Optional[dict] = None) -> dict:
        """Runs after the model: records the answer."""
        said = last(body, "assistant")
        if said and __user__:
            try:
                await self._record(said, "assistant", body, __user__, __metadata__)
            except httpx.HTTPError as error:
                print(f"palimpsest: {error!r}")
        return body

    async def _record(self, text: str, role: str, body: dict, user: dict, metadata: Optional[dict]) -> None:
        chat = (metadata or {}).get("chat_id") or body.get("chat_id") or ""
        count = sum(m.get("role") != "system" for m in body["messages"])
        # The place of a message in its chat makes its id, so that a repeated call records nothing.
        name = hashlib.sha256(f"{chat}/{count}/{role}/{text}".encode()).hexdigest() if chat else None
        message = {"role": role, "content": text} | ({"id": name} if name else {})
        await self._post(
            "/v1/episodes", {"user": user["id"], "agent": self.valves.agent, "session": chat, "messages": [message]}
        )

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.valves.api_key}"} if self.valves.api_key else {}
        async with httpx.AsyncClient(base_url=self.valves.address, headers=headers, timeout=self.valves.timeout) as http:
            answer = await http.post(path, json=body)
            answer.raise_for_status()
            return answer.json() if answer.content else {}


def last(body: dict, role: str) -> str:
    """The text of the newest message of a role. Images and files are left out."""
    for message in reversed(body.get("messages", [])):
        if message.get("role") == role:
            content = message.get("content") or ""
            if isinstance(content, list):
                content = "\n".join(part.get("text") or "" for part in content)
            return content.strip()
    return ""
