// Compares adds and searches of Palimpsest with those of mem0's libraries for Node and
// Python, in one run: the same texts, the same embedder (a stub on this machine), no
// inference. Call: node compare.mjs PALIMPSEST DIR [ROWS [DELAY]], where DIR has the packages
// that install.sh installed. The stub takes DELAY ms for each text, as a model on this
// machine does; a library waits for it in each add.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { loadavg, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [program, packages, rows = "10000", delay = "0"] = process.argv.slice(2);
const minutes = 20; // a side that takes longer is ended
const work = mkdtempSync(join(tmpdir(), "palimpsest-mem0-"));

/** A vector of 256 numbers that depends on the text alone. */
function vector(text) {
  const bytes = Buffer.concat([0, 1, 2, 3, 4, 5, 6, 7].map((n) => createHash("sha256").update(`${n}${text}`).digest()));
  const numbers = Float32Array.from(bytes, (b) => b - 127.5);
  const length = Math.hypot(...numbers);
  return numbers.map((x) => x / length);
}

const embedder = createServer(async (request, answer) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const { input, encoding_format: format } = JSON.parse(Buffer.concat(parts).toString());
  const data = [input].flat().map((text, index) => {
    const v = vector(text);
    return { object: "embedding", index, embedding: format === "base64" ? Buffer.from(v.buffer).toString("base64") : [...v] };
  });
  if (delay > 0) await new Promise((embedded) => setTimeout(embedded, delay * data.length));
  answer.setHeader("Content-Type", "application/json");
  answer.end(JSON.stringify({ object: "list", model: "stub", data, usage: { prompt_tokens: 1, total_tokens: 1 } }));
}).listen(0, "127.0.0.1");
await new Promise((listening) => embedder.once("listening", listening));
const embeddings = `http://127.0.0.1:${embedder.address().port}/v1`;

const children = new Set();
function child(command, args, env) {
  const started = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"], timeout: minutes * 60_000 });
  children.add(started);
  started.on("exit", () => children.delete(started));
  return started;
}

/** Runs a side, which prints how many messages it adds a second, by one and in lists, and how many searches, in its last line. */
async function side(command, args, env) {
  const started = child(command, args, { ...env, EMBEDDINGS: embeddings, ROWS: rows, WORK: work });
  let out = "";
  for await (const part of started.stdout) out += part;
  return JSON.parse(out.trim().split("\n").at(-1));
}

/** Publishes messages on NATS, with the command that has many under way, and returns how many the stream has a second. */
async function publish(nats) {
  const lines = Array.from({ length: 2 * rows }, (_, n) => JSON.stringify({ content: `The user put crate ${n} on shelf ${(n * 104729) % 9973}`, infer: false }));
  const began = performance.now();
  const run = spawn(resolve(program), ["publish", "--quiet", "--user", "published", "--nats", nats], { stdio: ["pipe", "ignore", "inherit"] });
  run.stdin.end(lines.join("\n"));
  const [status] = await once(run, "exit");
  if (status !== 0) throw new Error(`publish has ended with ${status}`);
  return (lines.length * 1000) / (performance.now() - began);
}

async function palimpsest() {
  const up = child(resolve(program), ["up", "--ephemeral", "--http", "127.0.0.1:0", "--nats", "127.0.0.1:0"], {
    PALIMPSEST_LOG_LEVEL: "error", PALIMPSEST_EMBEDDER_MODEL: "openai:stub", PALIMPSEST_EMBEDDER_BASE_URL: embeddings, PALIMPSEST_EMBEDDER_DIMENSIONS: "256", PALIMPSEST_EMBEDDER_KEY: "none",
  });
  let said = "";
  for await (const part of up.stdout) {
    said += part;
    const address = /HTTP\s+(http:\S+)/.exec(said);
    if (address && /NATS\s+nats:\S+\s/.test(said)) {
      const result = await side("node", [join(here, "palimpsest.mjs")], { SERVER: address[1] });
      const published = await publish(/NATS\s+(nats:\S+)/.exec(said)[1]);
      up.kill();
      return { ...result, publish: published };
    }
  }
  throw new Error("palimpsest has ended");
}

try {
  const load = loadavg()[0].toFixed(1);
  const ours = await palimpsest();
  const node = await side("node", [join(here, "library.mjs"), resolve(packages)], { MEM0_TELEMETRY: "false" });
  const python = await side(join(resolve(packages), "python/bin/python"), [join(here, "library.py")], { MEM0_TELEMETRY: "False", MEM0_DIR: join(work, "mem0") });
  console.log(`${rows} rows, ${delay} ms an embedding, load before ${load}`);
  for (const [name, theirs] of [["npm", node], ["Python", python]]) {
    for (const [what, mine, other] of [["publish", "publish", "add"], ["add", "add", "add"], ["list", "list", "list"], ["search", "search", "search"]]) {
      console.log(`${what}: ${ours[mine].toFixed(0)}/s, mem0 for ${name} ${theirs[other].toFixed(1)}/s, ratio ${(ours[mine] / theirs[other]).toFixed(1)}`);
    }
  }
} finally {
  for (const left of children) left.kill();
  embedder.close();
  rmSync(work, { recursive: true, force: true });
}
