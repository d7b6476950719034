import { expect } from 'vitest';
import { ask } from './ask.ts';
import { openWith, type Answer, type Fixture } from './fixture.ts';

/** Repeats the requests that an earlier version answered, and expects the same answers. */
export async function compareAnswers(url: string, fixture: Fixture): Promise<void> {
  const accounts = new Map(fixture.accounts.map((account) => [account.email, account]));
  expect(fixture.answers.length).toBeGreaterThan(100);
  for (const recorded of fixture.answers) {
    const { account: email, opener, path, accept } = recorded;
    const account = accounts.get(email ?? '');
    const opened = account === undefined ? {} : openWith(account, opener);
    const { status, body } = await ask(url, path, { ...opened, accept });
    const answered = comparable({ ...recorded, status, body: withoutNewEntries(recorded, body) });
    const expected =
      path === usagePath ? expectUsage(recorded) : comparable(inPresentWords(recorded));
    expect(answered).toEqual({ ...expected, body: withMore(expected.body) });
  }
}

/** Later versions may add members to answers, but must not change or remove known ones. */
function withMore(expected: unknown): unknown {
  if (Array.isArray(expected)) return expected.map(withMore);
  if (typeof expected !== 'object' || expected === null || 'asymmetricMatch' in expected)
    return expected;
  const members = Object.entries(expected).map(([name, value]) => [name, withMore(value)]);
  return expect.objectContaining(Object.fromEntries(members) as Record<string, unknown>);
}

/**
 * Removes what the comparison itself changes: asking uses the session, and while nobody listens no device is silent.
 */
function comparable(answer: Answer): Answer {
  const text = JSON.stringify(answer, (key, value: unknown) => {
    if (key === 'lastUsedTs') return null;
    return isSilence(value) ? { ...value, dueTs: null, text: withoutDue(value.text) } : value;
  });
  return JSON.parse(text) as Answer;
}

/** A cause of an evaluation that waits for silence. */
function isSilence(value: unknown): value is { noneForMs: number; dueTs: number; text: string } {
  return typeof value === 'object' && value !== null && 'noneForMs' in value && 'dueTs' in value;
}

const withoutDue = (text: string) => text.replace(/holds in [^;]+/, 'holds in …');

/**
 * What 0.4.0 says in other words than this version: all or a part of the text of an answer, by its member. Every other
 * text is the same as then. A new wording needs its line here.
 */
const reworded: Record<string, [then: string, now: string][]> = {
  detail: [
    ['A bearer token is needed.', 'A bearer token is required.'],
    [
      'No API key opens this: log in with the password.',
      'An API key does not open this route: log in with the password.',
    ],
  ],
  text: [
    ['rings then', 'people are notified then'],
    ['people were told', 'people were notified'],
    ['people are told each time', 'people are notified each time'],
    ['nobody is told again', 'nobody is notified again'],
    ['would ring, but snoozed until', 'would notify people, but it is snoozed until'],
    ['would ring, but the device', 'would notify people, but the device'],
    ['the newest is of', 'its newest value is dated'],
  ],
};

/** An answer of 0.4.0 as this version words it. */
export function inPresentWords(recorded: Answer): Answer {
  const text = JSON.stringify(recorded, (key, value: unknown) =>
    typeof value === 'string'
      ? (reworded[key] ?? []).reduce((said, [then, now]) => said.replace(then, now), value)
      : value,
  );
  return JSON.parse(text) as Answer;
}

type Audit = { entries: { auditId: string; kind: string; by: string }[] };

/** From 0.4.0 on the audit trail records which quotas are nearly used up; a start writes today's entries. */
const addedAtStart = ['quota-near', 'quota-used-up'];

function withoutNewEntries(recorded: Answer, body: unknown): unknown {
  if (!recorded.path.startsWith('/v2/accounts/audit') || recorded.status !== 200) return body;
  const known = new Set((recorded.body as Audit).entries.map(({ auditId }) => auditId));
  const isNew = ({ auditId, kind, by }: Audit['entries'][number]) =>
    by === 'service' && addedAtStart.includes(kind) && !known.has(auditId);
  return { ...(body as Audit), entries: (body as Audit).entries.filter((one) => !isNew(one)) };
}

const usagePath = '/v2/accounts/usage';

type Usage = { usage: { quota: string; limit: number; used: number | null }[] };

/**
 * Every quota of that version with its limit, and what is stored counted in the same way; of bytes, later versions may
 * count more kinds. They may have more quotas, too. The daily counts belong to a day that has passed.
 */
function expectUsage(recorded: Answer): Answer {
  const { usage } = recorded.body as Usage;
  const expected = usage.map(({ quota, limit, used }) =>
    used === null || quota.endsWith('PerDay')
      ? expect.objectContaining({ quota, limit })
      : quota === 'storedBytes'
        ? { quota, limit, used: expect.toSatisfy((now: number) => now >= used) as unknown }
        : { quota, limit, used },
  );
  return { ...recorded, body: { usage: expect.arrayContaining(expected) as unknown } };
}
