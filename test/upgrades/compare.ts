import { expect } from 'vitest';
import { ask } from './ask.ts';
import type { Fixture } from './fixture.ts';

/** Asks again what an earlier version was asked, and expects each answer to be the same. */
export async function compareAnswers(url: string, fixture: Fixture): Promise<void> {
  const tokens = new Map(fixture.accounts.map(({ email, token }) => [email, token]));
  expect(fixture.answers.length).toBeGreaterThan(100);
  for (const { account, path, accept, status, body } of fixture.answers) {
    const token = account === null ? null : tokens.get(account);
    const { next: _, ...reply } = await ask(url, path, { token, accept });
    const answered = withoutLastUse({ account, path, ...reply });
    expect(answered).toEqual(withoutLastUse({ account, path, status, body }));
  }
}

/** To ask is to use the session. */
function withoutLastUse(answer: object): unknown {
  const text = JSON.stringify(answer, (key, value: unknown) =>
    key === 'lastUsedTs' ? null : value,
  );
  return JSON.parse(text);
}
