import { network } from '../../src/lib/address.ts';
import { isUuid } from '../../src/lib/text.ts';
import { type Rate, TokenBucket } from '../../src/lib/token-bucket.ts';
import { createLimitedLines } from '../../src/log/limited-lines.ts';
import type { Log } from '../ports.ts';
import type { MonotonicClock, MonotonicMs } from '../../src/lib/clock-readings.ts';

/** Lines a minute about one address or device, and in all: enough to ban an address by, or to repair a device. */
const linesPerKey = 20;
const linesInAll = 2_000;
const minuteMs = 60_000;

type LogEvent = Parameters<Log['warn']>[0]['event'];

type Said = { one: LogEvent; oneText: string; more: LogEvent; moreText: string };

/** Logs the first lines of a minute about each `key`, and all further ones as a count. */
function limitedLine(log: Log, now: MonotonicClock, said: Said) {
  const writeMore = (count: number) => {
    if (count > 0) log.warn({ event: said.more, count }, said.moreText);
  };
  const { note } = createLimitedLines<Record<string, unknown>>({
    clock: now,
    spanMs: minuteMs,
    linesPerKey,
    linesInAll,
    maxKeys: linesInAll,
    write(fields, before) {
      writeMore(before);
      log.warn({ event: said.one, ...fields }, said.oneText);
    },
    writeCounted: (counted, others) =>
      writeMore(counted.reduce((sum, { count }) => sum + count, others)),
  });
  return note;
}

const refusedOver = {
  mqtt: {
    one: 'mqtt.login-refused',
    oneText: 'An MQTT login was refused.',
    more: 'mqtt.logins-refused',
    moreText: 'More MQTT logins were refused than have a log line of their own.',
  },
  http: {
    one: 'http.login-refused',
    oneText: 'An HTTP login of a device was refused.',
    more: 'http.logins-refused',
    moreText: 'More HTTP logins of devices were refused than have a log line of their own.',
  },
} as const;

/** Logs a refused login: the first ones of an address in a minute with a line each, the rest as a count. */
export type LogRefusedLogin = (address: string, username: string | undefined) => void;

/**
 * One line for each refused login, in a form that fail2ban can read (docs/banning.md): text chosen by the client comes
 * after the address. The user name is logged only if it has the form of a device's: people type passwords there.
 */
export function createRefusedLoginLog(
  log: Log,
  now: MonotonicClock,
  over: 'mqtt' | 'http',
): LogRefusedLogin {
  const write = limitedLine(log, now, refusedOver[over]);
  return (address, username) => {
    const device =
      username !== undefined && isUuid(username.toLowerCase()) ? { device: username } : {};
    write(address, { address, ...device });
  };
}

/** How many characters of a topic a line holds. */
const maxTopicLength = 200;

/** Logs that a device published outside its own topics and was disconnected. */
type LogForeignTopic = (device: string, topic: string) => void;

export function createForeignTopicLog(log: Log, now: MonotonicClock): LogForeignTopic {
  const write = limitedLine(log, now, {
    one: 'mqtt.foreign-topic',
    oneText: 'A device published outside its own topics and was disconnected.',
    more: 'mqtt.foreign-topics',
    moreText:
      "More messages outside their devices' topics arrived than have a log line of their own.",
  });
  return (device, topic) => write(device, { device, topic: topic.slice(0, maxTopicLength) });
}

/** How many addresses are remembered before those that owe nothing are removed. */
const maxIdle = 10_000;

/** Counts refused logins per address (IPv6: per /64). */
export type Refusals = {
  /** Whether no address has a refused login. */
  isEmpty(): boolean;
  /** How many milliseconds logins from this address have to wait; 0: none. */
  waitMs(address: string): number;
  refused(address: string): void;
};

export function createRefusals(perSecond: number, now: MonotonicClock): Refusals {
  const rate: Rate = { perSecond, burst: perSecond };
  const buckets = new Map<string, TokenBucket>();
  let sweepAt = maxIdle;

  function forgetIdle(monotonicMs: MonotonicMs): void {
    for (const [key, bucket] of buckets) if (bucket.isFull(rate, monotonicMs)) buckets.delete(key);
    // If few were idle, the next sweep is far off; otherwise each new address would cause one.
    sweepAt = Math.max(maxIdle, 2 * buckets.size);
  }

  return {
    isEmpty: () => buckets.size === 0,
    waitMs: (address) => buckets.get(network(address))?.waitMs(rate, now()) ?? 0,
    refused(address) {
      const key = network(address);
      const monotonicMs = now();
      if (buckets.size >= sweepAt) forgetIdle(monotonicMs);
      const bucket = buckets.get(key) ?? new TokenBucket(rate, monotonicMs);
      bucket.take(1, rate, monotonicMs);
      buckets.set(key, bucket);
    },
  };
}
