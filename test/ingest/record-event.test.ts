import { expect, it } from 'vitest';
import { recordEvent } from '../../src/ingest/rules/firings.ts';
import { type DeviceState, type MessageScope, noChanges } from '../../src/ingest/rules/model.ts';
import { device } from './fragments.ts';

it('gives events of one moment keys that sort as they happened, over batches and versions', () => {
  const keys: string[] = [];
  for (const version of [1, 9, 10, 99, 100, 12_345_678]) {
    const scope = { rows: noChanges() } as MessageScope;
    const deviceState = { device: device(1), version } as DeviceState;
    for (let n = 0; n < 120; n++) {
      const engine = { pId: '', puId: 1, stId: 1, evId: n, ts: 5 };
      recordEvent(deviceState, { type: 'sense', ts: 5, cause: { engine, senses: [] } }, scope);
    }
    keys.push(...scope.rows.events.map(({ key }) => key));
  }
  expect(keys.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(keys);
  expect(new Set(keys).size).toBe(keys.length);
});
