import { expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import { expectedEvents, markOf } from '../faults/expected-events.ts';
import { testDatabase } from '../support/database.ts';
import { forever, ingestProcess, insertDevice, installProfile, measured, now } from './harness.ts';
import { recordedEvents } from './harness.ts';
import type { IngestProcess } from './harness.ts';

test('processes that take devices from each other again and again evaluate as a single one would', async () => {
  const database = await testDatabase();
  const { db } = database;
  const purpose = Purpose.parse({
    puId: 7,
    initStId: 1,
    states: [
      {
        stId: 1,
        events: [
          {
            evId: 1,
            eventLog: true,
            causes: [{ sId: '0x01', threshold: { count: 2 }, thresholds: { isGt: 20 } }],
          },
          {
            evId: 2,
            eventLog: true,
            causes: [{ sId: '0x02', thresholds: { isGt: 20 } }],
            actions: { engine: { gotoStId: 2 } },
          },
        ],
      },
      {
        stId: 2,
        events: [
          {
            evId: 3,
            eventLog: true,
            causes: [{ sId: '0x01', threshold: { count: 3 }, thresholds: { isLt: 20 } }],
            actions: { engine: { gotoStId: 1 } },
          },
        ],
      },
    ],
  });
  const processes = [1, 2, 3].map(() => ingestProcess(database.url));
  const lives = Array.from({ length: 24 }, async (_, n) => {
    const device = await insertDevice(db);
    const pId = await installProfile(db, device, [purpose]);
    const random = randomFrom(n + 1);
    const stream = Array.from({ length: 60 }, (_unused, step) => ({
      sId: random() < 0.8 ? '0x01' : '0x02',
      val: random() < 0.6 ? 5 : 15 + Math.floor(random() * 10),
      ts: now + step + Math.floor(random() * 6) - 3,
    }));
    for (const { sId, ts, val } of stream) {
      const { ingest } = processes[Math.floor(random() * processes.length)] as IngestProcess;
      await ingest.ingest(device, measured(sId, [ts, val]), forever);
    }
    return { device, expected: expectedEvents(pId, [purpose], stream) };
  });
  let fired = 0;
  for (const { device, expected } of await Promise.all(lives)) {
    const events = await recordedEvents(db, device);
    const marks = events.flatMap(({ type, ts, body }) => {
      if ('event' in body)
        return body.event === 'purposeChanged' ? [] : [markOf(body.event, ts, body.newValue)];
      return type === 'sense' ? [markOf(type, ts, body.cause.engine.evId)] : [];
    });
    fired += expected.length;
    expect(marks.sort()).toEqual(expected);
  }
  expect(fired).toBeGreaterThan(100);
  await Promise.all(processes.map((process) => process.close()));
  await database.drop();
});

/** A sequence that looks random, and is the same in every run (Park and Miller's). */
function randomFrom(seed: number): () => number {
  let state = seed * 48_271;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}
