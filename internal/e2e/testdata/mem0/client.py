"""Calls every core method of the published client and fails on a wrong answer."""

import os
import sys
import time

from mem0 import MemoryClient

host, user = sys.argv[1:]
c = MemoryClient(api_key=os.environ.get("MEM0_API_KEY", "none"), host=host)
own = {"user_id": user}


def eventually(what, read, done):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        v = read()
        if done(v):
            return v
        time.sleep(0.05)
    raise AssertionError(what + " did not come about")


def rejects(what):
    try:
        what()
    except Exception as e:  # the client's own types
        return type(e).__name__
    raise AssertionError("accepted")


added = c.add("My name is Ada. I live in Oslo.", user_id=user, app_id="app", run_id="run", metadata={"tag": "work"})
assert added["status"] == "PENDING", added
every = eventually("two memories", lambda: c.get_all(filters=own), lambda v: v["count"] == 2)
oslo = next(m for m in every["results"] if "Oslo" in m["memory"])
assert (oslo["user_id"], oslo["app_id"], oslo["run_id"]) == (user, "app", "run"), oslo

for filters, n in [
    ({"AND": [own, {"app_id": "app"}]}, 2),
    ({"AND": [own, {"app_id": "other"}]}, 0),
    ({"AND": [own, {"run_id": "run"}]}, 2),
    ({"AND": [own, {"NOT": {"run_id": "run"}}]}, 0),
    ({"OR": [own, {"user_id": user + "-other"}]}, 2),
    ({"user_id": {"in": [user]}}, 2),
    ({**own, "text": {"icontains": "oslo"}}, 1),
    ({**own, "created_at": {"lt": "2020-01-01"}}, 0),
    ({**own, "metadata": {"tag": "work"}}, 2),
    ({**own, "tag": {"ne": "work"}}, 0),
]:
    got = c.get_all(filters=filters)["count"]
    assert got == n, (filters, got)

pages = [c.get_all(filters=own, page=n, page_size=1) for n in (1, 2)]
assert len({p["results"][0]["id"] for p in pages}) == 2 and pages[0]["next"] and not pages[1]["next"], pages

found = c.search("Where do I live?", filters=own, top_k=1)["results"]
assert [m["id"] for m in found] == [oslo["id"]] and found[0]["score"] > 0, found
changed = c.update(oslo["id"], text="Ada lives in Bergen.", expiration_date="2020-01-01")
assert changed["memory"] == "Ada lives in Bergen." and changed["expiration_date"] == "2020-01-01", changed
assert c.get_all(filters=own)["count"] == 1
assert c.get_all(filters=own, show_expired=True)["count"] == 2
eventually("an update in the history", lambda: c.history(oslo["id"]), lambda v: [h["event"] for h in v] == ["ADD", "UPDATE"])
assert any(e["name"] == user for e in c.users()["results"])
c.batch_update([{"memory_id": oslo["id"], "text": "Ada lives in Rome."}])
assert c.get(oslo["id"])["memory"] == "Ada lives in Rome."
c.batch_delete([{"memory_id": oslo["id"]}])
assert rejects(lambda: c.get(oslo["id"])) == "MemoryNotFoundError"
assert rejects(lambda: c.search("x", filters={"user_id": {"between": [1, 2]}})) == "ValidationError"
name = c.get_all(filters=own, show_expired=True)["results"][0]
c.delete(name["id"])
assert rejects(lambda: c.get(name["id"])) == "MemoryNotFoundError"
c.delete_all(user_id=user)
assert c.get_all(filters=own)["count"] == 0
c.delete_users(user_id=user)
print("passed")
