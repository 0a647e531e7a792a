"""python example.py http://127.0.0.1:8080"""

import sys

from palimpsest_client.api.episodes import record
from palimpsest_client.api.search import search
from palimpsest_client.client import AuthenticatedClient
from palimpsest_client.models import Message, Problem, Record, Search

user = "python"
# Without API keys, as on the loopback, the token is not read.
memory = AuthenticatedClient(base_url=sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080", token="none")

written = record.sync(client=memory, body=Record(user=user, messages=[Message(content="I live in Oslo.")], wait=True))
if isinstance(written, Problem):
    sys.exit(written.detail)
found = search.sync(client=memory, body=Search(user=user, text="Where do I live?", at=written.at))
if isinstance(found, Problem):
    sys.exit(found.detail)
for hit in found.results:
    print(hit.text)

refused = search.sync(client=memory, body=Search(text="?"))
print(refused.code)
