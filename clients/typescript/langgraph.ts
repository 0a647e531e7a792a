import { isDeepStrictEqual } from "node:util";
import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchOperation,
} from "@langchain/langgraph";
import { API, type Connection, type Row } from "./api.js";

/** Rows of one request. */
const PAGE = 1000;

type SearchItem = Awaited<ReturnType<BaseStore["search"]>>[number];

export interface StoreOptions extends Connection {
  /** The agent that the facts belong to; "langgraph" unless given. */
  agent?: string;
  /** The user that the items of a namespace belong to. An erasure of that user covers them. */
  userOf?: (namespace: string[]) => string | undefined;
}

/**
 * A LangGraph store that keeps each item as one fact. Earlier values stay in the history of
 * the fact. The Python adapter reads the same items.
 *
 * A search with a query ranks items by text, content, memory or data of their value, or else
 * by all of it. A put with index false keeps the item out of the ranking; names of fields in
 * index are not read. The JSON of a value has at most 15 KB.
 */
export class PalimpsestStore extends BaseStore {
  private readonly api: API;
  private readonly agent: string;

  constructor(private readonly options: StoreOptions) {
    super();
    this.api = new API(options);
    this.agent = options.agent ?? "langgraph";
  }

  /** Reads see what was there before the batch; of several puts of a key the last counts. */
  async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const results: unknown[] = [];
    const puts = new Map<string, PutOperation>();
    for (const op of operations) {
      if ("value" in op) {
        puts.set(place(op.namespace, op.key), op);
        results.push(undefined);
      } else if ("namespacePrefix" in op) {
        results.push(await this.find(op));
      } else if ("key" in op) {
        results.push(await this.item(op));
      } else {
        results.push(await this.namespaces(op as ListNamespacesOperation));
      }
    }
    for (const op of puts.values()) await this.write(op);
    return results as OperationResults<Op>;
  }

  private facts(condition: Row): AsyncGenerator<Row> {
    return this.api.pages("/v1/facts", "facts", { agent: this.agent, limit: PAGE, filters: JSON.stringify(condition) });
  }

  private async fact(namespace: string[], key: string): Promise<Row | undefined> {
    for await (const fact of this.facts(equals("object", place(namespace, key)))) return fact;
    return undefined;
  }

  private async item(op: GetOperation): Promise<Item | null> {
    const fact = await this.fact(op.namespace, op.key);
    return fact ? item(fact) : null;
  }

  private async write(op: PutOperation): Promise<void> {
    let known = await this.fact(op.namespace, op.key);
    if (op.value === null) {
      if (known) await this.api.call("DELETE", `/v1/facts/${known.id}`);
      return;
    }
    const kept = {
      namespace: op.namespace,
      within: [...op.namespace, ""].map((_, n) => path(op.namespace.slice(0, n))),
      key: op.key,
      value: op.value,
      indexed: op.index !== false,
    };
    const body = { text: text(op), metadata: { langgraph: kept } };
    if (!known) {
      // Facts with different objects are different facts, however alike their texts are.
      const object = { predicate: "item", object: place(op.namespace, op.key) };
      const scope = { agent: this.agent, user: this.options.userOf?.(op.namespace) };
      const stated = await this.api.post("/v1/facts", { ...body, ...object, ...scope });
      known = stated.fact as Row;
      // A confirmed fact does not decay, and is never pruned.
      await this.api.post(`/v1/facts/${known.id}/confirm`, {});
      if (stated.results[0].event === "ADD") return;
      // Another writer put the item in between.
    }
    await this.api.post(`/v1/facts/${known.id}/correct`, body);
  }

  private async find(op: SearchOperation): Promise<SearchItem[]> {
    const condition = equals("metadata.langgraph.within", path(op.namespacePrefix));
    const { offset = 0, limit = 10, filter = {} } = op;
    const found: SearchItem[] = [];
    for await (const one of op.query ? this.ranked(op.query, condition) : this.listed(condition)) {
      if (found.length >= offset + limit) break;
      if (Object.entries(filter).every(([key, bound]) => matches(one.value[key], bound))) found.push(one);
    }
    return found.slice(offset, offset + limit);
  }

  private async *listed(condition: Row): AsyncGenerator<SearchItem> {
    for await (const fact of this.facts(condition)) yield item(fact);
  }

  /** Yields what the query finds, best first, and then the rest without a score. */
  private async *ranked(query: string, condition: Row): AsyncGenerator<SearchItem> {
    const filters = { AND: [condition, equals("metadata.langgraph.indexed", true)] };
    const asked: Row = { agent: this.agent, text: query, types: ["fact"], limit: PAGE, filters };
    const seen = new Set<string>();
    do {
      const page = await this.api.post("/v1/search", asked);
      for (const hit of page.results) {
        seen.add(hit.id);
        yield { ...item(hit.fact), score: hit.score };
      }
      asked.cursor = page.next;
    } while (asked.cursor);
    for await (const fact of this.facts(condition)) {
      if (!seen.has(fact.id)) yield item(fact);
    }
  }

  private async namespaces(op: ListNamespacesOperation): Promise<string[][]> {
    const found = new Map<string, string[]>();
    for await (const fact of this.facts({ field: "metadata.langgraph.key", operator: "exists" })) {
      const { namespace } = item(fact);
      if (!(op.matchConditions ?? []).every((condition) => fits(condition, namespace))) continue;
      const short = namespace.slice(0, op.maxDepth);
      found.set(path(short), short);
    }
    const sorted = [...found.keys()].sort().map((name) => found.get(name) as string[]);
    return sorted.slice(op.offset, op.offset + op.limit);
  }
}

function equals(field: string, value: unknown): Row {
  return { field, operator: "eq", value };
}

/** Two namespaces never have the same path: ["a", "b/C"] is a/b%2f%43/. */
function path(namespace: string[]): string {
  return namespace.map((label) => quote(label) + "/").join("");
}

function place(namespace: string[], key: string): string {
  return path(namespace) + quote(key);
}

/** Escapes capitals too: texts that differ in case alone are one fact. The Python adapter does the same. */
function quote(label: string): string {
  return [...new TextEncoder().encode(label)]
    .map((byte) => [String.fromCharCode(byte), byte.toString(16).padStart(2, "0")])
    .map(([char, hex]) => (/[a-z0-9_.~-]/.test(char) ? char : `%${hex}`))
    .join("");
}

/** The text that is searched. It ends in the path, because equal texts of one user are one fact. */
function text(op: PutOperation): string {
  const value = op.value ?? {};
  const words = ["text", "content", "memory", "data"].map((key) => value[key]).find((one) => typeof one === "string");
  return `${words || JSON.stringify(value)}\n[${place(op.namespace, op.key)}]`;
}

function item(fact: Row): Item {
  const { namespace, key, value } = fact.metadata.langgraph;
  return { namespace, key, value, createdAt: new Date(fact.created_at), updatedAt: new Date(fact.updated_at) };
}

const comparisons: Record<string, (a: any, b: any) => boolean> = {
  $eq: (a, b) => a === b,
  $ne: (a, b) => a !== b,
  $gt: (a, b) => Number(a) > Number(b),
  $gte: (a, b) => Number(a) >= Number(b),
  $lt: (a, b) => Number(a) < Number(b),
  $lte: (a, b) => Number(a) <= Number(b),
  $in: (a, b) => Array.isArray(b) && b.includes(a),
  $nin: (a, b) => !Array.isArray(b) || !b.includes(a),
};

/** Follows InMemoryStore: an object of operators compares, another object must be equal. */
function matches(value: unknown, wanted: unknown): boolean {
  if (wanted === null || typeof wanted !== "object") return value === wanted;
  if (Object.keys(wanted).some((key) => key.startsWith("$"))) return compare(value, wanted);
  return isDeepStrictEqual(value, wanted);
}

function compare(value: unknown, wanted: object): boolean {
  return Object.entries(wanted).every(([key, bound]) => {
    const comparison = comparisons[key];
    return comparison !== undefined && comparison(value, bound);
  });
}

function fits({ matchType, path }: MatchCondition, namespace: string[]): boolean {
  const from = matchType === "suffix" ? namespace.length - path.length : 0;
  return from >= 0 && path.every((label, n) => label === "*" || label === namespace[from + n]);
}
