// Runs the same operations on PalimpsestSession and on the SDK's MemorySession, and compares
// the answers. PALIMPSEST names the server.
import { deepStrictEqual, match } from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { type AgentInputItem, MemorySession, type Session } from "@openai/agents";
import { PalimpsestSession } from "../openai-agents.js";

const items: AgentInputItem[] = [
  { role: "user", content: "  I live in Oslo.\n" },
  { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "Noted — ja!" }] },
  { role: "user", content: [{ type: "input_text", text: "What?" }, { type: "input_image", image: "data:," }] },
  { type: "function_call", callId: "c1", name: "look", arguments: "{}", status: "completed" },
  { type: "function_call_result", callId: "c1", name: "look", status: "completed", output: "x".repeat(20000) },
  { role: "system", content: "Be brief." },
  { role: "user", content: "" },
  { role: "user", content: "The same." },
  { role: "user", content: "The same." },
];

test("items, pop and clear", async () => {
  const reference: Session = new MemorySession();
  const options = { address: process.env.PALIMPSEST as string, sessionId: randomUUID(), user: randomUUID() };
  const ours = new PalimpsestSession(options);
  async function both<T>(ask: (s: Session) => Promise<T>): Promise<void> {
    deepStrictEqual(await ask(ours), await ask(reference));
  }
  await both((s) => s.getItems());
  await both((s) => s.popItem());
  await both((s) => s.addItems([]));
  await both((s) => s.addItems(items));
  for (const limit of [undefined, 0, 1, 3, 100]) await both((s) => s.getItems(limit));
  deepStrictEqual(await new PalimpsestSession(options).getItems(), items);
  for (let n = 0; n < 3; n++) await both((s) => s.popItem());
  await both((s) => s.addItems(items.slice(0, 2)));
  await both((s) => s.popItem());
  await both((s) => s.getItems());
  await both((s) => s.addItems(Array.from({ length: 230 }, (_, n) => ({ role: "user", content: `number ${n}` }))));
  await both((s) => s.getItems());
  await both((s) => s.getItems(120));
  await both((s) => s.clearSession());
  await both((s) => s.getItems());
  await both((s) => s.addItems(items.slice(2, 4)));
  await both((s) => s.getItems());
  await ours.end();
  match(await ours.recall("Where do I live?"), /Oslo/);
});
