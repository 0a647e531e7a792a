"""Record a message, wait for its facts, and ask a question. Needs Python 3.8 and no package."""

import argparse
import json
import urllib.request


def call(server, path, body):
    request = urllib.request.Request(
        server + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--server", default="http://127.0.0.1:8080")
    flags.add_argument("--user", default="nora")
    args = flags.parse_args()

    written = call(args.server, "/v1/episodes", {
        "user": args.user, "agent": "assistant", "session": "s1",
        "messages": [{"role": "user", "content": "I moved to Bergen last week."}], "wait": True,
    })
    for result in written["results"]:
        print(result["event"], result["memory"])

    found = call(args.server, "/v1/search", {"user": args.user, "text": "Where do I live?", "limit": 1})
    for hit in found["results"]:
        print("found:", hit["text"])


if __name__ == "__main__":
    main()
