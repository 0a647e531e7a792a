import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { counted, list, listed, rate, rows, text } from "./load.mjs";

const { Memory } = await import(pathToFileURL(join(process.argv[2], "node_modules/mem0ai/dist/oss/index.mjs")));
const work = process.env.WORK;
const memory = new Memory({
  embedder: { provider: "openai", config: { apiKey: "none", model: "stub", baseURL: process.env.EMBEDDINGS, embeddingDims: 256 } },
  vectorStore: { provider: "memory", config: { collectionName: "m", dimension: 256, dbPath: join(work, "vectors.db") } },
  llm: { provider: "openai", config: { apiKey: "none" } },
  historyDbPath: join(work, "history.db"),
});
const add = (n) => memory.add(text(n), { userId: "u", infer: false });

const addList = (n) => memory.add(list(n), { userId: "u", infer: false });

await rate(0, rows, 8, add);
const added = await rate(rows, counted, 8, add);
const lists = listed * (await rate(0, counted / listed, 8, (n) => addList(rows + counted + n * listed)));
const searched = await rate(0, counted, 8, (n) => memory.search(text(n), { filters: { user_id: "u" }, topK: 5 }));
console.log(JSON.stringify({ add: added, list: lists, search: searched }));
process.exit();
