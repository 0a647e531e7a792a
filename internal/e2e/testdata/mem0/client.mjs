// Calls every core method of the published client and fails on a wrong answer.
import assert from 'node:assert/strict';
import { MemoryClient } from 'mem0ai';

const [host, user] = process.argv.slice(2);
const c = new MemoryClient({ apiKey: process.env.MEM0_API_KEY ?? 'none', host });
const own = { filters: { user_id: user } };

async function eventually(what, read, done) {
  for (const end = Date.now() + 30_000; Date.now() < end;) {
    const v = await read();
    if (done(v)) return v;
    await new Promise(r => setTimeout(r, 50));
  }
  assert.fail(`${what} did not come about`);
}

await c.ping();
const added = await c.add(
  [{ role: 'user', content: 'My name is Ada. I live in Oslo.' }, { role: 'assistant', content: 'Hello.' }],
  { userId: user, metadata: { tag: 'work', intent: 'x', n: 3 } });
assert.equal(added.status, 'PENDING');
assert.ok(added.eventId);
const all = await eventually('two memories', () => c.getAll(own), v => v.count === 2);
const oslo = all.results.find(m => m.memory.includes('Oslo'));
assert.equal(oslo.userId, user);
assert.deepEqual(oslo.metadata, { tag: 'work', intent: 'x', n: 3 });
assert.ok(Date.parse(oslo.createdAt) && Date.parse(oslo.updatedAt));

const pages = [await c.getAll({ ...own, page: 1, pageSize: 1 }), await c.getAll({ ...own, page: 2, pageSize: 1 })];
assert.equal(new Set(pages.map(p => p.results[0].id)).size, 2);
assert.ok(pages[0].next && !pages[1].next);

const found = await c.search('Where do I live?', { filters: { AND: [{ user_id: user }, { metadata: { tag: 'work' } }] } });
assert.equal(found.results[0].id, oslo.id);
assert.ok(found.results[0].score > 0);
assert.deepEqual((await c.search('Oslo', { filters: { user_id: user, metadata: { tag: 'home' } } })).results, []);
assert.deepEqual((await c.search('Oslo', { filters: { user_id: user + '-other' } })).results, []);

assert.equal((await c.get(oslo.id)).memory, oslo.memory);
assert.equal((await c.update(oslo.id, { text: 'Ada lives in Bergen.' })).memory, 'Ada lives in Bergen.');
const history = await eventually('an update in the history', () => c.history(oslo.id), v => v.length === 2);
assert.deepEqual(history.map(h => h.event), ['ADD', 'UPDATE']);
assert.equal(history[1].newMemory, 'Ada lives in Bergen.');

await c.batchUpdate([{ memoryId: oslo.id, text: 'Ada lives in Rome.' }]);
assert.equal((await c.get(oslo.id)).memory, 'Ada lives in Rome.');
assert.ok((await c.users()).results.some(e => e.name === user && e.type === 'user' && e.totalMemories === 2));
const rejects = (what, name) => assert.rejects(what, e => e.name === name);
await rejects(() => c.get('nope'), 'MemoryNotFoundError');
await rejects(() => c.search('x', { filters: {} }), 'ValidationError');
await rejects(() => c.add('x', {}), 'ValidationError');

await c.delete(oslo.id);
await rejects(() => c.get(oslo.id), 'MemoryNotFoundError');
await c.batchDelete(all.results.map(m => m.id));
await c.deleteAll({ userId: user });
await c.deleteAll({ userId: user + '-other' });
assert.equal((await c.getAll(own)).count, 0);
await c.deleteUsers({ userId: user });
console.log('passed');
