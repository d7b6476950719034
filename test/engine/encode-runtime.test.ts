import { expect, test } from 'vitest';
import type { Profile } from '../../src/engine/compile.ts';
import { explain } from '../../src/engine/explain.ts';
import { encodeRuntime, readRuntime, type StoredRuntime } from '../../src/engine/runtime-codec.ts';
import { startRuntime } from '../../src/engine/runtime.ts';
import { number, profileOf, purposeWith, run } from './samples.ts';

const lasting = { sId: '0x1', threshold: { count: 9, relative: true }, thresholds: { isGt: 1 } };
const profile = profileOf(
  purposeWith(
    { evId: 1, causes: [lasting, { sId: '0x2', thresholds: { isGt: 5 } }] },
    { evId: 2, causes: [{ sId: '0x9', thresholds: { isGt: 5 } }] },
    { evId: 3, causes: [lasting, { sId: '0x2', thresholds: { isLt: 0 } }] },
  ),
);
const measured = run(profile, [number(20, 1), number(22, 2), number(20, 3), number(23.5, 4)]);

test('a stored runtime omits what was not collected, and stores shared evidence once', () => {
  expect(JSON.parse(encodeRuntime(profile, measured.runtime))).toEqual({
    v: 2,
    puId: 1,
    stId: 1,
    agreed: [[23.5, 4]],
    // Of four outcomes, the newest and the third newest agreed: 0101.
    events: [[0, [4, 'FA', 0, 20]]],
    local: { '1/1': 0, '1/3': 0 },
    global: {},
  });
  expect(encodeRuntime(profile, startRuntime(profile, 0))).toBe(
    '{"v":2,"puId":1,"stId":1,"agreed":[],"events":[],"local":{},"global":{}}',
  );
});

test('reads a runtime that version 0.1 stored', () => {
  const agreed = { val: 23.5, ts: 4, compared: 3.5 };
  const event = { causes: [{ window: '0101', baseline: 20, agreed }, null] };
  const old = { v: 1, puId: 1, stId: 1, local: { '1/1': event, '1/3': event }, global: {} };
  expect(readRuntime(profile, old as StoredRuntime)).toStrictEqual(measured.runtime);
});

test('reads an episode that has rung from both forms', () => {
  const ringing = profileOf(
    purposeWith({
      evId: 1,
      causes: [{ sId: '0x1', thresholds: { isGt: 5 } }],
      actions: { cloud: { sendPush: true } },
    }),
  );
  const { runtime } = run(ringing, [number(6, 1)]);
  const local = { '1/1': { causes: [null], rung: true } };
  const old = { v: 1, puId: 1, stId: 1, local, global: {} };
  expect(readRuntime(ringing, old as StoredRuntime)).toStrictEqual(runtime);
  expect(run(ringing, [number(7, 2)], { runtime, seen: {} }).evaluations[0]?.firings).toMatchObject(
    [{ isFirst: false }],
  );
});

test('drops evidence of events and causes that the profile does not have', () => {
  const fewer = profileOf(purposeWith({ evId: 3, causes: [lasting] }));
  const stored = JSON.parse(encodeRuntime(profile, measured.runtime)) as StoredRuntime;
  const { events } = explain(fewer, readRuntime(fewer, stored), {});
  expect(events).toMatchObject([{ evId: 3, causes: [{ matched: 2, of: 4, baseline: 20 }] }]);
});

test('windows of a thousand outcomes are short', () => {
  const long = profileOf(
    purposeWith({
      evId: 1,
      causes: [{ sId: '0x1', threshold: { count: 1_000 }, thresholds: { isGt: 5 } }],
    }),
  );
  const stream = Array.from({ length: 1_500 }, (_, ts) => number(ts % 7 === 0 ? 1 : 9, ts));
  const { runtime } = run(long, stream);
  const text = encodeRuntime(long, runtime);
  expect(text.length).toBeLessThan(280);
  expect(readRuntime(long, JSON.parse(text) as StoredRuntime)).toStrictEqual(runtime);
  expect(explain(long, runtime, {}).events[0]?.causes).toMatchObject([
    { of: 1_000, matched: 857, agreed: { ts: 1_499 } },
  ]);
});

test('a statistic begins anew where an earlier version did not keep what it needs', () => {
  const minute = 60_000;
  const smallest = (stat: string) => ({
    sId: '0x1',
    threshold: { over: { ms: 60 * minute, stat } },
    thresholds: { isLt: 5 },
  });
  // An earlier version takes a statistic that it does not know for an average, and keeps as much.
  const [earlier, now] = ['avg', 'min'].map((stat) =>
    profileOf(purposeWith({ evId: 1, causes: [smallest(stat)] })),
  ) as [Profile, Profile];
  const stream = [0, 10, 20, 35].map((at) => number(1 + at, at * minute));
  const stored = JSON.parse(encodeRuntime(earlier, run(earlier, stream).runtime)) as StoredRuntime;
  expect(explain(earlier, readRuntime(earlier, stored), {}).events[0]?.causes).toMatchObject([
    { statistic: 17.25 },
  ]);
  expect(explain(now, readRuntime(now, stored), {}).events[0]?.causes).toMatchObject([
    { collectedMs: 0 },
  ]);
  const own = JSON.parse(encodeRuntime(now, run(now, stream).runtime)) as StoredRuntime;
  expect(explain(now, readRuntime(now, own), {}).events[0]?.causes).toMatchObject([
    { statistic: 1 },
  ]);
});
