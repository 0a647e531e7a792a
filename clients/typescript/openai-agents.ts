import type { AgentInputItem, Session } from "@openai/agents";
import { API, type Connection, type Row } from "./api.js";

const KEY = "openai_agents";

export interface SessionOptions extends Connection {
  sessionId: string;
  user: string;
  agent?: string;
}

/**
 * A session of the OpenAI Agents SDK that keeps the items of a conversation as episodes, from
 * which facts are extracted.
 *
 * The history of Palimpsest is only appended to: popItem and clearSession record that items
 * were removed. The session then leaves these items out. Their episodes and facts stay until
 * they are forgotten or the user is erased. One session has one writer at a time.
 */
export class PalimpsestSession implements Session {
  private readonly api: API;
  private readonly scope: { user: string; agent?: string; session: string };
  /** The newest write, which each read waits for. */
  private at: string | undefined;

  constructor(options: SessionOptions) {
    this.api = new API(options);
    this.scope = {
      user: options.user,
      session: options.sessionId,
      ...(options.agent !== undefined && { agent: options.agent }),
    };
  }

  async getSessionId(): Promise<string> {
    return this.scope.session;
  }

  async getItems(limit?: number): Promise<AgentInputItem[]> {
    const newest: AgentInputItem[] = [];
    for await (const episode of this.episodes()) {
      if (limit !== undefined && newest.length >= limit) break;
      newest.push(item(episode));
    }
    return newest.reverse();
  }

  async addItems(items: AgentInputItem[]): Promise<void> {
    if (items.length > 0) await this.record(items.map(message));
  }

  async popItem(): Promise<AgentInputItem | undefined> {
    for await (const episode of this.episodes()) {
      await this.record([removal({ removed: episode.id })]);
      return item(episode);
    }
    return undefined;
  }

  async clearSession(): Promise<void> {
    await this.record([removal({ cleared: true })]);
  }

  /** Returns what is known of the user about a text, for the instructions of an agent. */
  async recall(text: string, budget?: number): Promise<string> {
    const known = await this.api.post("/v1/context", { user: this.scope.user, text, budget, at: this.at });
    return known.context ?? "";
  }

  /** Ends the session, so that what is left of it is consolidated now. */
  async end(): Promise<void> {
    const { session, ...body } = this.scope;
    await this.api.post(`/v1/sessions/${encodeURIComponent(session)}/end`, body);
  }

  private async record(messages: Row[]): Promise<void> {
    this.at = (await this.api.post("/v1/episodes", { ...this.scope, messages })).at;
  }

  /** Yields the episodes of the items that were not removed, newest first. */
  private async *episodes(): AsyncGenerator<Row> {
    const removed = new Set<string>();
    for await (const episode of this.api.pages("/v1/episodes", "episodes", { ...this.scope, limit: 100, at: this.at })) {
      const note = episode.metadata?.[KEY];
      if (note?.cleared) return;
      if (note?.removed) removed.add(note.removed);
      else if (note && !removed.has(episode.id)) yield episode;
    }
  }
}

function removal(note: Row): Row {
  return { role: "system", content: "An item of the conversation was removed.", metadata: { [KEY]: note } };
}

/**
 * The episode of an item. Its content is the one text of the item; the rest of the item is
 * metadata. An item without a text, or with several, is kept as JSON.
 */
function message(entry: AgentInputItem): Row {
  const rest: Row = structuredClone(entry);
  let content: unknown = rest.content;
  if (typeof content === "string") {
    rest.content = null;
  } else if (Array.isArray(content) && content.length === 1 && typeof content[0].text === "string") {
    const part = content[0];
    content = part.text;
    part.text = null;
  }
  if (typeof content !== "string" || content.trim() === "") {
    return { role: "tool", content: JSON.stringify(entry), metadata: { [KEY]: { json: true } } };
  }
  const role = rest.role === "user" || rest.role === "assistant" ? rest.role : "system";
  return { role, content, metadata: { [KEY]: { rest } } };
}

function item(episode: Row): AgentInputItem {
  const note = episode.metadata[KEY];
  if (note.json) return JSON.parse(episode.content);
  if (note.rest.content === null) note.rest.content = episode.content;
  else note.rest.content[0].text = episode.content;
  return note.rest;
}
