const square = [
  { lat: 50, long: 14 },
  { lat: 50, long: 15 },
  { lat: 51, long: 15 },
  { lat: 51, long: 14 },
];

const logged = { eventLog: true, actions: { cloud: { sendEvent: true } } };

/** Every kind of evidence, so that a device can collect half of each. */
export const greenhouse = {
  puId: 1,
  name: 'Greenhouse',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'asleep',
      events: [
        {
          evId: 1,
          name: 'wakes',
          eventLog: true,
          actions: { engine: { gotoStId: 2 } },
          causes: [{ sId: '0x01', thresholds: { isGt: 20 } }],
        },
      ],
    },
    {
      stId: 2,
      name: 'watching',
      events: [
        {
          evId: 10,
          name: 'too warm three times in a row',
          eventLog: true,
          actions: {
            sms: { text: 'Open the window', phoneNumber: ['+420111000111'] },
            display: { showText: 'HOT' },
          },
          causes: [{ sId: '0x01', threshold: { count: 3 }, thresholds: { isGt: 30 } }],
        },
        {
          evId: 11,
          name: 'five above the first',
          ...logged,
          causes: [
            { sId: '0x02', threshold: { relative: true, decimalAcc: 1 }, thresholds: { isGt: 5 } },
          ],
        },
        {
          evId: 12,
          name: 'three of five below zero',
          ...logged,
          causes: [
            {
              sId: '0x03',
              measurement: { count: 5, log: 'true' },
              threshold: { count: 3 },
              thresholds: { isLt: 0 },
            },
          ],
        },
        {
          evId: 13,
          name: 'door open and light on',
          ...logged,
          actions: { cloud: { sendLog: true }, engine: { gotoStId: 3 } },
          causes: [
            { sId: '0x04', orderId: 1, thresholds: { isOneOf: [1] } },
            { sId: '0x05', orderId: 2, threshold: { negate: true }, thresholds: { isNotIn: [1] } },
          ],
        },
        {
          evId: 14,
          name: 'twice inside',
          ...logged,
          causes: [{ sId: '0x06', threshold: { count: 2 }, thresholds: { isInsideGeo: square } }],
        },
      ],
    },
    { stId: 3, name: 'open', events: [] },
    {
      stId: 9,
      name: 'always',
      isGlobal: true,
      events: [
        {
          evId: 90,
          name: 'every fourth',
          ...logged,
          causes: [{ sId: '0x07', threshold: { count: 4 }, thresholds: { isAny: true } }],
        },
      ],
    },
  ],
};

/** Rings with every measurement. */
export const bell = {
  puId: 5,
  name: 'Bell',
  initStId: 1,
  states: [
    {
      stId: 1,
      events: [
        {
          evId: 1,
          name: 'Somebody is at the door',
          eventLog: true,
          actions: {
            cloud: { sendPush: true },
            sms: {
              text: 'Ding',
              phoneNumber: ['+420111000001', '+420111000002', '+420111000003', '+420111000004'],
            },
          },
          causes: [{ sId: '0x01', thresholds: { isAny: true } }],
        },
      ],
    },
  ],
};

/** A purpose with one state that nothing leaves. */
export const plain = (puId: number, name: string) => ({
  puId,
  name,
  initStId: 1,
  states: [{ stId: 1, name: 'only', events: [] }],
});

const tooWarm = { isGt: 8 };

/** An alarm for each of the first five senses, and one for silence. */
export const coldRoom = {
  puId: 9,
  name: 'Cold room',
  initStId: 1,
  states: [
    {
      stId: 1,
      name: 'watching',
      events: [
        ...['0x01', '0x02', '0x03', '0x04', '0x05'].map((sId, at) => ({
          evId: at + 1,
          name: `${sId} is too warm`,
          eventLog: true,
          actions: {
            cloud: { sendPush: true },
            ...(at === 0 && { display: { showText: 'WARM' } }),
            repeatMs: 3_600_000,
          },
          causes: [{ sId, thresholds: tooWarm }],
        })),
        {
          evId: 7,
          name: 'silent for a month',
          ...logged,
          causes: [{ sId: '0x06', threshold: { noneForMs: 30 * 86_400_000 } }],
        },
      ],
    },
  ],
};

/** Evidence that is too long to write as a whole each time: windows of a thousand outcomes. */
export const wideWindows = {
  puId: 11,
  name: 'Wide windows',
  initStId: 1,
  states: [
    {
      stId: 1,
      events: Array.from({ length: 40 }, (_, at) => ({
        evId: at + 1,
        name: `a thousand above ${at}`,
        ...logged,
        causes: [
          {
            sId: '0x07',
            measurement: { count: 1_000 },
            threshold: { count: 1_000 },
            thresholds: { isGt: at },
          },
        ],
      })),
    },
  ],
};

/** Goes to and fro on a device whose values do, and opens an alarm each time. */
export const warmAndCold = {
  puId: 12,
  name: 'Warm and cold',
  initStId: 1,
  states: [
    { stId: 1, name: 'cold', isGt: 15, gotoStId: 2 },
    { stId: 2, name: 'warm', isLt: -15, gotoStId: 1 },
  ].map(({ stId, name, gotoStId, ...thresholds }) => ({
    stId,
    name,
    events: [
      {
        evId: 1,
        eventLog: true,
        actions: { alarm: true, cloud: { sendEvent: true, sendPush: true }, engine: { gotoStId } },
        causes: [{ sId: '0x01', thresholds }],
      },
    ],
  })),
};
