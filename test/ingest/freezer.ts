import type { AlarmSignal } from '../../src/contract/alarm.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import type { IngestProcess } from './harness.ts';

export const warm = {
  evId: 1,
  name: 'Too warm',
  causes: [{ sId: '0x01', thresholds: { isGt: 8 } }],
};
export const push = { cloud: { sendPush: true } };

/** State 1 has an alarm. A value above 20 leads to state 2, which has none. */
export const freezer = Purpose.parse({
  puId: 7,
  name: 'Freezer',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'Closed',
      events: [
        { ...warm, actions: push },
        {
          evId: 2,
          causes: [{ sId: '0x01', thresholds: { isGt: 20 } }],
          actions: { engine: { gotoStId: 2 } },
        },
      ],
    },
    { stId: 2, events: [] },
  ],
});

export const kindsOf = ({ signals }: IngestProcess) => signals.map(({ kind }) => kind);

export const firedOf = ({ signals }: IngestProcess) =>
  signals.filter((one): one is AlarmSignal & { kind: 'fired' } => one.kind === 'fired');
