"""Calls the filter of examples/openwebui as Open WebUI does. PALIMPSEST names the server."""

import copy
import importlib.util
import os
import pathlib
import sys
import unittest
import uuid

file = pathlib.Path(__file__).parents[3] / "examples" / "openwebui" / "palimpsest_filter.py"
spec = importlib.util.spec_from_file_location("palimpsest_filter", file)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)


class Behaviour(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.filter = module.Filter()
        self.filter.valves.address = os.environ["PALIMPSEST"]
        self.filter.valves.timeout = 60
        self.user = {"id": str(uuid.uuid4()), "name": "Nora", "role": "user"}

    async def chat(self, chat, *messages):
        body = {"model": "m", "messages": [{"role": role, "content": text} for role, text in messages]}
        before = copy.deepcopy(body["messages"])
        got = await self.filter.inlet(body, __user__=self.user, __metadata__={"chat_id": chat})
        self.assertEqual(got["messages"][-len(before) :], before)
        return got["messages"][: -len(before)]

    async def test_recalls_in_another_chat(self):
        self.assertEqual(await self.chat("one", ("user", "I live in Oslo.")), [])
        answered = {"chat_id": "one", "messages": [{"role": "user", "content": "I live in Oslo."}, {"role": "assistant", "content": "Nice."}]}
        for _ in range(2):
            self.assertIs(await self.filter.outlet(answered, __user__=self.user), answered)
        said = httpx_get(self.filter, user=self.user["id"])
        self.assertEqual([(e["role"], e["content"]) for e in said], [("assistant", "Nice."), ("user", "I live in Oslo.")])
        # A prompt may come before the fact is visible: wait for the facts of this user.
        while not httpx_get(self.filter, "facts", user=self.user["id"]):
            pass
        added = await self.chat("two", ("system", "Be brief."), ("user", "Where do I live?"))
        self.assertEqual([m["role"] for m in added], ["system"])
        self.assertIn("Oslo", added[0]["content"])

    async def test_goes_on_without_memory(self):
        self.filter.valves.address = "http://127.0.0.1:1"
        self.assertEqual(await self.chat("one", ("user", "I live in Oslo.")), [])
        body = {"messages": [{"role": "assistant", "content": "Nice."}]}
        self.assertIs(await self.filter.outlet(body, __user__=self.user), body)


def httpx_get(of, rows="episodes", **params):
    answer = module.httpx.get(f"{of.valves.address}/v1/{rows}", params=params)
    answer.raise_for_status()
    return answer.json()[rows]


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
