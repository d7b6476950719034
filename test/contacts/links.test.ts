import { expect, test } from 'vitest';
import { linkLifetimeMs, makeResetToken } from '../../src/accounts/mailer.ts';
import { readLinkClaim } from '../../src/lib/crypto.ts';
import { deriveKeys } from '../../src/config/keys.ts';
import { makeContactToken, readLinkToken } from '../../src/notifications/channels/email.ts';
import { webhookSecrets } from '../../src/notifications/channels/webhook.ts';

const [first, second] = [
  'a secret of this test, which is long enough',
  'another of this test, long enough',
];
const { mailLinks: keys, webhookSecrets: hookKeys } = deriveKeys(first);
const contactUuid = '0f8fad5b-d9cb-469f-a165-70867728950e';
const day = 86_400_000;

test('a link identifies its contact until it expires', () => {
  const token = makeContactToken(keys, 'confirm', { contactUuid, nowTs: 1_000 });
  expect(token).toMatch(/^[\w-]+$/);
  const read = (nowTs: number) => readLinkToken(keys, 'confirm', { token, nowTs });
  expect(read(1_000 + 7 * day)).toEqual({ contactUuid, madeTs: 1_000 });
  expect(read(1_001 + 7 * day)).toBeNull();
  const unsubscribe = makeContactToken(keys, 'unsubscribe', { contactUuid, nowTs: 1_000 });
  expect(
    readLinkToken(keys, 'unsubscribe', { token: unsubscribe, nowTs: 400 * day }),
  ).not.toBeNull();
});

test('it is valid for one purpose, unmodified, and with these keys', () => {
  const token = makeContactToken(keys, 'confirm', { contactUuid, nowTs: 0 });
  expect(readLinkToken(keys, 'unsubscribe', { token, nowTs: 0 })).toBeNull();
  const others = deriveKeys(second).mailLinks;
  expect(readLinkToken(others, 'confirm', { token, nowTs: 0 })).toBeNull();
  const changed = deriveKeys(second, first).mailLinks;
  expect(readLinkToken(changed, 'confirm', { token, nowTs: 0 })).not.toBeNull();
  for (let at = 0; at < token.length; at += 1) {
    const other = token[at] === 'A' ? 'B' : 'A';
    const tampered = token.slice(0, at) + other + token.slice(at + 1);
    expect(readLinkToken(keys, 'confirm', { token: tampered, nowTs: 0 })).toBeNull();
  }
  for (const wrong of ['', 'x', `${token}A`, token.slice(1)])
    expect(readLinkToken(keys, 'confirm', { token: wrong, nowTs: 0 })).toBeNull();
});

test('the secret of a webhook stays, and signs beside the next one while SECRET is changed', () => {
  const [secret] = webhookSecrets(hookKeys, contactUuid);
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/);
  expect(webhookSecrets(hookKeys, contactUuid)).toEqual([secret]);
  const both = webhookSecrets(deriveKeys(second, first).webhookSecrets, contactUuid);
  expect(both).toHaveLength(2);
  expect(both[1]).toBe(secret);
  const [other] = webhookSecrets(hookKeys, '1f8fad5b-d9cb-469f-a165-70867728950e');
  expect(other).not.toBe(secret);
});

test('a link from a clock that ran ahead is not accepted once that is right, except to unsubscribe', () => {
  const aheadMs = 365 * day;
  const read = (purpose: 'confirm' | 'unsubscribe') => {
    const token = makeContactToken(keys, purpose, { contactUuid, nowTs: aheadMs });
    return readLinkToken(keys, purpose, { token, nowTs: 0 });
  };
  expect(read('confirm')).toBeNull();
  expect(read('unsubscribe')).not.toBeNull();
  const account = { accountUuid: contactUuid, passwordHash: '', email: '' };
  const token = makeResetToken(keys, account, aheadMs);
  expect(readLinkClaim(token, aheadMs, linkLifetimeMs)?.uuid).toBe(contactUuid);
  expect(readLinkClaim(token, 0, linkLifetimeMs)).toBeNull();
});
