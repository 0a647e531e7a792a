"""Runs the same operations on PalimpsestSession and on the SDK's SQLiteSession, and
compares the answers. PALIMPSEST names the server."""

import os
import sys
import unittest
import uuid

from agents import Session, SQLiteSession

from palimpsest_adapters.openai_agents import PalimpsestSession

ITEMS = [
    {"role": "user", "content": "  I live in Oslo.\n"},
    {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
     "content": [{"type": "output_text", "text": "Noted — ja!", "annotations": [], "logprobs": None}]},
    {"role": "user", "content": [{"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": "data:,"}]},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "x" * 20000},
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": ""},
    {"role": "user", "content": "The same."},
    {"role": "user", "content": "The same."},
]  # fmt: skip


class Behaviour(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.id, self.user = f"s-{uuid.uuid4()}", f"u-{uuid.uuid4()}"
        self.ours, self.reference = self.session(), SQLiteSession(self.id)
        self.addCleanup(self.reference.close)

    def session(self, **more):
        session = PalimpsestSession(self.id, os.environ["PALIMPSEST"], user=self.user, **more)
        self.addCleanup(session.api.close)
        return session

    async def both(self, ask):
        want, got = await ask(self.reference), await ask(self.ours)
        self.assertEqual(got, want)
        return got

    async def test_items(self):
        self.assertIsInstance(self.ours, Session)
        await self.both(lambda s: s.get_items())
        await self.both(lambda s: s.pop_item())
        await self.both(lambda s: s.add_items([]))
        await self.both(lambda s: s.add_items(ITEMS[:5]))
        await self.both(lambda s: s.add_items(ITEMS[5:]))
        for limit in [None, 0, 1, 3, 100]:
            await self.both(lambda s: s.get_items(limit))
        self.assertEqual(await self.session().get_items(), ITEMS)

    async def test_pop_and_clear(self):
        await self.both(lambda s: s.add_items(ITEMS))
        for _ in range(3):
            await self.both(lambda s: s.pop_item())
        await self.both(lambda s: s.get_items(2))
        await self.both(lambda s: s.add_items(ITEMS[:2]))
        await self.both(lambda s: s.pop_item())
        await self.both(lambda s: s.get_items())
        await self.both(lambda s: s.clear_session())
        await self.both(lambda s: s.get_items())
        await self.both(lambda s: s.pop_item())
        await self.both(lambda s: s.add_items(ITEMS[2:4]))
        await self.both(lambda s: s.get_items())

    async def test_more_than_a_page(self):
        items = [{"role": "user", "content": f"number {i}"} for i in range(250)]
        await self.both(lambda s: s.add_items(items))
        await self.both(lambda s: s.get_items())
        await self.both(lambda s: s.get_items(120))

    async def test_facts_outlive_the_session(self):
        await self.ours.add_items([{"role": "user", "content": "I live in Oslo."}])
        await self.ours.clear_session()
        await self.ours.end()
        self.assertIn("Oslo", await self.ours.recall("Where do I live?"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
