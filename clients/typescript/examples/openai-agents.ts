// node dist/examples/openai-agents.js http://127.0.0.1:8080
// Two sessions of one user. The second agent is told what the first session taught. A script
// stands in for the model, so that no key is needed.
import { randomUUID } from "node:crypto";
import { Agent, type Model, type ModelRequest, type ModelResponse, Runner, setTracingDisabled, Usage } from "@openai/agents";
import { PalimpsestSession } from "../openai-agents.js";

/** Answers with the number of items that it is given, and with what it is told about Oslo. */
class Script implements Model {
  async getResponse(request: ModelRequest): Promise<ModelResponse> {
    const told = request.systemInstructions?.includes("Oslo") ? ", and you live in Oslo." : ".";
    const text = `I see ${request.input.length} items${told}`;
    const content = [{ type: "output_text" as const, text }];
    return { usage: new Usage(), output: [{ type: "message", role: "assistant", status: "completed", content }] };
  }
  getStreamedResponse(): never {
    throw new Error("the script does not stream");
  }
}

async function say(session: PalimpsestSession, text: string): Promise<void> {
  const agent = new Agent({ name: "helper", instructions: await session.recall(text), model: new Script() });
  console.log((await new Runner().run(agent, text, { session })).finalOutput);
}

setTracingDisabled(true);
const options = { address: process.argv[2] ?? "http://127.0.0.1:8080", user: `agents-${randomUUID()}` };
const first = new PalimpsestSession({ ...options, sessionId: "first" });
await say(first, "I live in Oslo.");
await say(first, "What did I say?");
await first.end();
await say(new PalimpsestSession({ ...options, sessionId: "second" }), "Where do I live?");
