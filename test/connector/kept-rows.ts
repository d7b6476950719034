/**
 * What becomes of a message that arrived whole and was not acknowledged when its connection ended: the table of
 * docs/devices-reference.md, from which the tests are generated. A row stands for all combinations of its lists.
 */
export type Ending =
  | 'DISCONNECT'
  | 'closed by the device'
  | 'reset'
  | 'keep-alive'
  | 'taken over'
  | 'closed by the service'
  | 'the service stops'
  | 'half-close';

export type KeptRow = {
  over: ('MQTT 3.1.1' | 'MQTT 5' | 'HTTP')[];
  /** Empty for HTTP, which has none. */
  qos: (0 | 1 | 2)[];
  endings: Ending[];
  /** Whether every item has its own time. */
  hasTimes: boolean[];
  isStored: boolean;
  mayBeLost: string;
  mayDouble: string;
};

const both = ['MQTT 3.1.1', 'MQTT 5'] as const;
export const mqttEndings = [
  'DISCONNECT',
  'closed by the device',
  'reset',
  'keep-alive',
  'taken over',
  'closed by the service',
  'the service stops',
] as const;
const unannounced = mqttEndings.slice(1);

export const keptRows: KeptRow[] = [
  {
    over: [...both],
    qos: [0],
    endings: [...mqttEndings],
    hasTimes: [true, false],
    isStored: true,
    mayBeLost: 'no; yes if it did not arrive whole, which nobody notices',
    mayDouble: 'no',
  },
  {
    over: [...both],
    qos: [1, 2],
    endings: ['DISCONNECT'],
    hasTimes: [true],
    isStored: true,
    mayBeLost: 'no',
    mayDouble: 'no',
  },
  {
    over: [...both],
    qos: [1, 2],
    endings: ['DISCONNECT'],
    hasTimes: [false],
    isStored: true,
    mayBeLost: 'no',
    mayDouble: 'yes, if the device sends it again',
  },
  {
    over: [...both],
    qos: [1, 2],
    endings: [...unannounced],
    hasTimes: [true],
    isStored: true,
    mayBeLost: 'no',
    mayDouble: 'no',
  },
  {
    over: [...both],
    qos: [1, 2],
    endings: [...unannounced],
    hasTimes: [false],
    isStored: false,
    mayBeLost: 'yes, if the device does not send it again',
    mayDouble: 'yes, if its transaction had begun and the device sends it again',
  },
  {
    over: ['HTTP'],
    qos: [],
    endings: ['half-close', 'closed by the device'],
    hasTimes: [true],
    isStored: true,
    mayBeLost: 'no; the device gets the answer if it still listens',
    mayDouble: 'no',
  },
  {
    over: ['HTTP'],
    qos: [],
    endings: ['half-close', 'closed by the device'],
    hasTimes: [false],
    isStored: true,
    mayBeLost: 'no; the device gets the answer if it still listens',
    mayDouble: 'yes, if the device sends it again',
  },
  {
    over: ['HTTP'],
    qos: [],
    endings: ['reset'],
    hasTimes: [true],
    isStored: true,
    mayBeLost: 'no',
    mayDouble: 'no',
  },
  {
    over: ['HTTP'],
    qos: [],
    endings: ['reset'],
    hasTimes: [false],
    isStored: false,
    mayBeLost: 'yes, if the device does not send it again',
    mayDouble: 'yes, if its transaction had begun and the device sends it again',
  },
];

export type KeptCase = {
  over: KeptRow['over'][number];
  qos: KeptRow['qos'][number] | null;
  ending: Ending;
  hasTime: boolean;
  isStored: boolean;
};

/** All combinations that the rows stand for. */
export const keptCases: KeptCase[] = keptRows.flatMap(
  ({ over, qos, endings, hasTimes, isStored }) =>
    over.flatMap((way) =>
      (qos.length > 0 ? qos : [null]).flatMap((one) =>
        endings.flatMap((ending) =>
          hasTimes.map((hasTime) => ({ over: way, qos: one, ending, hasTime, isStored })),
        ),
      ),
    ),
);

/** The rows as in docs/devices-reference.md, one a line without padding. */
export const keptLines: string[] = keptRows.map(
  ({ over, qos, endings, hasTimes, isStored, mayBeLost, mayDouble }) =>
    [
      over.join(', ').replace('MQTT 3.1.1, MQTT 5', 'MQTT 3.1.1, 5'),
      qos.join(', '),
      endings.join(', '),
      hasTimes.map((one) => (one ? 'yes' : 'no')).join(', '),
      isStored ? 'stored' : 'withdrawn',
      mayBeLost,
      mayDouble,
    ].join(' | '),
);
