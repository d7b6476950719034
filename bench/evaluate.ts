import { cpus } from 'node:os';
import { readOptionsOrExit } from '../src/cli/command-line.ts';
import { compileProfile } from '../src/engine/compile.ts';
import { evaluate } from '../src/engine/evaluator.ts';
import type { Measurement } from '../src/contract/values.ts';
import { Purpose } from '../src/contract/purpose.ts';
import { startRuntime } from '../src/engine/runtime.ts';
import { notice, type LastSeen } from '../src/engine/last-seen.ts';
import { numberOf } from './options.ts';
import { encodeRuntime } from '../src/engine/runtime-codec.ts';

const usage = `Usage: npx node bench/evaluate.ts [--seconds 3] [--json]

Prints how many measurements a second the purpose engine evaluates on one core.`;

/**
 * How many measurements per second the purpose engine evaluates on one core. The purpose has 20 states, one of them
 * global, with 5 events each and 2 causes per event, on 10 senses. A live cause of the current state and one of the
 * global state read every measurement. Each of 100 devices has its own runtime and gets the same measurements in
 * another order. The figure uses CPU time, including garbage collection on other threads, so other load on the machine
 * matters little.
 */
const flags = { seconds: { type: 'string' }, json: { type: 'boolean', default: false } } as const;
const options = readOptionsOrExit(usage, flags, ({ seconds, json }) => ({
  seconds: numberOf('seconds', seconds, 3),
  json,
}));

const senses = Array.from({ length: 10 }, (_, index) => `0x${(index + 1).toString(16)}`);
const senseAt = (index: number) => senses[index % senses.length] ?? '0x1';

function givenPurpose(): Purpose {
  const states = Array.from({ length: 20 }, (_, s) => ({
    stId: s,
    isGlobal: s === 19,
    events: Array.from({ length: 5 }, (_, e) => ({
      evId: e,
      eventLog: true,
      actions: { cloud: { sendPush: e === 1 }, engine: e === 0 ? { gotoStId: (s + 1) % 19 } : {} },
      causes: [
        {
          sId: senseAt(2 * e),
          orderId: 0,
          measurement: { count: 5 },
          threshold: { count: 3, decimalAcc: 1 },
          thresholds: { isGt: e === 0 ? 75 : 60, isNotIn: [1_000] },
        },
        { sId: senseAt(2 * e + 1), orderId: 1, thresholds: { isLt: e === 0 ? 25 : 40 } },
      ],
    })),
  }));
  return Purpose.parse({ puId: 1, initStId: 0, states });
}

/** Pseudo-random values, the same in every run. */
function givenMeasurements(count: number): Measurement[] {
  let seed = 1;
  const next = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  return Array.from({ length: count }, (_, ts) => ({
    sId: senseAt(Math.floor(next() * senses.length)),
    val: Math.round(next() * 10_000) / 100,
    ts,
  }));
}

const profile = compileProfile('bench', [givenPurpose()]);
const stream = givenMeasurements(20_000);

/** Every device evaluates the stream, one measurement each in turn, until the time is up. */
function measure(forMs: number) {
  const devices = Array.from({ length: 100 }, () => ({
    runtime: startRuntime(profile, 0),
    seen: {} as LastSeen,
  }));
  let evaluations = 0;
  let firings = 0;
  let moves = 0;
  const start = performance.now();
  const startCpu = process.cpuUsage();
  let elapsedMs = 0;
  for (let ts = 0; elapsedMs < forMs; ts++) {
    for (const [n, device] of devices.entries()) {
      const measured = stream[(ts + n * 197) % stream.length];
      if (!measured) continue;
      // Times keep increasing when the sequence starts again.
      const measurement = { ...measured, ts };
      device.seen = notice(device.seen, measurement) ?? device.seen;
      const evaluation = evaluate(profile, device.runtime, measurement);
      device.runtime = evaluation.runtime;
      firings += evaluation.firings.length;
      if (evaluation.transition) moves++;
    }
    evaluations += devices.length;
    elapsedMs = performance.now() - start;
  }
  const { user, system } = process.cpuUsage(startCpu);
  const cpuMs = Math.round((user + system) / 1_000);
  const perSecond = Math.round((evaluations / cpuMs) * 1_000);
  const [device] = devices;
  const bytes = device ? encodeRuntime(profile, device.runtime).length : 0;
  return { perSecond, evaluations, firings, moves, elapsedMs: Math.round(elapsedMs), cpuMs, bytes };
}

measure(500);
const result = measure(options.seconds * 1_000);
const machine = `${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}`;
const rate = (count: number) => `${((100 * count) / result.evaluations).toFixed(1)} %`;
const text = [
  `${result.perSecond.toLocaleString('en')} evaluations per second of CPU time (${machine})`,
  `20 states × 5 events × 2 causes, 10 senses, 100 devices; ${result.evaluations.toLocaleString('en')} evaluations in ${result.elapsedMs} ms, ${result.cpuMs} ms of CPU`,
  `${rate(result.firings)} fire, ${rate(result.moves)} move; a runtime is ${result.bytes} bytes of JSON`,
].join('\n');
process.stdout.write(
  `${options.json ? JSON.stringify({ name: 'evaluate', machine, ...result }) : text}\n`,
);
