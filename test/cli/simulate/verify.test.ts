import { afterEach, describe, expect, it } from 'vitest';
import { createTally, type Reading } from '../../../src/cli/simulate/devices.ts';
import { createRest, createTransport } from '../../../src/cli/simulate/rest.ts';
import { report } from '../../../src/cli/simulate/run.ts';
import { createScreen } from '../../../src/cli/command-line.ts';
import { verify } from '../../../src/cli/simulate/verify.ts';
import { startFakeHistory, type FakeHistory } from './fake-history.ts';

const sent: Reading[] = Array.from({ length: 25 }, (_, n) => ({
  sId: '0x10',
  val: n / 10,
  ts: 1_000 + n,
}));
let fake: FakeHistory | undefined;

afterEach(async () => {
  await fake?.close();
  fake = undefined;
});

/** Two devices with everything acknowledged. `keep` selects what the service has of the second one. */
async function verifyAgainst(keep: (sent: Reading[]) => Reading[]) {
  fake = await startFakeHistory((uuid) => (uuid === 'second' ? keep(sent) : sent), 10);
  const transport = createTransport({ insecure: false, maxConnections: 2 });
  const screen = createScreen({ write: () => true });
  const devices = ['first', 'second'].map((uuid) => ({
    uuid,
    ledger: { sent, acknowledged: sent },
  }));
  const result = await verify(createRest(transport, fake.url), screen, devices);
  transport.close();
  return report(result, createTally());
}

describe('what is read back', () => {
  it('agrees if the pages contain everything that was acknowledged', async () => {
    const { agrees, text } = await verifyAgainst((all) => all);
    expect(agrees).toBe(true);
    expect(text).toContain('50 measurements were acknowledged, and 50 of them were read back.');
    expect(text).toContain('50 events are recorded');
    // Three pages of measurements and three of events for each of the two devices.
    expect(fake?.requests()).toBe(12);
  });

  it('differs if one measurement was lost', async () => {
    const { agrees, text } = await verifyAgainst((all) => all.toSpliced(17, 1));
    expect(agrees).toBe(false);
    expect(text).toContain('50 measurements were acknowledged, and 49 of them were read back.');
    expect(text).toContain('DIFFERENCE: 1 acknowledged but not stored: 0x10 = 1.7 at 1017');
  });

  it('differs if a value was changed: one is lost, another was never sent', async () => {
    const { agrees, text } = await verifyAgainst((all) =>
      all.with(3, { sId: '0x10', val: 99, ts: 1_003 }),
    );
    expect(agrees).toBe(false);
    expect(text).toContain('1 acknowledged but not stored: 0x10 = 0.3 at 1003');
    expect(text).toContain('1 stored, but never sent in this form: 0x10 = 99 at 1003');
  });

  it('differs if a measurement is stored twice', async () => {
    const { agrees, text } = await verifyAgainst((all) => [...all, ...all.slice(0, 4)]);
    expect(agrees).toBe(false);
    expect(text).toContain('DIFFERENCE: 4 stored more than once');
  });

  it('differs if the last page is missing', async () => {
    const { agrees, text } = await verifyAgainst((all) => all.slice(-20));
    expect(agrees).toBe(false);
    expect(text).toContain('DIFFERENCE: 5 acknowledged but not stored');
  });
});
