// The load of each side: rows that are there, then adds and searches whose rate counts.

export const rows = Number(process.env.ROWS);
export const counted = 200;
export const text = (n) => `The user put item ${n} of batch ${(n * 7919) % 1009} on shelf ${(n * 104729) % 9973}`;

/** The messages of a list of so many that begins at n. */
export const listed = 50;
export const list = (n) => Array.from({ length: listed }, (_, i) => ({ role: "user", content: text(n + i) }));

/** Runs one(n) for n of a range, by so many callers at a time, and returns how many there were a second. */
export async function rate(from, count, callers, one) {
  let next = from;
  const began = performance.now();
  const caller = async () => {
    while (next < from + count) await one(next++);
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return (count * 1000) / (performance.now() - began);
}
