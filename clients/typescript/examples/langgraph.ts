// node dist/examples/langgraph.js http://127.0.0.1:8080
// A graph whose node keeps what the user says, and answers from what earlier threads kept.
import { randomUUID } from "node:crypto";
import { Annotation, END, type LangGraphRunnableConfig, START, StateGraph } from "@langchain/langgraph";
import { PalimpsestStore } from "../langgraph.js";

const State = Annotation.Root({ user: Annotation<string>, said: Annotation<string>, answer: Annotation<string> });

async function answer(state: typeof State.State, config: LangGraphRunnableConfig) {
  const store = config.store;
  if (!store) throw new Error("the graph has no store");
  const namespace = ["memories", state.user];
  const [known] = await store.search(namespace, { query: state.said, limit: 1 });
  await store.put(namespace, randomUUID(), { text: state.said });
  return { answer: known ? `You said: ${known.value.text}` : "I will remember that." };
}

const store = new PalimpsestStore({ address: process.argv[2] ?? "http://127.0.0.1:8080", userOf: (namespace) => namespace[1] });
const graph = new StateGraph(State).addNode("reply", answer).addEdge(START, "reply").addEdge("reply", END).compile({ store });

const user = `langgraph-${randomUUID()}`;
for (const said of ["My bicycle is red.", "Which colour is my bicycle?"]) {
  console.log((await graph.invoke({ user, said })).answer);
}
