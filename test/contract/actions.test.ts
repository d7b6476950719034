import { describe, expect, test } from 'vitest';
import { Actions, listAsked, messagesOf, notificationsAsked } from '../../src/contract/actions.ts';
import type { SenseEvent } from '../../src/contract/event.ts';

const engine = { pId: 'p', puId: 1, stId: 1, evId: 1, ts: 5 };
const event: SenseEvent = { type: 'sense', ts: 5, cause: { engine, senses: [] } };
const device = { deviceId: 7, uuid: 'u', accountId: 3 };
const fired = { device, event, name: 'Too warm' };

const namesOf = (given: object) => listAsked(Actions.parse(given)).map(({ name }) => name);

describe('actions', () => {
  test.each([
    ['nothing', {}, []],
    ['sections without members', { cloud: {}, sms: {}, engine: {}, display: {} }, []],
    ['an event', { cloud: { sendEvent: true } }, ['record']],
    ['a log entry', { cloud: { sendLog: true } }, ['record']],
    ['push', { cloud: { sendPush: true } }, ['push']],
    ['a number', { sms: { phoneNumber: ['+4915112345678'] } }, ['sms']],
    ['a text', { display: { showText: '' } }, ['show-text']],
    ['a move to state 0', { engine: { gotoStId: 0 } }, ['move']],
    ['an alarm', { alarm: true }, ['alarm']],
    [
      'all',
      {
        cloud: { sendPush: true, sendLog: true },
        sms: { phoneNumber: ['+4915112345678'] },
        display: { showText: 'Warm' },
        engine: { gotoPuId: 2 },
        alarm: true,
      },
      ['record', 'push', 'sms', 'show-text', 'move', 'alarm'],
    ],
  ])('%s has these kinds', (_, given, names) => {
    expect(namesOf(given)).toEqual(names);
  });

  test('an SMS goes to each number once, and to none without a text', () => {
    const phoneNumber = ['+4915112345678', '+4915112345678', '+4915187654321'];
    const withText = Actions.parse({ sms: { text: 'Come home', phoneNumber } });
    const asked = {
      accountId: 3,
      deviceId: 7,
      deviceUuid: 'u',
      event,
      kind: 'sms',
      name: 'Too warm',
      text: 'Come home',
    };
    expect([...notificationsAsked(withText, fired)]).toEqual([
      { ...asked, phoneNumber: '+4915112345678' },
      { ...asked, phoneNumber: '+4915187654321' },
    ]);
    expect([...notificationsAsked(Actions.parse({ sms: { phoneNumber } }), fired)]).toEqual([]);
  });

  test('a text goes to the device, with the time of the event', () => {
    const actions = Actions.parse({ display: { showText: 'Warm' }, cloud: { sendPush: true } });
    expect(messagesOf(actions, fired)).toEqual([
      { topic: 'display', payload: { text: 'Warm', ts: 5 } },
    ]);
  });
});
