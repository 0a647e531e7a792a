// Runs the same operations on PalimpsestStore and on LangGraph's InMemoryStore, and compares
// the answers. PALIMPSEST names the server.
import { deepStrictEqual, ok, rejects } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { beforeEach, test } from "node:test";
import { Embeddings } from "@langchain/core/embeddings";
import { type BaseStore, InMemoryStore, type Item } from "@langchain/langgraph";
import { PalimpsestStore } from "../langgraph.js";

const words = ["cats", "dogs", "pizza", "hiking"];

/** Counts a few words, so that the ranking of the reference is exact. */
class Counts extends Embeddings {
  async embedQuery(text: string): Promise<number[]> {
    return [...words.map((word) => text.split(word).length - 1), 0.01];
  }
  async embedDocuments(texts: string[]): Promise<number[][]> {
    return Promise.all(texts.map((text) => this.embedQuery(text)));
  }
}

let reference: BaseStore;
let store: PalimpsestStore;

beforeEach(() => {
  const index = { dims: words.length + 1, embeddings: new Counts({}), fields: ["text"] };
  reference = new InMemoryStore({ index });
  store = new PalimpsestStore({ address: process.env.PALIMPSEST as string, agent: `lg-${randomUUID()}`, userOf: (ns) => ns.at(-1) });
});

/** An item without times and scores, which differ between stores. */
const plain = (one: Item | null) => one && { namespace: one.namespace, key: one.key, value: one.value };
const place = (one: Item) => [...one.namespace, one.key].join("/");
const unordered = (all: Item[]) => [...all].sort((a, b) => (place(a) < place(b) ? -1 : 1)).map(plain);

/** Asks both stores, compares what view shows of the answers, and returns ours. */
async function both<T>(ask: (s: BaseStore) => Promise<T>, view: (answer: T) => unknown = (a) => a): Promise<T> {
  const [want, got] = [await ask(reference), await ask(store)];
  deepStrictEqual(view(got), view(want));
  return got;
}

async function putSome(): Promise<void> {
  for (const s of [reference, store]) {
    await s.put(["memories", "nora"], "a", { text: "likes cats", n: 1, tags: ["x"] });
    await s.put(["memories", "nora"], "b", { text: "eats pizza", n: 2 });
    await s.put(["memories", "bob"], "a", { text: "goes hiking", n: 3 });
    await s.put(["notes", "bob"], "a b/c!", { text: "likes cats", n: 4.5, done: true });
  }
}

test("case tells keys apart", async () => {
  const keys = ["Key", "key", "KEY", "k%C3", "k%c3", "Ä", "ä"];
  for (const s of [reference, store]) {
    for (const key of keys) await s.put(["Memories", "nora"], key, { text: "likes cats", said: key });
  }
  for (const key of keys) await both((s) => s.get(["Memories", "nora"], key), plain);
});

test("get, put and delete", async () => {
  const get = (s: BaseStore) => s.get(["memories", "nora"], "a");
  await both(get);
  await putSome();
  const first = await both(get, plain);
  await both((s) => s.get(["notes", "bob"], "a b/c!"), plain);
  await both((s) => s.put(["memories", "nora"], "a", { text: "likes dogs", nothing: null }));
  const second = await both(get, plain);
  deepStrictEqual(second?.createdAt, first?.createdAt);
  ok((second?.updatedAt as Date) > (first?.updatedAt as Date));
  await both((s) => s.delete(["memories", "nora"], "a"));
  await both(get);
  await both((s) => s.delete(["memories", "nora"], "a"));
});

test("search by prefix, filter and page", async () => {
  await putSome();
  for (const prefix of [[], ["memories"], ["memories", "nora"], ["mem"], ["memories", "nora", "x"]]) {
    await both((s) => s.search(prefix), unordered);
  }
  for (const filter of [{ n: 1 }, { n: { $gt: 1 } }, { n: { $gte: 2, $lt: 4 } }, { n: { $ne: 1 } }, { n: { $in: [1, 3] } }, { n: { $nin: [1] } }, { done: true }]) {
    await both((s) => s.search([], { filter }), unordered);
  }
  for (const [limit, offset] of [[1, 0], [3, 2], [10, 4]]) {
    await both((s) => s.search([], { limit, offset } as { limit: number; offset: number }), (a) => a.length);
  }
});

test("search ranks", async () => {
  await putSome();
  for (const [query, prefix] of [["pizza", ["memories"]], ["hiking", []], ["cats", ["notes"]]] as [string, string[]][]) {
    const found = await both((s) => s.search(prefix, { query }), (a) => [plain(a[0] ?? null), unordered(a)]);
    ok((found[0]?.score ?? 0) > 0);
  }
});

test("namespaces", async () => {
  await putSome();
  for (const ask of [{}, { prefix: ["memories"] }, { suffix: ["bob"] }, { maxDepth: 1 }, { limit: 2, offset: 1 }]) {
    await both((s) => s.listNamespaces(ask));
  }
});

test("a batch reads what was there before", async () => {
  const ops = [
    { namespace: ["memories", "nora"], key: "a", value: { text: "one" } },
    { namespace: ["memories", "nora"], key: "a" },
    { namespace: ["memories", "nora"], key: "a", value: { text: "two" } },
  ];
  await both((s) => s.batch(ops), (a) => plain(a[1] as Item | null));
  await both((s) => s.get(["memories", "nora"], "a"), plain);
});

test("refuses", async () => {
  for (const namespace of [[], ["a.b"], [""], ["langgraph"]]) {
    for (const s of [reference, store]) await rejects(s.put(namespace, "k", { text: "x" }));
  }
});
