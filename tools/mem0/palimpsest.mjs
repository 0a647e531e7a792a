import { counted, list, listed, rate, rows, text } from "./load.mjs";

async function post(path, body) {
  const answer = await fetch(process.env.SERVER + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const add = (n) => post("/v1/episodes", { user: "u", messages: text(n), infer: false });

const addList = (n) => post("/v1/episodes", { user: "u", messages: list(rows + 10 * counted + n * listed), infer: false });
// Adds are answered before they are facts: each rate counts once what was there before is one.
const known = async (facts) => {
  while ((await (await fetch(`${process.env.SERVER}/v1/stats?user=u`)).json()).facts < facts) await new Promise((later) => setTimeout(later, 200));
};

await rate(0, rows / listed, 8, (n) => post("/v1/episodes", { user: "u", messages: list(n * listed), infer: false }));
await known(rows);
const added = await rate(rows, 10 * counted, 8, add);
await known(rows + 10 * counted);
const lists = listed * (await rate(0, counted / 2, 8, addList));
await known(rows + 10 * counted + (listed * counted) / 2);
const searched = await rate(0, counted, 8, (n) => post("/v1/search", { user: "u", text: text(n), types: ["fact"], limit: 5 }));
console.log(JSON.stringify({ add: added, list: lists, search: searched }));
