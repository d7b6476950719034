import { afterEach, describe, expect, it } from 'vitest';
import { createTally, type Reading } from '../../../src/cli/simulate/devices.ts';
import { createRest, createTransport } from '../../../src/cli/simulate/rest.ts';
import { createScreen } from '../../../src/cli/command-line.ts';
import { verify } from '../../../src/cli/simulate/verify.ts';
import { startFakeHistory, type FakeHistory } from './fake-history.ts';

const all: Reading[] = Array.from({ length: 25 }, (_, n) => ({
  sId: '0x10',
  val: n / 10,
  ts: 1_000 + n,
}));
let fake: FakeHistory | undefined;

afterEach(async () => {
  await fake?.close();
  fake = undefined;
});

/** Two devices with all of `sent` acknowledged. `keep` selects what the service has of the second one. */
async function verifyAgainst(
  keep: (sent: Reading[]) => Reading[],
  { sent = all, events = 0 } = {},
) {
  fake = await startFakeHistory((uuid) => (uuid === 'second' ? keep(sent) : sent), 10);
  const transport = createTransport({ insecure: false, maxConnections: 2 });
  const screen = createScreen({ write: () => true });
  const devices = ['first', 'second'].map((uuid) => ({
    uuid,
    ledger: { sent, acknowledged: sent },
  }));
  const tally = { ...createTally(), events };
  const result = await verify({ rest: createRest(transport, fake.url), screen, devices, tally });
  transport.close();
  return result;
}

describe('what is read back', () => {
  it('agrees if the pages contain everything that was acknowledged', async () => {
    const { agrees, text } = await verifyAgainst((stored) => stored);
    expect(agrees).toBe(true);
    expect(text).toContain('50 measurements were acknowledged, and 50 of them were read back.');
    expect(text).toContain('50 events are recorded');
    // Three pages of measurements and three of events for each of the two devices.
    expect(fake?.requests()).toBe(12);
  });

  it('differs if one measurement was lost', async () => {
    const { agrees, text } = await verifyAgainst((stored) => stored.toSpliced(17, 1));
    expect(agrees).toBe(false);
    expect(text).toContain('50 measurements were acknowledged, and 49 of them were read back.');
    expect(text).toContain('DIFFERENCE: 1 acknowledged but not stored: 0x10 = 1.7 at 1017');
  });

  it('differs if a value was changed: one is lost, another was never sent', async () => {
    const { agrees, text } = await verifyAgainst((stored) =>
      stored.with(3, { sId: '0x10', val: 99, ts: 1_003 }),
    );
    expect(agrees).toBe(false);
    expect(text).toContain('1 acknowledged but not stored: 0x10 = 0.3 at 1003');
    expect(text).toContain('1 stored, but never sent in this form: 0x10 = 99 at 1003');
  });

  it('differs if a measurement is stored twice', async () => {
    const { agrees, text } = await verifyAgainst((stored) => [...stored, ...stored.slice(0, 4)]);
    expect(agrees).toBe(false);
    expect(text).toContain('DIFFERENCE: 4 stored more than once');
  });

  it('differs if the last page is missing', async () => {
    const { agrees, text } = await verifyAgainst((stored) => stored.slice(-20));
    expect(agrees).toBe(false);
    expect(text).toContain('DIFFERENCE: 5 acknowledged but not stored');
  });

  it('does not agree when nothing was acknowledged', async () => {
    const { agrees, text } = await verifyAgainst((none) => none, { sent: [] });
    expect(agrees).toBe(false);
    expect(text).toContain('Nothing was acknowledged');
  });

  it('differs when devices received events that nobody recorded', async () => {
    const one = { sent: all.slice(0, 1) };
    const agreesWith = async (events: number) =>
      (await verifyAgainst((stored) => stored, { ...one, events })).agrees;
    // The fake has an event for each measurement of the two.
    expect([await agreesWith(2), await agreesWith(3)]).toEqual([true, false]);
  });
});
