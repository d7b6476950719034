import { describe, expect, it } from 'vitest';
import type { HttpReceipt } from '../../bench/client/http-body.ts';
import { forever, ingestProcess, insertDevice, uplink } from '../ingest/harness.ts';
import { testDatabase } from '../support/database.ts';
import { agrees, countRejections, createReceipts } from './receipts.ts';

const wrong = [{ reason: 'unknown-sense' }];
const right: HttpReceipt = {
  first: 3,
  again: 2,
  known: 1,
  wrong: 1,
  answer: { stored: 4, repeated: 2, rejected: wrong },
};
const saying = (answer: HttpReceipt['answer']) => ({ ...right, answer });

describe('a receipt', () => {
  it('may say that what was sent before was stored then', () => {
    const receipts = createReceipts();
    receipts.add(0, right);
    expect(receipts.wrong()).toEqual([]);
    expect(receipts.of(0)).toEqual({ stored: 4, repeated: 1, rejected: 1 });
    expect(receipts.of(1)).toBeNull();
  });

  it.each([
    ['says nothing', saying(null)],
    ['leaves an item out', saying({ stored: 3, repeated: 2, rejected: wrong })],
    ['has one item more', saying({ stored: 5, repeated: 2, rejected: wrong })],
    ['calls a new item repeated', saying({ stored: 2, repeated: 4, rejected: wrong })],
    ['calls a repeated item new', saying({ stored: 6, repeated: 0, rejected: wrong })],
    ['rejects nothing', saying({ stored: 4, repeated: 2, rejected: [] })],
  ])('is wrong if it %s', (_what, receipt) => {
    const receipts = createReceipts();
    receipts.add(0, receipt);
    expect(receipts.wrong()).toHaveLength(1);
  });

  it('may call new items repeated once outcomes of commits may be lost', () => {
    const receipts = createReceipts();
    receipts.loseOutcomes();
    receipts.add(0, saying({ stored: 0, repeated: 6, rejected: wrong }));
    expect(receipts.wrong()).toEqual([]);
    expect(receipts.of(0)).toEqual({ stored: 0, repeated: 5, rejected: 1 });
    receipts.add(0, saying({ stored: 0, repeated: 5, rejected: wrong }));
    expect(receipts.wrong()).toHaveLength(1);
  });

  it('is compared with what is stored; what was not answered may be there or not', () => {
    const told = { stored: 10, repeated: 2, rejected: 1 };
    expect(agrees(told, { measurements: 12, rejections: 1 }, 0)).toBe(true);
    expect(agrees(told, { measurements: 13, rejections: 2 }, 1)).toBe(true);
    expect(agrees(told, { measurements: 13, rejections: 1 }, 0)).toBe(false);
    expect(agrees(told, { measurements: 11, rejections: 1 }, 5)).toBe(false);
    expect(agrees(told, { measurements: 12, rejections: 0 }, 0)).toBe(false);
  });
});

it('counts the rejections of a minute beyond those kept individually', async () => {
  const database = await testDatabase();
  const process = ingestProcess(database.url);
  try {
    const device = await insertDevice(database.db);
    const items = [{ index: null, value: { sId: '0x0f', val: 1 } }];
    for (let sent = 0; sent < 70; sent += 1)
      await process.ingest.ingest(device, uplink({ kind: 'measurements', items }), forever);
    expect(await countRejections(database.db, device.uuid)).toBe(70);
  } finally {
    await process.close();
    await database.drop();
  }
});
