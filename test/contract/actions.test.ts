import { describe, expect, test } from 'vitest';
import {
  type Action,
  actionKinds,
  Actions,
  listAsked,
  messagesOf,
  notificationsAsked,
} from '../../src/contract/actions.ts';
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
    [
      'all',
      { cloud: { sendPush: true, sendLog: true }, engine: { gotoPuId: 2 } },
      ['record', 'push', 'move'],
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

  test('names are unique', () => {
    expect(new Set(actionKinds.map(({ name }) => name)).size).toBe(actionKinds.length);
  });

  test('a new kind is carried out beside the others', () => {
    const beep: Action<Actions> = {
      name: 'beep',
      reaches: 'device',
      isAsked: ({ display }) => display?.showText === '\u0007',
      message: (_, { event: { ts } }) => ({ topic: 'display', payload: { beep: true, ts } }),
    };
    const kinds = [...actionKinds, beep];
    const actions = Actions.parse({ display: { showText: '\u0007' } });
    expect(listAsked(actions, kinds).map(({ name }) => name)).toEqual(['show-text', 'beep']);
    expect(messagesOf(actions, fired, kinds)).toEqual([
      { topic: 'display', payload: { text: '\u0007', ts: 5 } },
      { topic: 'display', payload: { beep: true, ts: 5 } },
    ]);
  });
});
