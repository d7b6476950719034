import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import mqtt, { type IClientOptions, type MqttClient } from 'mqtt';
import type { Screen } from '../command-line.ts';
import {
  createTransport,
  ErrorMessage,
  NewToken,
  PollAnswer,
  ReceivedProfile,
  type RegistrationAnswer,
  type Reply,
} from './rest.ts';

/** A connected device. It accepts every profile and counts the messages that it receives. */
export type SimulatedDevice = {
  readonly uuid: string;
  readonly ledger: Ledger;
  /** Resolves when the service acknowledged that the device accepted its first profile. */
  readonly accepted: Promise<void>;
  /** The number of messages without an acknowledgement yet. */
  readonly waiting: () => number;
  /** Publishes the next reading of every sense in one message. */
  publish(): void;
  disconnect(): Promise<void>;
};

type DeviceOptions = {
  index: number;
  registration: RegistrationAnswer;
  protocol: Protocol;
  insecure: boolean;
  tally: Tally;
  /** Aborts if the device is no longer needed before it is connected. */
  signal: AbortSignal;
};

/** The protocols of devices; `mqtt` is 3.1.1. */
export const protocols = ['mqtt', 'mqtt5', 'http'] as const;
export type Protocol = (typeof protocols)[number];

/** Sends a payload to a topic below `up/`. Resolves when it is acknowledged, and rejects if it never will be. */
type Send = (topic: string, payload: string) => Promise<void>;

/** A device's behaviour over any protocol. `onMessage` receives the messages below `down/`. */
function createBehaviour({ index, tally }: DeviceOptions, send: Send) {
  const accepted = Promise.withResolvers<void>();
  function onMessage(topic: string, payload: unknown): void {
    if (topic === 'display') tally.events += 1;
    if (topic === 'errors') {
      tally.refused += 1;
      tally.firstRefusal ??= ErrorMessage.parse(payload).message;
    }
    if (topic === 'profile') {
      const { pId } = ReceivedProfile.parse(payload);
      const answer = JSON.stringify({ pId, state: 'current', engine: 'service' });
      send('profile', answer).then(accepted.resolve, () => undefined);
    }
  }
  return { onMessage, accepted: accepted.promise, ...createPublisher(send, index, tally) };
}

function createPublisher(send: Send, index: number, tally: Tally) {
  const ledger: Ledger = { sent: [], acknowledged: [] };
  let n = 0;
  let lastTs = 0;
  let waiting = 0;
  return {
    ledger,
    waiting: () => waiting,
    publish() {
      // Each reading has its own time, so that none can be mistaken for another.
      const ts = (lastTs = Math.max(Date.now(), lastTs + 1));
      const readings = readingsAt(index, n).map((reading) => ({ ...reading, ts }));
      n += 1;
      waiting += 1;
      tally.published += 1;
      ledger.sent.push(...readings);
      const startedMs = performance.now();
      const acknowledged = (): void => {
        waiting -= 1;
        const tookUs = Math.round((performance.now() - startedMs) * 1_000);
        tally.acknowledged += 1;
        tally.acknowledgementUs.record(Math.max(1, tookUs));
        ledger.acknowledged.push(...readings);
      };
      send('measurements', JSON.stringify(readings)).then(acknowledged, () => void (waiting -= 1));
    },
  };
}

/** The senses of a simulated device: temperature in °C, humidity in percent. */
const temperature = '0x10';
const humidity = '0x11';

/** A device's description for its registration; specification section 2.4. */
export function configurationOf(index: number) {
  const serial = String(index + 1).padStart(5, '0');
  return {
    device: {
      name: `Cold room ${index + 1}`,
      swName: 'simulator',
      swVersion: '1.0.0',
      hwVersion: '1',
      serial,
    },
    module: [
      {
        moduleId: 'climate',
        moduleName: 'Climate',
        senses: [
          { sId: temperature, min: -40, max: 85 },
          { sId: humidity, min: 0, max: 100 },
        ],
      },
    ],
  };
}

const cycle = 24;
const doorOpen = 10;

/**
 * What device `index` measures the `n`th time: a cold room whose door is open for part of each cycle. The same
 * arguments give the same values, rounded to two decimals.
 */
export function readingsAt(index: number, n: number): { sId: string; val: number }[] {
  const phase = (n + index * 7) % cycle;
  const slow = Math.sin((n / 90) * 2 * Math.PI + index);
  const warming = phase < doorOpen ? Math.sin((phase / doorOpen) * Math.PI) : 0;
  const celsius = 3.5 + slow + warming * 8 + noise(index, n, 1) * 0.4;
  const percent = 62 + slow * 3 + warming * 20 + noise(index, n, 2) * 2;
  return [
    { sId: temperature, val: round(celsius) },
    { sId: humidity, val: round(percent) },
  ];
}

/** Evenly distributed between -1 and 1. An integer hash, so that all runs are equal. */
function noise(index: number, n: number, salt: number): number {
  let x =
    Math.imul(index + 1, 0x9e3779b1) ^ Math.imul(n + 1, 0x85ebca6b) ^ Math.imul(salt, 0xc2b2ae35);
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 31 - 1;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** One request that sends, and one that waits for messages. */
const connections = 2;
const pollSeconds = 25;
const retryMs = 500;
const topics = 'profile,configuration,state,display,errors,token';

/** Sends over HTTP, one message after the other, and receives with long polls. Throws if the device is refused. */
export async function connectHttpDevice(options: DeviceOptions): Promise<SimulatedDevice> {
  const { registration, insecure, tally } = options;
  const uuid = registration.deviceAuthUuid;
  const transport = createTransport({ insecure, maxConnections: connections });
  const headers = {
    Authorization: `Bearer ${registration.deviceAuthToken}`,
    'Content-Type': 'application/json',
  };
  const over = new AbortController();
  const { signal } = over;

  const request = (method: 'GET' | 'POST', path: string, body?: string): Promise<Reply> =>
    transport.send({
      method,
      url: new URL(`${httpAddressOf(registration)}/devices/${uuid}/${path}`),
      headers,
      signal,
      ...(body === undefined ? {} : { body }),
    });

  /** Repeats a request until it is answered with 200. What arrives twice is stored once. */
  async function insist(...args: Parameters<typeof request>): Promise<Reply> {
    for (;;) {
      const reply = await request(...args).catch(() => null);
      signal.throwIfAborted();
      if (reply?.status === 200) return reply;
      tally.reconnects += 1;
      const waitMs = Number(reply?.headers['retry-after'] ?? 0) * 1_000;
      await delay(Math.max(retryMs, waitMs), undefined, { signal });
    }
  }

  let last: Promise<unknown> = Promise.resolve();
  const send = async (topic: string, payload: string): Promise<void> => {
    // Keeps the order: the next message is sent when this one is stored.
    const sent = last.then(() => insist('POST', `up/${topic}`, payload));
    last = sent.catch(() => undefined);
    await sent;
  };
  const { onMessage, ...behaviour } = createBehaviour(options, send);

  async function poll(): Promise<void> {
    for (let after = ''; ;) {
      const { text } = await insist(
        'GET',
        `down?wait=${pollSeconds}&topics=${topics}&after=${after}`,
      );
      const answer = PollAnswer.parse(JSON.parse(text));
      ({ after } = answer);
      for (const { topic, payload } of answer.messages)
        if (topic === 'token')
          headers.Authorization = `Bearer ${NewToken.parse(payload).deviceAuthToken}`;
        else onMessage(topic, payload);
    }
  }

  const close = async (): Promise<void> => {
    over.abort();
    transport.close();
  };
  const first = await request('POST', 'up/time', '{}').catch(async (error: unknown) => {
    await close();
    throw error;
  });
  if (first.status !== 200) {
    await close();
    throw new Error(`answered ${first.status} ${first.text}`);
  }
  const polling = poll().catch((error: unknown) => {
    if (!signal.aborted) tally.firstRefusal ??= String(error);
  });
  return { uuid, ...behaviour, disconnect: () => close().then(() => polling) };
}

function httpAddressOf({ protocol, host, port }: RegistrationAnswer): string {
  return `${protocol}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

const connectTimeoutMs = 30_000;

/** Connects with the device's own credentials and subscribes to all its topics. Throws if the device is refused. */
export async function connectMqttDevice(options: DeviceOptions): Promise<SimulatedDevice> {
  const { registration, protocol, tally, index } = options;
  const uuid = registration.deviceAuthUuid;
  let isOver = false;
  let client = await connect(registration.deviceAuthToken);
  let moved: Promise<void> = Promise.resolve();
  const send = async (topic: string, payload: string): Promise<void> => {
    await moved;
    await client.publishAsync(`devices/${uuid}/up/${topic}`, payload, { qos: 1 });
  };
  const { onMessage, ...behaviour } = createBehaviour(options, send);
  await listen();

  function connect(password: string): Promise<MqttClient> {
    const how: IClientOptions = {
      username: uuid,
      password,
      clientId: `simulator-${index + 1}`,
      protocolVersion: protocol === 'mqtt5' ? 5 : 4,
      connectTimeout: connectTimeoutMs,
      rejectUnauthorized: !options.insecure,
    };
    return mqtt.connectAsync(addressOf(registration), how, false);
  }

  async function listen(): Promise<void> {
    const listening = client;
    // A client that waits for its SUBACK would keep reconnecting.
    const end = () => void listening.end(true);
    options.signal.addEventListener('abort', end, { once: true });
    if (options.signal.aborted) end();
    // It reconnects by itself, and sends again what was not acknowledged.
    listening.on('error', () => undefined);
    listening.on('reconnect', () => (tally.reconnects += 1));
    listening.on('message', (topic, payload) => {
      const name = topic.slice(topic.lastIndexOf('/') + 1);
      const message: unknown = JSON.parse(payload.toString('utf8'));
      if (name !== 'token') return onMessage(name, message);
      const { deviceAuthToken } = NewToken.parse(message);
      moved = logInWith(deviceAuthToken).catch((error: unknown) => {
        tally.firstRefusal ??= String(error);
      });
    });
    const topics = [`devices/${uuid}/down/#`, `devices/${uuid}/down/token`];
    await listening.subscribeAsync(topics, { qos: 1 });
  }

  /** Logs in again once everything that was sent is acknowledged. */
  async function logInWith(token: string): Promise<void> {
    await client.endAsync();
    if (isOver) return;
    client = await connect(token);
    await listen();
  }

  const disconnect = async (): Promise<void> => {
    isOver = true;
    await moved;
    await client.endAsync(true);
  };
  return { uuid, ...behaviour, disconnect };
}

/** The connector's address from the answer to the registration. WebSocket is served at `/mqtt`. */
function addressOf({ protocol, host, port }: RegistrationAnswer): string {
  const scheme = protocol.toLowerCase();
  const path = scheme.startsWith('ws') ? '/mqtt' : '';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}${path}`;
}

type PublishOptions = {
  devices: SimulatedDevice[];
  seconds: number;
  /** Messages per second and device. */
  rate: number;
  tally: Tally;
  screen: Screen;
  /** Ends it early. */
  signal: AbortSignal;
};

const tickMs = 20;
const settleMs = 20_000;
/** With this many unacknowledged messages a device skips readings, so that an outage cannot fill the memory. */
const maxWaiting = 200;

/** Publishes for the given time, then waits for the missing acknowledgements. Returns the seconds of publishing. */
export async function publishAll(options: PublishOptions): Promise<number> {
  const { devices, seconds, tally, screen, signal } = options;
  const due = schedule(options);
  const startedMs = performance.now();
  const elapsed = () => (performance.now() - startedMs) / 1_000;
  const show = liveLine(tally, screen, elapsed);
  while (elapsed() < seconds && !signal.aborted) {
    due(elapsed());
    show();
    await delay(tickMs);
  }
  const published = elapsed();
  const giveUpMs = performance.now() + settleMs;
  while (devices.some((device) => device.waiting() > 0) && performance.now() < giveUpMs) {
    show();
    await delay(tickMs);
  }
  const perSecond = tally.published / published;
  screen.say(progressLine(tally, published, perSecond));
  return published;
}

/** Publishes what is due by now. The devices are spread over an interval, and none drifts. */
function schedule({ devices, rate, tally }: PublishOptions): (elapsedSeconds: number) => void {
  const done = devices.map(() => 0);
  return (elapsedSeconds) => {
    for (const [index, device] of devices.entries()) {
      const phase = index / devices.length;
      const due = Math.floor(elapsedSeconds * rate - phase) + 1;
      for (let sent = done[index] ?? 0; sent < due; sent += 1) {
        if (device.waiting() < maxWaiting) device.publish();
        else tally.skipped += 1;
      }
      done[index] = Math.max(due, done[index] ?? 0);
    }
  };
}

/** Refreshes the line that changes, with the rate since it was last shown. */
function liveLine(tally: Tally, screen: Screen, elapsed: () => number): () => void {
  let shownAt = 0;
  let publishedThen = 0;
  return () => {
    const now = elapsed();
    if (now - shownAt < screen.refreshMs / 1_000) return;
    screen.live(progressLine(tally, now, (tally.published - publishedThen) / (now - shownAt)));
    shownAt = now;
    publishedThen = tally.published;
  };
}

/** The counts of a run so far, over all devices. */
export type Tally = {
  published: number;
  acknowledged: number;
  /** Texts on `down/display`: an event fired and its device received it. */
  events: number;
  /** Messages on `down/errors`, and the text of the first one. */
  refused: number;
  firstRefusal: string | null;
  /** Times a device tried to reconnect. */
  reconnects: number;
  /** Times a reading was due while too many messages were unacknowledged. */
  skipped: number;
  /** From publishing to the acknowledgement, in microseconds. */
  acknowledgementUs: RecordableHistogram;
};

export function createTally(): Tally {
  return {
    published: 0,
    acknowledged: 0,
    events: 0,
    refused: 0,
    firstRefusal: null,
    reconnects: 0,
    skipped: 0,
    acknowledgementUs: createHistogram({ lowest: 1, highest: 3_600_000_000, figures: 3 }),
  };
}

/** A percentile of the acknowledgement times as text: `3.2 ms`, or a dash if there was none. */
function acknowledgedWithin(tally: Tally, percentile: number): string {
  if (tally.acknowledgementUs.count === 0) return '-';
  const ms = tally.acknowledgementUs.percentile(percentile) / 1_000;
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms).toLocaleString('en')} ms`;
}

/** One line about the progress of a run. */
function progressLine(tally: Tally, elapsedSeconds: number, perSecond: number): string {
  return [
    `${Math.floor(elapsedSeconds)} s`,
    `${perSecond.toFixed(0)} messages/s`,
    `${count(tally.acknowledged)} of ${count(tally.published)} acknowledged`,
    `p50 ${acknowledgedWithin(tally, 50)}`,
    `p99 ${acknowledgedWithin(tally, 99)}`,
    `${count(tally.events)} events`,
  ].join('  ');
}

/** A number for people: 12,345. */
export function count(value: number): string {
  return value.toLocaleString('en');
}

/** One measurement as it was sent, and as it is read back. */
export type Reading = { sId: string; val: number; ts: number };

/** Everything that a device sent, and what the service acknowledged of it. */
type Ledger = { sent: Reading[]; acknowledged: Reading[] };

/** The differences between stored and acknowledged readings. All is well if the three lists are empty. */
export type Comparison = {
  acknowledged: number;
  found: number;
  /** Acknowledged but not stored. */
  lost: Reading[];
  /** Stored more than once. */
  doubled: Reading[];
  /** Stored but never sent like this. */
  foreign: Reading[];
  /** Stored without an acknowledgement. That is allowed, because the acknowledgement may have been lost. */
  unacknowledged: number;
};

/** Compares one device's ledger with its stored readings, in any order. */
export function compareReadings(ledger: Ledger, stored: Reading[]): Comparison {
  const acknowledged = new Set(ledger.acknowledged.map(keyOf));
  const sent = new Set(ledger.sent.map(keyOf));
  const seen = new Set<string>();
  const doubled: Reading[] = [];
  const foreign: Reading[] = [];
  for (const reading of stored) {
    const key = keyOf(reading);
    if (!sent.has(key)) foreign.push(reading);
    else if (seen.has(key)) doubled.push(reading);
    seen.add(key);
  }
  const lost = ledger.acknowledged.filter((reading) => !seen.has(keyOf(reading)));
  const unacknowledged = [...seen].filter((key) => sent.has(key) && !acknowledged.has(key)).length;
  const found = ledger.acknowledged.length - lost.length;
  return { acknowledged: acknowledged.size, found, lost, doubled, foreign, unacknowledged };
}

/** The comparisons of all devices combined. */
export function addComparisons(comparisons: Comparison[]): Comparison {
  return {
    acknowledged: sum(comparisons.map((one) => one.acknowledged)),
    found: sum(comparisons.map((one) => one.found)),
    lost: comparisons.flatMap((one) => one.lost),
    doubled: comparisons.flatMap((one) => one.doubled),
    foreign: comparisons.flatMap((one) => one.foreign),
    unacknowledged: sum(comparisons.map((one) => one.unacknowledged)),
  };
}

function keyOf({ sId, val, ts }: Reading): string {
  return `${sId} ${ts} ${val}`;
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
