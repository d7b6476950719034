import { cpus } from 'node:os';
import { readOptionsOrExit } from '../src/cli/command-line.ts';
import { openBed } from './pieces/bed.ts';
import type { Bed, Value } from './pieces/bed.ts';
import { startBenchDatabase } from './database.ts';
import { numberOf } from './options.ts';
import { PieceMeter } from './pieces/meter.ts';
import { butOne, globalAny, half, never, stateWith, winding, windowed } from './pieces/purposes.ts';
import { alarming, restless } from './pieces/purposes.ts';
import { cpuMsOf } from './usage.ts';
import type { Purpose } from '../src/contract/purpose.ts';

const usage = `Usage: npm run bench:pieces -- [--messages 50] [--only windows,causes] [--batch 5000]

Prints how long the most expensive messages of one device block the event loop (the longest time between two returns to
it), and how much processor time causes that read a sense take, in this process and the database together.

--messages: how many of each kind. --only: only kinds whose names begin with these words, "causes", or "bytes".
--batch: the most items in a transaction.`;

const text = { type: 'string' } as const;
const { messages, maxBatchItems, wanted } = readOptionsOrExit(
  usage,
  { messages: text, only: text, batch: text },
  ({ messages, only, batch }) => ({
    messages: numberOf('messages', messages, 50),
    maxBatchItems: numberOf('batch', batch, 5_000),
    wanted: only?.split(',') ?? null,
  }),
);
const isWanted = (name: string) => wanted === null || wanted.some((each) => name.startsWith(each));

type Work = {
  name: string;
  purpose: Purpose | null;
  devices?: number;
  count: number;
  val?: () => Value;
  webhooks?: number;
  /** The time between two messages. */
  laterMs?: number;
};

const anyValue = () => Math.floor(Math.random() * 10_000) / 100;
const anyPlace = () => ({ lat: Math.random(), long: Math.random() * 360 - 180 });

/** 1 and -1 alternately. */
function alternately(): () => number {
  let last = -1;
  return () => (last = -last);
}

const works: Work[] = [
  { name: 'plain: 100 devices at once', purpose: null, devices: 100, count: 50 },
  { name: 'limits: 64 × 32 causes', purpose: stateWith(64, 32, never), count: 1_000 },
  {
    name: 'agree: 64 × 32, all but one of an event',
    purpose: stateWith(64, 32, butOne(32)),
    count: 1_000,
  },
  {
    name: 'windows: 64 × 32 of 1,000',
    purpose: stateWith(64, 32, windowed(1_000, half)),
    count: 1_000,
  },
  { name: 'any: 4,000 global isAny', purpose: globalAny(4_000, false), count: 1_000 },
  { name: 'recorded: 3,000 global isAny', purpose: globalAny(3_000, true), count: 5 },
  {
    name: 'polygon: 6,000 corners, 2,000 turns',
    purpose: stateWith(1, 1, winding(6_000)),
    count: 1_000,
    val: anyPlace,
  },
  {
    name: 'ticks: 10,000 s of silences of 1 s',
    purpose: restless(1, 1),
    count: 1,
    laterMs: 10_000_000,
  },
  ...[0, 20].map((webhooks) => ({
    name: `alarms: 256 opened and closed, ${webhooks} webhooks`,
    purpose: alarming(256),
    count: webhooks > 0 ? 2 : 20,
    val: alternately(),
    webhooks,
  })),
  {
    name: 'ticks: 200 s of them beside 64 × 32 causes',
    purpose: restless(64, 32),
    count: 1,
    laterMs: 200_000,
  },
];

/** Purposes with this many causes, none of which fires. */
const comparisons: Record<string, (causes: number) => Purpose> = {
  'none agrees, in events of 4': (causes) => stateWith(causes / 4, 4, never),
  'none agrees, windows of 1,000': (causes) => stateWith(causes / 4, 4, windowed(1_000, never)),
  'three of four agree': (causes) => stateWith(causes / 4, 4, butOne(4)),
  'each agrees with half, windows of 1,000': (causes) =>
    stateWith(causes / 4, 4, windowed(1_000, half)),
};

/** The smallest invalid messages, and valid ones of at least as many bytes. */
const sent: Record<string, (number: number) => string> = {
  'good: {"sId":"1","val":n}': (number) => `{"sId":"1","val":${number % 10_000}}`,
  'bad: 1': () => '1',
  'bad: []': () => '[]',
  'bad: {}': () => '{}',
  'bad: [1,1,…] of 1,000': () => `[${'1,'.repeat(999)}1]`,
};

const database = await startBenchDatabase();
const print = (line: string) => process.stdout.write(`${line}\n`);
print(`${cpus()[0]?.model}, Node ${process.version}, ${database.description}`);
try {
  const bed = await openBed(await database.create('pieces'), { maxBatchItems });
  for (const work of works) if (isWanted(work.name)) await measurePieces(bed, work);
  if (isWanted('causes')) await compareCauses(bed);
  if (isWanted('bytes'))
    for (const [name, of] of Object.entries(sent)) await measureGrowth(bed, name, of);
  await bed.close();
} finally {
  await database.remove();
}

/** Median and maximum of the longest piece of each message, after a warm-up. */
async function measurePieces(bed: Bed, work: Work): Promise<void> {
  const { name, purpose, devices = 1, count, val = anyValue, laterMs, webhooks } = work;
  const added = await Promise.all(
    Array.from({ length: devices }, () => bed.addDevice(purpose, webhooks)),
  );
  const meter = new PieceMeter();
  const longest: number[] = [];
  const startMs = performance.now();
  meter.start();
  for (let message = 0; message < messages + 5; message += 1) {
    const values = Array.from({ length: count }, val);
    await Promise.all(added.map((device) => bed.send(device, values, laterMs)));
    const longestMs = await meter.takeLongest();
    if (message >= 5) longest.push(longestMs);
  }
  meter.stop();
  const eachMs = (performance.now() - startMs) / (messages + 5);
  longest.sort((one, other) => one - other);
  const [median = 0, most = 0] = [longest[Math.floor(longest.length / 2)], longest.at(-1)];
  const figures = [median.toFixed(1), most.toFixed(1), eachMs.toFixed(0)];
  print(
    `${name.padEnd(44)} longest piece, ms: median ${figures[0]}, most ${figures[1]}; ${count} a message, acknowledged after ${figures[2]} ms`,
  );
}

/** How tables and indexes grow while one device sends for ten seconds, ten messages at a time. */
async function measureGrowth(
  bed: Bed,
  name: string,
  payloadOf: (number: number) => string,
): Promise<void> {
  const device = await bed.addDevice(null);
  const before = await bed.countBytes();
  let [bytes, count] = [0, 0];
  const endMs = performance.now() + 10_000;
  while (performance.now() < endMs) {
    const payloads = Array.from({ length: 10 }, () => payloadOf(count++));
    bytes += payloads.reduce((sum, payload) => sum + payload.length, 0);
    await Promise.all(payloads.map((payload) => bed.publish(device, payload)));
  }
  const grown = (await bed.countBytes()) - before;
  print(
    `bytes, ${name.padEnd(28)} ${count} messages of ${bytes} bytes: grown by ${grown}, ${(grown / bytes).toFixed(2)} a byte sent`,
  );
}

/** Alternates between 4 and 256 causes on one sense; 50 devices, 50 measurements per message. */
async function compareCauses(bed: Bed): Promise<void> {
  for (const [name, purposeOf] of Object.entries(comparisons)) {
    const fleets = await Promise.all([4, 256].map((causes) => fleetOf(bed, purposeOf(causes))));
    const costs: Cost[][] = fleets.map(() => []);
    for (let round = 0; round < 9; round += 1) {
      for (const [index, fleet] of fleets.entries()) costs[index]?.push(await costOf(bed, fleet));
    }
    const [few, many] = costs.map((each) => each.toSorted((a, b) => a.all - b.all)[4]);
    if (!few || !many) continue;
    const told = ({ all, database }: Cost) =>
      `${all.toFixed(0)} µs (${database.toFixed(0)} of the database)`;
    print(
      `causes, ${name}: 4 take ${told(few)} a message, 256 take ${told(many)}: ratio ${(many.all / few.all).toFixed(2)}`,
    );
  }
}

/** Processor time per message, in microseconds. */
type Cost = { all: number; database: number };

async function fleetOf(bed: Bed, purpose: Purpose) {
  const fleet = await Promise.all(Array.from({ length: 50 }, () => bed.addDevice(purpose)));
  for (let message = 0; message < 5; message += 1) await sendAll(bed, fleet);
  return fleet;
}

async function sendAll(bed: Bed, fleet: Awaited<ReturnType<typeof fleetOf>>): Promise<void> {
  await Promise.all(fleet.map((device) => bed.send(device, Array.from({ length: 50 }, anyValue))));
}

async function costOf(bed: Bed, fleet: Awaited<ReturnType<typeof fleetOf>>): Promise<Cost> {
  const rounds = 20;
  const before = { own: process.cpuUsage(), database: cpuMsOf(database.pid) };
  for (let round = 0; round < rounds; round += 1) await sendAll(bed, fleet);
  const { user, system } = process.cpuUsage(before.own);
  const databaseMs = cpuMsOf(database.pid) - before.database;
  const sent = rounds * fleet.length;
  return {
    all: (user + system + databaseMs * 1_000) / sent,
    database: (databaseMs * 1_000) / sent,
  };
}
