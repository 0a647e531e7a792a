/** A problem document: the server refused a request. The code is stable, such as invalid_field. */
export class PalimpsestError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly field: string,
    detail: string,
  ) {
    super(`${status} ${code} ${field} ${detail}`);
  }
}

export type Row = Record<string, any>;

export interface Connection {
  /** An address such as http://127.0.0.1:8080. */
  address: string;
  apiKey?: string;
  project?: string;
}

/** The calls of the HTTP interface that the adapters share. */
export class API {
  constructor(private readonly to: Connection) {}

  /** Reads again while the answer is stale, so that a read given at has that write. */
  async call(method: string, path: string, query: Row = {}, body?: Row): Promise<Row> {
    const url = new URL(path, this.to.address);
    for (const [name, value] of Object.entries({ project: this.to.project, ...query })) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    for (;;) {
      const answer = await fetch(url, {
        method,
        headers: {
          ...(body && { "Content-Type": "application/json" }),
          ...(this.to.apiKey && { Authorization: `Bearer ${this.to.apiKey}` }),
        },
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      if (!answer.ok) {
        const problem = answer.headers.get("Content-Type")?.includes("json") ? JSON.parse(text) : { detail: text };
        throw new PalimpsestError(answer.status, problem.code ?? "", problem.field ?? "", problem.detail ?? "");
      }
      const read: Row = text ? JSON.parse(text) : {};
      if (!read.stale) return read;
    }
  }

  post(path: string, body: Row): Promise<Row> {
    return this.call("POST", path, {}, body);
  }

  /** Yields the rows of all pages of a list. */
  async *pages(path: string, rows: string, query: Row): AsyncGenerator<Row> {
    for (let cursor: string | undefined; ; ) {
      const page = await this.call("GET", path, { ...query, cursor });
      yield* page[rows];
      cursor = page.next;
      if (!cursor) return;
    }
  }
}
