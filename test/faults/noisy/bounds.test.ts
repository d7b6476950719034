import { describe, expect, it } from 'vitest';
import { brokenBounds, observe } from './bounds.ts';
import type { Seen } from './bounds.ts';
import type { Phase } from './meter.ts';

const mb = 1_000_000;
const quiet: Phase = {
  acknowledged: 1_000,
  ackP99Ms: 100,
  livezP99Ms: 5,
  livezFailed: 0,
  readP99Ms: 10,
  readsFailed: 0,
  loginMaxMs: 60,
  loginsFailed: 0,
  residentBytes: 200 * 1_048_576,
  ownDelayMs: 0,
  refusals: [],
};

/** The bounds that are broken if the noise had these figures. */
function broken(noisy: Partial<Phase>, rest: Partial<Seen> = {}): string[] {
  const noise = { bytesSent: 2 * mb, counts: {}, cpuMs: 0, ended: null };
  const seen = { quiet, noisy: { ...quiet, ...noisy }, noise, grownBytes: 0, quotaBytes: 0 };
  return brokenBounds(observe({ ...seen, ...rest }));
}

describe('what a noisy neighbour may do to the others', () => {
  it('is nothing that they would notice', () => {
    expect(broken({})).toEqual([]);
    const most = { ackP99Ms: 500, livezP99Ms: 199, loginMaxMs: 1_999 };
    expect(broken(most, { grownBytes: 18 * mb })).toEqual([]);
  });

  it.each([
    ['acknowledgements', { ackP99Ms: 501 }, 'ack p99 ms: 501, promised at most 500'],
    ['/livez', { livezP99Ms: 201 }, 'livez p99 ms: 201, promised at most 200'],
    ['an unanswered /livez', { livezFailed: 1 }, 'livez failed: 1, promised at most 0'],
    ['logins', { loginMaxMs: 2_001 }, 'login max ms: 2001, promised at most 2000'],
    ['refused logins', { loginsFailed: 2 }, 'logins failed: 2, promised at most 0'],
    ['memory', { residentBytes: 401 * 1_048_576 }, 'memory MB: 201, promised at most 200'],
  ])('limits %s', (_what, noisy, said) => {
    expect(broken(noisy)).toEqual([said]);
  });

  it('lets acknowledgements take three times as long, if that is more', () => {
    const slow = { ...quiet, ackP99Ms: 300 };
    expect(broken({ ackP99Ms: 900 }, { quiet: slow })).toEqual([]);
    expect(broken({ ackP99Ms: 901 }, { quiet: slow })).toEqual([
      'ack p99 ms: 901, promised at most 900',
    ]);
  });

  it('lets tables grow by five times what was sent, or by a quota, and by a step of the files', () => {
    expect(broken({}, { grownBytes: 19 * mb })).toEqual(['tables MB: 19, promised at most 18']);
    expect(broken({}, { grownBytes: 58 * mb, quotaBytes: 50 * mb })).toEqual([]);
    expect(broken({}, { grownBytes: 59 * mb, quotaBytes: 50 * mb })).toHaveLength(1);
  });

  it('limits the memory kept afterwards, if that is measured', () => {
    expect(broken({}, { kept: { mb: 100, mostMb: 100 } })).toEqual([]);
    expect(broken({}, { kept: { mb: 101, mostMb: 100 } })).toEqual([
      'kept MB: 101, promised at most 100',
    ]);
  });

  it('counts what could not be measured as broken', () => {
    expect(brokenBounds({})).toHaveLength(7);
  });
});
