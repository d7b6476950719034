import { describe, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';

const cause = { sId: '0x1', thresholds: { isAny: true } };
const minimal = { puId: 1, initStId: 2, states: [{ stId: 2 }] };

/** A purpose with every field that the specification names. */
const full = {
  puId: 1,
  name: 'Heating',
  initStId: 2,
  states: [
    {
      stId: 2,
      name: 'Waiting',
      isGlobal: true,
      events: [
        {
          evId: 3,
          name: 'Too warm',
          eventLog: true,
          actions: {
            sms: { text: 'Hot', phoneNumber: ['+420123456789'] },
            cloud: { sendEvent: true, sendLog: false, sendPush: true },
            engine: { gotoStId: 2, gotoPuId: 1 },
            display: { showText: 'HOT' },
          },
          causes: [
            {
              sId: '0x1',
              orderId: 1,
              senseLog: true,
              measurement: { log: true, interval: 1_000, count: 10 },
              threshold: { count: 2, negate: true, relative: true, decimalAcc: 1 },
              thresholds: {
                isOneOf: [1, 2],
                isGt: 1,
                isLt: 3,
                isNotIn: [4],
                isAny: true,
                isInsideGeo: [
                  { lat: 0, long: 0 },
                  { lat: 0, long: 1 },
                  { lat: 1, long: 0 },
                ],
              },
            },
          ],
        },
      ],
    },
  ],
};

const withEvent = (event: object) => ({ ...minimal, states: [{ stId: 2, events: [event] }] });
const withCause = (over: object) => withEvent({ evId: 1, causes: [{ ...cause, ...over }] });

describe('a purpose', () => {
  test('keeps every field that the specification names', () => {
    expect(Purpose.parse(full)).toEqual(full);
  });

  test('requires only its numbers; absent arrays are empty, absent booleans false', () => {
    expect(Purpose.parse(minimal)).toEqual({
      puId: 1,
      initStId: 2,
      states: [{ stId: 2, isGlobal: false, events: [] }],
    });
    const [state] = Purpose.parse(
      withEvent({
        evId: 1,
        actions: { cloud: {}, sms: {} },
        causes: [{ sId: '0x1', threshold: {} }],
      }),
    ).states;
    expect(state?.events).toEqual([
      {
        evId: 1,
        eventLog: false,
        actions: {
          cloud: { sendEvent: false, sendLog: false, sendPush: false },
          sms: { phoneNumber: [] },
        },
        causes: [
          {
            sId: '0x1',
            senseLog: false,
            threshold: { negate: false, relative: false },
            thresholds: {},
          },
        ],
      },
    ]);
  });

  test('drops fields that the specification does not name', () => {
    const parsed = Purpose.parse({
      ...minimal,
      colour: 'red',
      states: [{ stId: 2, colour: 'red' }],
    });
    expect(JSON.stringify(parsed)).not.toContain('red');
  });

  test.each([
    ['true', true],
    ['false', false],
    [true, true],
  ])('accepts %j for measurement.log', (log, expected) => {
    const parsed = Purpose.parse(withCause({ measurement: { log } }));
    expect(parsed.states[0]?.events[0]?.causes[0]?.measurement).toEqual({ log: expected });
  });
});
