import type { RecordableHistogram } from 'node:perf_hooks';
import { createFleet } from '../../bench/client/fleet.ts';
import type { FleetCounts } from '../../bench/client/fleet.ts';
import { watchAbsences } from './absences.ts';
import type { Absence } from './absences.ts';
import { openLedger } from './ledger.ts';
import type { Testimony } from './ledger.ts';
import { measurementOf } from './messages.ts';
import { createReceipts, type Receipts } from './receipts.ts';
import type { WitnessDevice } from './register.ts';
import { wayOf } from './ways-in.ts';

/** Devices that send without a pause, reconnect when disconnected, and record what happens. */
export type Load = {
  startTs: number;
  start(): void;
  counts(): FleetCounts;
  /** Microseconds from a send to its acknowledgement. Call `reset()` where a measurement starts. */
  latency: RecordableHistogram;
  /** When the last acknowledgement arrived, `performance.now()`. */
  lastAckMs(): number;
  /** The longest that a device was without a connection, and without an acknowledgement, while it sent. */
  longestAway(): Absence;
  /** Resolves with the next acknowledgement of any device. */
  nextAck(): Promise<void>;
  /** Resolves when this many devices are connected. */
  online(count: number): Promise<void>;
  /** Breaks connections as a lost link does, each with this probability. Resolves when that has been noticed. */
  cut(fraction: number): Promise<void>;
  /** Sends no new messages. True if all were acknowledged within `drainMs`. */
  stop(drainMs: number): Promise<boolean>;
  testimony(): Testimony;
  /** Of the devices that send over HTTP. */
  receipts: Pick<Receipts, 'of' | 'wrong' | 'loseOutcomes'>;
  close(): Promise<void>;
};

export type LoadOptions = {
  dir: string;
  devices: WitnessDevice[];
  port: number;
  /** Where devices send over HTTP. Absent: none does. */
  httpPort?: number | undefined;
  rate: number;
};

const reconnectDelayMs = 300;
/** For all devices together, while none can connect. This process also runs the database's proxy, which needs time. */
const retriesPerSecond = 2_000;

export async function startFleet(options: LoadOptions): Promise<Load> {
  const { dir, devices, port, httpPort = null, rate } = options;
  const receipts = createReceipts();
  const ledger = openLedger(dir);
  const absences = watchAbsences(devices.length);
  const startTs = Date.now() - 3_600_000;
  let lastAckMs = performance.now();
  let onAck: (() => void)[] = [];
  let onOnline: () => void = () => {};
  let onOffline: () => void = () => {};
  const fleet = createFleet({
    host: '127.0.0.1',
    port,
    devices: devices.map((device, n) => wayOf(device, n, httpPort)),
    inFlight: 5,
    ratePerSecond: rate,
    reconnectDelayMs,
    retryDelayMs: Math.max(reconnectDelayMs, (devices.length / retriesPerSecond) * 1_000),
    // Devices are independent: when all are disconnected, all reconnect at once.
    connectsAtOnce: devices.length,
    payload(device, seq) {
      ledger.sent(device, seq);
      return JSON.stringify(measurementOf(startTs, seq));
    },
    onOnline(device) {
      absences.online(device);
      onOnline();
    },
    onOffline(device) {
      absences.offline(device);
      onOffline();
    },
    onReceipt: receipts.add,
    onAcknowledged(device, seq) {
      ledger.acknowledged(device, seq);
      absences.acknowledged(device);
      lastAckMs = performance.now();
      for (const tell of onAck.splice(0)) tell();
    },
  });
  await fleet.connect();
  return {
    startTs,
    start() {
      absences.start();
      fleet.start();
    },
    longestAway: absences.longest,
    counts: fleet.counts,
    latency: fleet.latency,
    lastAckMs: () => lastAckMs,
    nextAck: () => new Promise((resolve) => (onAck = [...onAck, resolve])),
    online: (count) =>
      new Promise((resolve) => {
        onOnline = () => fleet.counts().online >= count && resolve();
        onOnline();
      }),
    cut: (fraction) =>
      new Promise((resolve) => {
        const goal = fleet.counts().lost + fleet.cut(fraction);
        onOffline = () => fleet.counts().lost >= goal && resolve();
        onOffline();
      }),
    stop: fleet.stop,
    receipts,
    testimony: () => ledger.read(devices.length),
    async close() {
      await fleet.close('reset');
      ledger.close();
    },
  };
}
