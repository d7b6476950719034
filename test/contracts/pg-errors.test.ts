import { createServer, type AddressInfo, type Socket } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kindOf, stateOf } from '../../src/db/errors.ts';
import { startProxy } from '../faults/proxy.ts';
import { startThrowAwayCluster, type Cluster } from '../support/cluster.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startThrowAwayCluster();
});
afterAll(() => cluster.remove());

const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

async function openClient(settings: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: cluster.url(), ...settings });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Accepts connections and never answers; runs `onConnection` for each. */
async function startDeafServer(onConnection: (socket: Socket) => void = () => undefined) {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `postgres://nobody:x@127.0.0.1:${port}/none`, close: () => server.close() };
}

// Errors that pg creates itself have no code, so this program relies on their texts.
describe("pg's errors without a code", () => {
  it('a connection that ended under a query, and queries after it', async () => {
    const url = new URL(cluster.url());
    const proxy = await startProxy(Number(url.port));
    url.port = String(proxy.port);
    const client = new pg.Client({ connectionString: url.href });
    client.on('error', () => undefined);
    await client.connect();
    const waiting = failureOf(client.query('select pg_sleep(60)'));
    proxy.cut();
    const broken = await waiting;
    expect(kindOf(broken)).toBe('unavailable');
    const later = await failureOf(client.query('select 1'));
    expect([stateOf(later), kindOf(later)]).toEqual(['', 'unavailable']);
    await client.end().catch(() => undefined);
    const afterwards = await failureOf(client.query('select 1'));
    expect([stateOf(afterwards), kindOf(afterwards)]).toEqual(['', 'unavailable']);
    await proxy.close();
  });

  it('a server that ends the connection instead of an answer', async () => {
    const rude = await startDeafServer((socket) => socket.end());
    const client = new pg.Client({ connectionString: rude.url });
    client.on('error', () => undefined);
    const refused = await failureOf(client.connect());
    expect([stateOf(refused), kindOf(refused)]).toEqual(['', 'unavailable']);
    rude.close();
  });

  it('statements after an error in a transaction, which are not to blame', async () => {
    const client = await openClient();
    await client.query('begin');
    await failureOf(client.query('select 1 / 0'));
    const behind = await failureOf(client.query('select 1'));
    expect([stateOf(behind), kindOf(behind)]).toEqual(['25P02', 'serialization']);
    await client.end();
  });

  it('a query that is not answered in time', async () => {
    const client = await openClient({ query_timeout: 100 });
    const late = await failureOf(client.query('select pg_sleep(2)'));
    expect([stateOf(late), kindOf(late)]).toEqual(['', 'unavailable']);
    await client.end();
  });

  it('a server that accepts a connection and says nothing, by a client and by a pool', async () => {
    const deaf = await startDeafServer();
    const client = new pg.Client({ connectionString: deaf.url, connectionTimeoutMillis: 100 });
    client.on('error', () => undefined);
    const byClient = await failureOf(client.connect());
    const pool = new pg.Pool({ connectionString: deaf.url, connectionTimeoutMillis: 100, max: 1 });
    const byPool = await Promise.all([
      failureOf(pool.query('select 1')),
      failureOf(pool.query('select 1')),
    ]);
    expect([byClient, ...byPool].map((error) => [stateOf(error), kindOf(error)])).toEqual(
      Array.from({ length: 3 }, () => ['', 'unavailable']),
    );
    await pool.end();
    deaf.close();
  });
});

describe("PostgreSQL's errors with a code", () => {
  it.each([
    ['select 1/0', 'unstorable'],
    ["select 'x'::int", 'unstorable'],
    ["select repeat('x', 2000000000)", 'unstorable'],
    ['select * from nowhere', 'schema'],
    ['select 1 from', 'schema'],
    ["set statement_timeout = '20ms'; select pg_sleep(2)", 'cancelled'],
    ['begin read only; create table t (n int)', 'unavailable'],
    ["do $$ begin raise exception 'no' using errcode = '40001'; end $$", 'serialization'],
    ["do $$ begin raise exception 'no' using errcode = '23505'; end $$", 'unique'],
    ["do $$ begin raise exception 'no'; end $$", 'unstorable'],
    ["do $$ begin raise exception 'no' using errcode = 'XX000'; end $$", 'fault'],
  ])('%s', async (text, kind) => {
    const client = await openClient();
    expect(kindOf(await failureOf(client.query(text)))).toBe(kind);
    await client.end();
  });

  it('one connection too many', async () => {
    const client = await openClient();
    await client.query('create role narrow login connection limit 0 password $$x$$');
    const url = new URL(cluster.url());
    url.username = 'narrow';
    url.password = 'x';
    const second = new pg.Client({ connectionString: url.href });
    second.on('error', () => undefined);
    expect(kindOf(await failureOf(second.connect()))).toBe('unavailable');
    await client.end();
  });
});

describe('errors that no database causes', () => {
  it.each([
    ['a fault of ours', new TypeError('x is not a function')],
    ['a text that only sounds like it', new Error('our own timeout while parsing')],
    ['no error at all', 'Connection terminated'],
  ])('%s is a fault', (_, error) => {
    expect(kindOf(error)).toBe('fault');
  });
});
