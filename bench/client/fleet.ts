import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { createDevice } from './device.ts';
import type { Device, DeviceHooks, DeviceSpec } from './device-types.ts';
import type { FleetCounts, FleetOptions } from './fleet-options.ts';
import { createHttpDevice } from './http-device.ts';
import { createOpener } from './opener.ts';
import { createPacer, unpaced } from './pacer.ts';

export type { DeviceSpec } from './device-types.ts';
export type { FleetCounts, FleetOptions } from './fleet-options.ts';

export type Fleet = {
  /**
   * Opens all connections; resolves when all are accepted. Rejects if one is refused or lost, unless lost connections
   * are reopened (`reconnectDelayMs`). Then too, call `close`.
   */
  connect(): Promise<void>;
  /** Lets the devices send. */
  start(): void;
  /** Sends no new messages. Resolves when all are acknowledged, or after `drainMs`. True if all were. */
  stop(drainMs: number): Promise<boolean>;
  /** Asks devices that had nothing to send again. */
  kick(): void;
  /** Breaks connections like a lost link, each with this probability. Returns how many. */
  cut(fraction: number): number;
  /** Ends all connections; resolves when they are gone. */
  close(how?: 'disconnect' | 'reset'): Promise<void>;
  counts(): FleetCounts;
  isOnline(device: number): boolean;
  /** Microseconds from a send to its acknowledgement; `reset()` it when a measurement starts. */
  latency: RecordableHistogram;
};

/**
 * Thousands of devices in one process at little cost: raw sockets, and packets encoded by hand. Unacknowledged messages
 * are sent again, in order and marked DUP, after a reconnect. Nothing happens before `connect`.
 */
export function createFleet(options: FleetOptions): Fleet {
  const settings = {
    host: options.host,
    port: options.port,
    localAddress: options.localAddress,
    inFlight: options.inFlight ?? 1,
    keepaliveSeconds: options.keepaliveSeconds ?? 600,
  };
  const retryDelayMs = options.retryDelayMs ?? options.reconnectDelayMs ?? 0;
  const counts: FleetCounts = { sent: 0, acknowledged: 0, online: 0, lost: 0 };
  const latency = createHistogram();
  const opener = createOpener(options.connectsAtOnce ?? 500, (index) => devices[index]?.open());
  const pacer =
    options.ratePerSecond === undefined
      ? unpaced
      : createPacer(options.ratePerSecond, options.devices.length, (i) => devices[i]?.fill(1));
  let pings: NodeJS.Timeout | undefined;
  let running = false;
  let closing = false;
  let fail: (error: Error) => void = () => {};
  let notify: () => void = () => {};
  const devices: Device[] = options.devices.map(simulate);

  function simulate(spec: DeviceSpec, index: number): Device {
    let isUp = false;
    const { http } = spec;
    const hooks: DeviceHooks = {
      online() {
        isUp = true;
        counts.online += 1;
        options.onOnline?.(index);
        opener.settled();
        notify();
        if (pacer === unpaced) devices[index]?.fill();
      },
      offline(reason, returnCode, retryAfterSeconds = 0) {
        if (isUp) counts.online -= 1;
        if (!closing) counts.lost += 1;
        options.onOffline?.(index, reason, returnCode);
        if (options.reconnectDelayMs === undefined)
          fail(new Error(`Device ${spec.clientId}: ${reason}, CONNACK ${returnCode ?? 'none'}.`));
        else {
          const leastMs = options.obeysRetryAfter ? retryAfterSeconds * 1_000 : 0;
          void reopenLater(index, isUp ? options.reconnectDelayMs : retryDelayMs, leastMs);
        }
        if (!isUp) opener.settled();
        isUp = false;
        notify();
      },
      next(seq) {
        if (!running || !pacer.isDue()) return null;
        const payload = options.payload(index, seq);
        if (payload === null) return null;
        pacer.spend();
        counts.sent += 1;
        return payload;
      },
      acknowledged(seq, latencyMs) {
        counts.acknowledged += 1;
        latency.record(Math.max(1, Math.round(latencyMs * 1_000)));
        options.onAcknowledged?.(index, seq, latencyMs);
        if (!running) notify();
      },
      received: (topic, payload) => options.onReceived?.(index, topic, payload),
      receipt: (receipt) => options.onReceipt?.(index, receipt),
    };
    return http
      ? createHttpDevice({ ...spec, http }, settings, hooks)
      : createDevice(spec, settings, hooks);
  }

  async function reopenLater(index: number, delayMs: number, leastMs: number): Promise<void> {
    const pauseMs = Math.max(leastMs, delayMs * (0.5 + Math.random()));
    await delay(pauseMs, undefined, { ref: false });
    opener.add(index);
  }

  /** Resolves once it holds. Checked whenever the state of a connection changes or an acknowledgement arrives. */
  function until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      notify = () => condition() && resolve();
      notify();
    });
  }

  return {
    latency,
    async connect() {
      const failed = new Promise<never>((_, reject) => (fail = reject));
      const all = until(() => counts.online === devices.length);
      opener.add(...devices.keys());
      if (settings.keepaliveSeconds > 0) {
        const ping = () => devices.forEach((device) => device.ping());
        pings = setInterval(ping, settings.keepaliveSeconds * 500).unref();
      }
      await Promise.race([all, failed]);
      fail = () => {};
    },
    start() {
      running = true;
      if (pacer === unpaced) for (const device of devices) device.fill();
      else pacer.start();
    },
    async stop(drainMs) {
      running = false;
      pacer.stop();
      const limit = new AbortController();
      const late = delay(drainMs, undefined, { signal: limit.signal }).catch(() => undefined);
      await Promise.race([until(() => counts.sent === counts.acknowledged), late]);
      limit.abort();
      return counts.sent === counts.acknowledged;
    },
    kick: () => devices.forEach((device) => device.fill()),
    cut(fraction) {
      const chosen = devices.filter((device) => device.isOnline() && Math.random() < fraction);
      for (const device of chosen) device.close('reset');
      return chosen.length;
    },
    async close(how = 'disconnect') {
      closing = true;
      running = false;
      opener.stop();
      pacer.stop();
      clearInterval(pings);
      for (const device of devices) device.close(how);
      await until(() => counts.online === 0 && opener.opening() === 0);
    },
    counts: () => ({ ...counts }),
    isOnline: (device) => devices[device]?.isOnline() ?? false,
  };
}
