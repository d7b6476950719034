import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'mqtt';
import { call, registerAccount } from '../../../bench/api.ts';
import { runOn } from '../../support/template.ts';
import { registerDevices, type WitnessDevice } from '../register.ts';
import { insist, readAnswer } from './polling-device.ts';

/** All but the first must be 0. */
export type CommandVerdict = {
  /** Commands that were acknowledged to the caller and ended as their device said. */
  commands: number;
  /** Those that were acknowledged and have another end, or are not there. */
  wronglyEnded: number;
  /** Stored commands that do not end. */
  unended: number;
  /** Devices that were first given a later command, then an earlier one. */
  givenUnordered: number;
  /** Commands that came a second time with another identifier. */
  renamed: number;
};

export const noCommands: CommandVerdict = {
  commands: 0,
  wronglyEnded: 0,
  unended: 0,
  givenUnordered: 0,
  renamed: 0,
};

/** Devices that are told to do one thing after the other, over MQTT and with polls, and answer. */
export type Commands = {
  /** Judges everything since the start, when all that was given has ended. */
  judge(): Promise<CommandVerdict>;
  close(): Promise<void>;
};

export type CommandsOptions = {
  url: string;
  mqttPort: number;
  /** Where devices poll; absent: none does. */
  pollPort: number | undefined;
  databaseUrl: () => string;
};

/** Of a device: the numbers of its commands, as they were first delivered, and the identifier of each. */
type Delivered = { order: number[]; ids: Map<number, string>; renamed: number };
type Down = { commandId: string; params: { n: number } };
type Answer = { commandId: string; state: string; result?: number };

const pauseMs = 150;
const mostUnanswered = 5;
const lateMs = 90_000;

/** What the device says to its command with this number; the last is the end. */
const answersTo = (n: number): string[] =>
  [['accepted', 'done'], ['done'], ['accepted', 'running', 'failed']][n % 3] ?? [];

export async function startCommands(options: CommandsOptions): Promise<Commands> {
  const { url, mqttPort, pollPort, databaseUrl } = options;
  const over = new AbortController();
  const { signal } = over;
  const account = await registerAccount(url);
  const scopes = ['commands:read', 'commands:write'];
  // A key outlives what ends sessions.
  const { key } = await call<{ key: string }>(url, 'POST', '/v2/accounts/keys', {
    token: account.token,
    body: { name: 'giver', scopes },
  });
  const devices = await registerDevices(url, account.token, pollPort === undefined ? 2 : 3);
  const delivered = devices.map((): Delivered => ({ order: [], ids: new Map(), renamed: 0 }));
  /** By device and number, the identifier that the caller was told. */
  const acknowledged = devices.map(() => new Map<number, string>());
  const broken: unknown[] = [];
  let isPaused = false;
  let giving = 0;

  function take(index: number, { commandId, params: { n } }: Down): Answer[] {
    const its = delivered[index] as Delivered;
    const known = its.ids.get(n);
    if (known === undefined) its.order.push(n);
    else if (known !== commandId) its.renamed += 1;
    its.ids.set(n, commandId);
    return answersTo(n).map((state) => ({ commandId, state, result: n }));
  }

  const give = (uuid: string, n: number) =>
    insist(signal, async (limit) => {
      const response = await fetch(`${url}/v2/devices/${uuid}/commands`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'idempotency-key': `${uuid} ${n}`,
        },
        body: JSON.stringify({ name: 'step', params: { n } }),
        signal: limit,
      });
      // The first attempt is still under way.
      return response.status === 409 ? null : readAnswer<{ commandId: string }>(response);
    });

  async function giveAll({ uuid }: WitnessDevice, index: number): Promise<void> {
    const its = delivered[index] as Delivered;
    for (let n = 0; ; n += 1) {
      while (isPaused || n - its.order.length >= mostUnanswered)
        await delay(50, undefined, { signal });
      giving += 1;
      const { commandId } = await give(uuid, n).finally(() => (giving -= 1));
      acknowledged[index]?.set(n, commandId);
      await delay(pauseMs, undefined, { signal });
    }
  }

  function listen({ uuid, token }: WitnessDevice, index: number): void {
    const client = connect(`mqtt://127.0.0.1:${mqttPort}`, {
      username: uuid,
      password: token,
      reconnectPeriod: 300,
      connectTimeout: 3_000,
      keepalive: 5,
    });
    client.on('connect', () => client.subscribe(`devices/${uuid}/down/command`, { qos: 1 }));
    client.on('message', (_topic, payload) => {
      for (const answer of take(index, JSON.parse(payload.toString()) as Down))
        client.publish(`devices/${uuid}/up/command`, JSON.stringify(answer), { qos: 1 });
    });
    client.on('error', () => undefined);
    signal.addEventListener('abort', () => client.end(true));
  }

  async function poll({ uuid, token }: WitnessDevice, index: number): Promise<void> {
    const base = `http://127.0.0.1:${pollPort}/devices/${uuid}`;
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    type Polled = { messages: { payload: Down }[]; after: string };
    for (let after = ''; ;) {
      const query = `topics=command&wait=5&after=${after}`;
      const given = await insist(signal, async (limit) =>
        readAnswer<Polled>(await fetch(`${base}/down?${query}`, { headers, signal: limit })),
      );
      ({ after } = given);
      for (const { payload } of given.messages)
        for (const answer of take(index, payload)) {
          const request = { method: 'POST', headers, body: JSON.stringify(answer) };
          await insist(signal, async (limit) =>
            readAnswer(await fetch(`${base}/up/command`, { ...request, signal: limit })),
          );
        }
    }
  }

  const running = devices.flatMap((device, index) => {
    if (index < 2) listen(device, index);
    return [giveAll(device, index), ...(index < 2 ? [] : [poll(device, index)])].map((work) =>
      work.catch((error: unknown) => void (signal.aborted || broken.push(error))),
    );
  });

  async function compare(): Promise<CommandVerdict> {
    const verdict = { ...noCommands };
    const stored = await readStored(
      databaseUrl(),
      devices.map(({ uuid }) => uuid),
    );
    const byId = new Map(stored.map((row) => [row.commandId, row]));
    verdict.unended = stored.filter(({ state }) => !ends.has(state)).length;
    for (const ids of acknowledged)
      for (const [n, commandId] of ids) {
        const row = byId.get(commandId);
        const isRight = row?.state === answersTo(n).at(-1) && row?.result === String(n);
        if (isRight) verdict.commands += 1;
        else verdict.wronglyEnded += 1;
      }
    for (const [index, { order, ids, renamed }] of delivered.entries()) {
      if (order.some((n, place) => place > 0 && n < (order[place - 1] ?? 0)))
        verdict.givenUnordered += 1;
      const told = [...(acknowledged[index] ?? [])];
      verdict.renamed += renamed + told.filter(([n, id]) => (ids.get(n) ?? id) !== id).length;
    }
    return verdict;
  }

  return {
    async judge() {
      isPaused = true;
      const untilMs = performance.now() + lateMs;
      for (;;) {
        const verdict = giving > 0 ? null : await compare();
        const { commands: _, ...wrong } = verdict ?? noCommands;
        const isRight = verdict !== null && Object.values(wrong).every((count) => count === 0);
        if (verdict && (isRight || performance.now() > untilMs)) {
          for (const error of broken) process.stderr.write(`    commands: ${String(error)}\n`);
          isPaused = false;
          return { ...verdict, unended: verdict.unended + broken.length };
        }
        await delay(100);
      }
    },
    async close() {
      over.abort();
      await Promise.all(running);
    },
  };
}

const ends: ReadonlySet<string> = new Set(['done', 'failed', 'expired', 'cancelled']);

type StoredCommand = { commandId: string; state: string; result: string | null };

async function readStored(url: string, uuids: string[]): Promise<StoredCommand[]> {
  const { rows } = await runOn(url, (client) =>
    client.query<StoredCommand>(
      `select c.uuid as "commandId", c.state, c.result
         from command c join device d on d.id = c.device_id where d.uuid = any($1::uuid[])`,
      [uuids],
    ),
  );
  return rows;
}
