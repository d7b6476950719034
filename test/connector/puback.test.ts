import { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import { Connection } from '../../connector/mqtt/connection.ts';
import { startTimeouts } from '../../connector/mqtt/lifecycle.ts';
import { defaultTuning } from '../../connector/ports.ts';
import { limits, manualClock, until } from './harness.ts';

/** A stream to a device that takes bytes when the test says so. */
const entry = { address: '', letIn() {}, refused() {} };

/** More than the socket takes at once. */
const acknowledgements = Buffer.from([0x40, 2, 0, 1, 0x40, 2, 0, 2, 0x40, 2, 0, 3]);

function narrowSocket() {
  const waiting: (() => void)[] = [];
  const socket = new Duplex({
    writableHighWaterMark: 8,
    read() {},
    write(_chunk: Buffer, _encoding, done) {
      waiting.push(done);
    },
  });
  return { socket, take: () => waiting.shift()?.() };
}

test('a full socket counts as blocked until it has drained', async () => {
  const { socket, take } = narrowSocket();
  const connection = new Connection('c', socket, entry, 0);
  const unblocked: Connection[] = [];
  connection.isStarved = true;
  connection.reader = { resume: (one) => unblocked.push(one) };
  connection.write(acknowledgements, 5);
  connection.write(acknowledgements, 9);
  expect(connection.blockedSinceMs).toBe(5);
  take();
  take();
  await until(() => unblocked.length > 0);
  expect(connection.blockedSinceMs).toBeNull();
  expect(unblocked).toEqual([connection]);
});

test('a device that reads no acknowledgements is closed after a while', async () => {
  const { socket } = narrowSocket();
  const connection = new Connection('c', socket, entry, 0);
  connection.stage = 'ready';
  connection.keepaliveMs = 3_600_000;
  const clock = manualClock();
  const stop = startTimeouts({
    registry: { connections: new Set([connection]), forgetIdle() {} },
    acknowledger: { giveUpLate() {} },
    downlinkBudget: { isWanted: false },
    limits,
    tuning: { ...defaultTuning, sweepIntervalMs: 5 },
    now: clock.now,
    onUnacknowledged: () => undefined,
  });
  connection.write(acknowledgements, 0);
  clock.monotonicMs = defaultTuning.drainTimeoutMs;
  await clock.looks(3);
  expect(connection.ending).toBeNull();
  clock.monotonicMs += 1;
  await until(() => connection.ending !== null);
  expect(connection.ending).toBe('unread');
  stop();
});
