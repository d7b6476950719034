import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { kindOf } from '../../src/db/error-kind.ts';
import type { Transaction } from '../../src/db/transaction.ts';
import type { Plan } from '../../src/ingest/store/plan.ts';
import { write, type Writers } from '../../src/ingest/store/write.ts';

const sqlError = (code: string) => Object.assign(new Error('no'), { code });

/** Of each kind of row as many as are named. */
function planOf(rows: { measurements: number; rejections: number }) {
  const [measurements, rejections] = [Array(rows.measurements), Array(rows.rejections)];
  const none = { signals: [], events: [], configurations: [], profiles: [] };
  const maps = { clocks: new Map(), displays: new Map(), outcomes: new Map() };
  const devices = { moved: [], evaluated: [], held: [], unchanged: [], due: [] };
  return { ...devices, rows: { ...none, ...maps, measurements, rejections } } as unknown as Plan;
}

// The server answers in order. Which of two answers in one packet the driver's callers hear first is another matter:
// rows are copied, and that takes some turns longer than a plain statement.
test('what ended a transaction is its error, not what the server answered to the statements behind', async () => {
  const writers = {
    async addMeasurements() {
      await setImmediate();
      throw sqlError('53100');
    },
    keepRejections: () => Promise.reject(sqlError('25P02')),
  } as unknown as Writers;
  const tx = { query: async () => ({ rows: [] }) } as unknown as Transaction;
  const writing = write(tx, planOf({ measurements: 1, rejections: 1 }), true, writers);
  await expect(writing).rejects.toMatchObject({ code: '53100' });
});

test('where the first error was not heard, nothing is to blame, and the same is tried again', async () => {
  const writers = { keepRejections: () => Promise.reject(sqlError('25P02')) };
  const tx = { query: async () => ({ rows: [] }) } as unknown as Transaction;
  const plan = planOf({ measurements: 0, rejections: 1 });
  const error: unknown = await write(tx, plan, true, writers as unknown as Writers).catch(
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ code: '25P02' });
  expect(kindOf(error)).toBe('serialization');
});
