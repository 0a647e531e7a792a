import { counted, rate, rows, text } from "./load.mjs";

async function post(path, body) {
  const answer = await fetch(process.env.SERVER + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const add = (n) => post("/v1/episodes", { user: "u", messages: text(n), infer: false });

await rate(0, rows, 8, add);
// Adds are answered before they are facts: the rate counts once the rows are there.
const known = async () => (await (await fetch(`${process.env.SERVER}/v1/stats?user=u`)).json()).facts;
while ((await known()) < rows) await new Promise((later) => setTimeout(later, 200));
const added = await rate(rows, 10 * counted, 8, add);
while ((await known()) < rows + 10 * counted) await new Promise((later) => setTimeout(later, 200));
const searched = await rate(0, counted, 8, (n) => post("/v1/search", { user: "u", text: text(n), types: ["fact"], limit: 5 }));
console.log(JSON.stringify({ add: added, search: searched }));
