import { describe, expect, test } from 'vitest';
import defaults from '../../config/default.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { normalizePhoneNumber } from '../../src/contract/values.ts';
import { createNumberRule } from '../../src/notifications/recipients.ts';
import { createInstallWarnings } from '../../src/notifications/warnings.ts';
import { testDatabase } from '../support/database.ts';

test.each([
  ['+420777123456', '+420777123456'],
  ['+420 777 123-456', '+420777123456'],
  ['+1 (415) 555.2671', '+14155552671'],
  ['+49\u00a0151/23456789', '+4915123456789'],
  ['+49 (0)171 1234567', '+491711234567'],
  ['+49(0)171/1234567', '+491711234567'],
  ['+44 ( 0 ) 20 7946 0018', '+442079460018'],
  ['+39 (0)6 6982', '+39066982'],
  ['+1 (0) 415 555 2671', '+14155552671'],
  // The end of the country code cannot be recognised.
  ['+49 171 (0) 1234567', null],
  ['+49 (0) (0) 171 1234567', null],
  ['(0)171 1234567', null],
  ['00420777123456', null],
  ['777123456', null],
  ['+0777123456', null],
  ['+1234567890123456', null],
  ['+', null],
  ['', null],
  ['+420777x', null],
  ['whatsapp:+420777123456', null],
  ['client:admin', null],
  ['+420777123456,+420777123457', null],
])('%s is %s', (text, number) => {
  expect(normalizePhoneNumber(text)).toBe(number);
});

describe('allowed prefixes', () => {
  test('the longest match decides, in whatever order they are given', () => {
    const isAllowed = createNumberRule(['!+49900', '+49', '+491', '!+4917', '+49170']);
    const numbers = ['+4930123', '+49900123', '+49160', '+49171', '+491701', '+420777'];
    expect(numbers.map(isAllowed)).toEqual([true, false, true, false, true, false]);
  });

  test('an empty list allows no number', () => {
    expect(createNumberRule([])('+420777')).toBe(false);
  });

  const isAllowed = createNumberRule(defaults.notifications.sms?.allowedPrefixes ?? []);
  test.each(['+19005550100', '+449098790000', '+49900123456', '+33899123456', '+979123456789'])(
    'premium-rate %s is refused without any configuration',
    (number) => expect(isAllowed(number)).toBe(false),
  );
  test.each([
    '+14155552671',
    '+447700900123',
    '+4915123456789',
    '+33612345678',
    '+420777123456',
    '+393123456789',
    '+85290123456',
    '+5511961234567',
    '+79161234567',
    '+919876543210',
    '+2348012345678',
  ])('a mobile number such as %s is allowed', (number) => expect(isAllowed(number)).toBe(true));
});

const database = await testDatabase();

describe('warnings about the numbers of a purpose', () => {
  const purposeOf = (actions: unknown) =>
    Purpose.parse({
      puId: 1,
      initStId: 1,
      states: [
        { stId: 1, events: [] },
        { stId: 2, events: [{ evId: 1, actions }] },
      ],
    });
  const { warnOfNumbers, warnOfSms } = createInstallWarnings({
    db: database.db,
    clock: Date.now,
    isAllowedNumber: createNumberRule(['+', '!+1900']),
    isSmsForAll: false,
  });
  const pathOf = (index: number) => `/purposes/${index}`;
  const codesOf = async (actions: unknown) =>
    (await warnOfSms(1, [purposeOf(actions)], pathOf)).map(({ code }) => code);
  const warning = (actions: unknown) => warnOfNumbers([purposeOf(actions)], pathOf);

  test('name each wrong number at its place', () => {
    const phoneNumber = ['+420777', 'client:admin', '+1 900 555'];
    const warnings = warning({ sms: { text: 'Hot', phoneNumber } });
    const at = '/purposes/0/states/1/events/0/actions/sms/phoneNumber';
    expect(warnings.map(({ path }) => path)).toEqual([`${at}/1`, `${at}/2`]);
    expect(warnings[0]?.message).toMatch(/client:admin.*E\.164/);
    expect(warnings[1]?.message).toMatch(/\+1900555.*operator/);
  });

  test('are absent if no SMS is sent', async () => {
    for (const actions of [{}, { sms: { phoneNumber: ['x'] } }, { sms: { text: 'Hot' } }]) {
      expect(warning(actions)).toEqual([]);
      expect(await codesOf(actions)).not.toContain('sms-not-allowed');
    }
  });

  test('say that the account may send no SMS', async () => {
    const actions = { sms: { text: 'Hot', phoneNumber: ['+420777123456'] } };
    expect(await codesOf(actions)).toContain('sms-not-allowed');
  });
});
