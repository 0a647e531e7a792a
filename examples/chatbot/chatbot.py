"""A chat that remembers, with the Python client of mem0 and any model with OpenAI's chat completions.

    palimpsest up
    pip install mem0ai
    python chatbot.py nora http://127.0.0.1:11434/v1 llama3.2
"""

import json
import os
import sys
import urllib.request

from mem0 import MemoryClient


def ask(url, model, messages):
    """Return the reply of the model."""
    request = urllib.request.Request(
        url + "/chat/completions",
        json.dumps({"model": model, "messages": messages}).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "")},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def main():
    user, url, model = sys.argv[1:4]
    memory = MemoryClient(api_key=os.environ.get("MEM0_API_KEY", "none"), host=os.environ.get("MEM0_BASE_URL", "http://127.0.0.1:8080"))
    history = []
    for line in sys.stdin:
        found = memory.search(line, filters={"user_id": user})["results"]
        known = "\n".join("- " + m["memory"] for m in found)
        system = {"role": "system", "content": "You are a friendly assistant. What you know about the user:\n" + known}
        said = {"role": "user", "content": line.strip()}
        reply = {"role": "assistant", "content": ask(url, model, [system, *history, said])}
        memory.add([said, reply], user_id=user)
        history += [said, reply]
        print(reply["content"], flush=True)


main()
