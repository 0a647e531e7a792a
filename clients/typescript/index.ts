import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, paths };

/** Returns a client of the server at an address such as http://127.0.0.1:8080. */
export function palimpsest(address: string, options: { apiKey?: string; project?: string } = {}) {
  return createClient<paths>({
    baseUrl: address,
    headers: options.apiKey ? { Authorization: `Bearer ${options.apiKey}` } : {},
    querySerializer: (query) => {
      const all = new URLSearchParams(options.project ? { project: options.project } : {});
      for (const [name, value] of Object.entries(query ?? {})) {
        if (value !== undefined && value !== null) all.set(name, String(value));
      }
      return all.toString();
    },
  });
}
