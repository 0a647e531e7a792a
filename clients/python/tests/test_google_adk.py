"""Holds PalimpsestMemoryService to what ADK's InMemoryMemoryService does. PALIMPSEST
names the server."""

import os
import sys
import unittest
import uuid

from google.adk.events import Event
from google.adk.memory import InMemoryMemoryService
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from palimpsest_adapters.google_adk import PalimpsestMemoryService


def event(author, *texts):
    parts = [types.Part(text=text) for text in texts]
    return Event(id=str(uuid.uuid4()), author=author, content=types.Content(role=author, parts=parts))


class Behaviour(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.ours, self.reference = PalimpsestMemoryService(os.environ["PALIMPSEST"]), InMemoryMemoryService()
        self.addCleanup(self.ours.api.close)
        self.user = f"u-{uuid.uuid4()}"

    async def find(self, service, query, app="shop", user=None):
        found = await service.search_memory(app_name=app, user_id=user or self.user, query=query)
        return [(m.id, m.author, m.content.parts[0].text) for m in found.memories if m.custom_metadata.get("type") != "fact"]

    async def test_sessions(self):
        said = event("user", "My bicycle is a red Brompton.")
        session = Session(
            id="one", app_name="shop", user_id=self.user,
            events=[said, event("helper", "A Brompton folds well."), event("user"), Event(author="user")],
        )  # fmt: skip
        for service in (self.reference, self.ours):
            self.assertEqual(await self.find(service, "bicycle"), [])
            await service.add_session_to_memory(session)
            await service.add_session_to_memory(session)
            self.assertEqual((await self.find(service, "bicycle"))[0], (said.id, "user", "My bicycle is a red Brompton."))
            both = await self.find(service, "Brompton")
            self.assertEqual(sorted(author for _, author, _ in both), ["helper", "user"])
            self.assertEqual(await self.find(service, "bicycle", user="another"), [])
            self.assertEqual(await self.find(service, "bicycle", app="another"), [])
            self.assertEqual(await self.find(service, ""), [])

    async def test_events(self):
        said = event("user", "My cello needs a string.")
        for service in (self.reference, self.ours):
            for _ in range(2):
                await service.add_events_to_memory(app_name="shop", user_id=self.user, events=[said], session_id="one")
            self.assertEqual([i for i, _, _ in await self.find(service, "cello")], [said.id])

    async def test_stated_memories(self):
        memory = MemoryEntry(content=types.Content(role="user", parts=[types.Part(text="Nora plays the oboe.")]))
        await self.ours.add_memory(app_name="shop", user_id=self.user, memories=[memory])

        async def oboe():
            found = await self.ours.search_memory(app_name="shop", user_id=self.user, query="oboe")
            return [m for m in found.memories if m.content.parts[0].text == "Nora plays the oboe."]

        found = await oboe()
        self.assertEqual(len(found), 1)
        await self.ours.delete_memory(app_name="shop", user_id=self.user, memory_id=found[0].id)
        self.assertEqual(await oboe(), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
