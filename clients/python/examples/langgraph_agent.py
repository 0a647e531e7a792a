"""python langgraph_agent.py http://127.0.0.1:8080

A graph whose node keeps what the user says, and answers from what earlier threads kept."""

import sys
import uuid
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

from palimpsest_adapters.langgraph import PalimpsestStore


class State(TypedDict):
    user: str
    said: str
    answer: str


def answer(state: State, *, store: BaseStore) -> dict[str, str]:
    namespace = ("memories", state["user"])
    known = store.search(namespace, query=state["said"], limit=1)
    store.put(namespace, str(uuid.uuid4()), {"text": state["said"]})
    return {"answer": f"You said: {known[0].value['text']}" if known else "I will remember that."}


store = PalimpsestStore(
    sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080",
    user_of=lambda namespace: namespace[1] if len(namespace) > 1 else None,
)
graph = StateGraph(State)
graph.add_node("answer", answer)
graph.add_edge(START, "answer")
graph.add_edge("answer", END)
app = graph.compile(store=store)

user = f"langgraph-{uuid.uuid4()}"
for said in ["My bicycle is red.", "Which colour is my bicycle?"]:
    print(app.invoke({"user": user, "said": said})["answer"])
