import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  answerCommand,
  commandJson,
  type CommandProgress,
  commandStates,
  commandTransitions,
  happen,
  openStates,
} from '../../src/contract/command.ts';
import { runs } from '../support/share.ts';

const begun: CommandProgress = {
  state: 'queued',
  createdTs: 1_000,
  expiresTs: 5_000,
  sentTs: null,
  acceptedTs: null,
  runningTs: null,
  endedTs: null,
  told: {},
  late: null,
};

const time = fc.integer({ min: 0, max: 8_000 });
const answer = fc.record(
  {
    state: fc.constantFrom(
      'accepted' as const,
      'running' as const,
      'done' as const,
      'failed' as const,
    ),
    progress: fc.integer({ min: 0, max: 100 }),
    text: fc.string({ maxLength: 3 }),
  },
  { requiredKeys: ['state'] },
);
const step = fc.oneof(
  fc.record({
    what: fc.constantFrom('sent' as const, 'expired' as const, 'cancelled' as const),
    ts: time,
  }),
  fc.record({ answer, ts: time }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const take = (command: CommandProgress, one: Step): CommandProgress =>
  'what' in one ? happen(command, one.what, one.ts) : answerCommand(command, one.answer, one.ts);
const isOpen = ({ state }: CommandProgress) => (openStates as readonly string[]).includes(state);

test('ends are final, times are in order, and what is repeated changes nothing', () => {
  const steps = fc.array(step, { maxLength: 12 });
  fc.assert(
    fc.property(steps, (all) => {
      let command = begun;
      for (const one of all) {
        const before = command;
        command = take(before, one);
        if (!isOpen(before)) expect({ ...command, late: null }).toEqual({ ...before, late: null });
        const times = [
          command.createdTs,
          command.sentTs,
          command.acceptedTs,
          command.runningTs,
          command.endedTs,
          command.late?.ts ?? null,
        ].filter((ts) => ts !== null);
        expect(times).toEqual(times.toSorted((a, b) => a - b));
        expect(isOpen(command)).toBe(command.endedTs === null);
        if (isOpen(command)) expect(command.late).toBeNull();
        expect(take(command, one)).toBe(command);
      }
    }),
    { numRuns: runs(1_000) },
  );
});

test('an answer goes forward, and an end can come from any open state', () => {
  for (const state of commandStates) {
    const froms = state === 'queued' ? [] : commandTransitions[state];
    for (const from of commandStates) {
      if (state === 'queued') continue;
      const after = happen({ ...begun, state: from }, state, 2_000);
      expect(after.state).toBe(froms.includes(from) ? state : from);
    }
  }
  expect(commandTransitions.accepted).not.toContain('running');
});

test('what comes after the end is kept once beside it: the first, or the first that names an end', () => {
  const cancelled = happen(begun, 'cancelled', 2_000);
  const accepted = answerCommand(cancelled, { state: 'accepted' }, 2_100);
  expect(accepted.late).toEqual({ state: 'accepted', ts: 2_100 });
  const running = answerCommand(accepted, { state: 'running', progress: 5 }, 2_200);
  expect(running).toBe(accepted);
  const done = answerCommand(running, { state: 'done', text: 'ok' }, 2_300);
  expect(done.late).toEqual({ state: 'done', text: 'ok', ts: 2_300 });
  expect(answerCommand(done, { state: 'failed' }, 2_400)).toBe(done);
  expect(done).toMatchObject({ state: 'cancelled', endedTs: 2_000 });
});

test('an answer after its time is late, also before anybody noticed that it is over', () => {
  const sent = happen(begun, 'sent', 1_500);
  expect(answerCommand(sent, { state: 'done' }, 4_999)).toMatchObject({ state: 'done' });
  const late = answerCommand(sent, { state: 'done' }, 5_000);
  expect(late).toMatchObject({ state: 'expired', endedTs: 5_000, late: { state: 'done' } });
});

test('a redelivered "running" does not take progress back', () => {
  const at50 = answerCommand(begun, { state: 'running', progress: 50 }, 2_000);
  const at60 = answerCommand(at50, { state: 'running', progress: 60, text: 'more' }, 2_100);
  expect(at60.told).toEqual({ progress: 60, text: 'more' });
  expect(answerCommand(at60, { state: 'running', progress: 50 }, 2_200)).toBe(at60);
});

test('JSON has bounds of length, depth and parts, and a fault of its own is none', () => {
  expect(commandJson({ a: [1, '\ud800\0'] })).toBe('{"a":[1,"\\ud800\\u0000"]}');
  expect(commandJson('x'.repeat(16_382))).toHaveLength(16_384);
  expect(commandJson('x'.repeat(16_383))).toBeNull();
  const nested = (depth: number) => JSON.parse('['.repeat(depth) + ']'.repeat(depth)) as unknown;
  expect(commandJson(nested(32))).not.toBeNull();
  expect(commandJson(nested(33))).toBeNull();
  expect(commandJson(nested(20_000))).toBeNull();
  expect(commandJson(Array.from({ length: 5_000 }, () => 0))).toBeNull();
});
