"""Calls of the HTTP interface that the adapters share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx


class PalimpsestError(Exception):
    """A problem document: the server refused a request.

    ``code`` is stable, such as ``invalid_field``; ``field`` is the offending member,
    if there is one.
    """

    def __init__(self, status: int, problem: dict[str, Any]):
        self.status = status
        self.code = str(problem.get("code", ""))
        self.field = str(problem.get("field", ""))
        super().__init__(f"{status} {self.code} {self.field} {problem.get('detail', '')}".strip())


class API:
    """The server at an address such as http://127.0.0.1:8080. Threads may share it."""

    def __init__(self, address: str, *, api_key: str | None = None, project: str | None = None, timeout: float = 60):
        self._http = httpx.Client(
            base_url=address,
            timeout=timeout,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            params={"project": project} if project else {},
        )

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """Reads again while the answer is stale, so that a read given ``at`` has that write."""
        while True:
            answer = self._answer(self._http.get(path, params={k: v for k, v in params.items() if v is not None}))
            if not answer.get("stale"):
                return answer

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        while True:
            answer = self._answer(self._http.post(path, json={k: v for k, v in body.items() if v is not None}))
            if not answer.get("stale"):
                return answer

    def delete(self, path: str) -> dict[str, Any]:
        return self._answer(self._http.delete(path))

    def pages(self, path: str, rows: str, **params: Any) -> Iterator[dict[str, Any]]:
        """Yields the rows of all pages of a list."""
        if params.get("filters") is not None:
            params["filters"] = json.dumps(params["filters"])
        cursor = None
        while True:
            page = self.get(path, cursor=cursor, **params)
            yield from page[rows]
            cursor = page.get("next")
            if not cursor:
                return

    def close(self) -> None:
        self._http.close()

    @staticmethod
    def _answer(response: httpx.Response) -> dict[str, Any]:
        if response.is_success:
            return response.json() if response.content else {}
        try:
            problem = response.json()
        except ValueError:
            problem = {"detail": response.text[:200]}
        raise PalimpsestError(response.status_code, problem)
