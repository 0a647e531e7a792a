// Record a message, wait for its facts, and ask a question with the generated client.
// After make clients: node examples/typescript/dist/quickstart.js http://127.0.0.1:8080
import { palimpsest } from "palimpsest-client";

declare const process: { argv: string[] };

const memory = palimpsest(process.argv[2] ?? "http://127.0.0.1:8080");
const user = "typescript";

const written = await memory.POST("/v1/episodes", {
  body: { user, messages: [{ content: "I live in Oslo." }], wait: true },
});
if (written.error) throw new Error(written.error.detail);
const found = await memory.POST("/v1/search", { body: { user, text: "Where do I live?", at: written.data.at } });
if (found.error) throw new Error(found.error.detail);
for (const hit of found.data.results ?? []) console.log(hit.text);

// A refused request has a problem with a stable code: this one names no user.
const refused = await memory.POST("/v1/search", { body: { text: "?" } });
console.log(refused.error?.code);
