/** One value of one sense; the senses and their ranges are those of `meterConfiguration`. */
export type Sample = { sId: string; val: number; ts: number };

const senses = [
  { sId: '0x01', min: -40, max: 85, middle: 20, swing: 8 },
  { sId: '0x02', min: 0, max: 100, middle: 50, swing: 20 },
  { sId: '0x03', min: 300, max: 1_100, middle: 1_000, swing: 30 },
  { sId: '0x04', min: 0, max: 5_000, middle: 800, swing: 300 },
  { sId: '0x05', min: 0, max: 5, middle: 3.7, swing: 0.4 },
];

/** The configuration of the simulated devices: specification section 2.4. */
export const meterConfiguration = {
  device: { name: 'Meter', swName: 'meter', swVersion: '1.0.0', hwVersion: 'A', serial: '0001' },
  module: [
    {
      moduleId: 'm1',
      moduleName: 'Climate',
      senses: senses.map(({ sId, min, max }) => ({ sId, min, max, minInterval: 0 })),
    },
  ],
};

/**
 * The purpose of half of the devices: three values that are too warm raise an alarm, and three that are not end it; a
 * global state watches the battery. The temperature crosses both thresholds about once in 300 measurements.
 */
export const meterPurpose = {
  puId: 1,
  name: 'Watch the temperature',
  initStId: 1,
  states: [
    stateOf(1, 'normal', false, [eventOf(1, 'too warm', '0x01', { isGt: 26 }, 3, 2)]),
    stateOf(2, 'alarm', false, [eventOf(2, 'cooled down', '0x01', { isLt: 22 }, 3, 1)]),
    stateOf(3, 'always', true, [eventOf(3, 'battery low', '0x05', { isLt: 2.9 }, 5)]),
  ],
};

function stateOf(stId: number, name: string, isGlobal: boolean, events: unknown[]) {
  return { stId, name, isGlobal, events };
}

function eventOf(
  evId: number,
  name: string,
  sId: string,
  thresholds: Record<string, number>,
  count: number,
  gotoStId?: number,
) {
  const engine = gotoStId === undefined ? undefined : { gotoStId };
  const causes = [{ sId, orderId: 1, threshold: { count }, thresholds }];
  return { evId, name, eventLog: true, actions: { cloud: { sendEvent: true }, engine }, causes };
}

export type Meter = {
  /** The device's next message. */
  payload: (device: number) => string;
  /** How many samples each device has sent so far. */
  given: () => number[];
  /** The sample with this number. */
  sampleAt: (index: number) => Sample;
};

/**
 * Reproducible values: sample n of every device is the same function of n, a millisecond after the previous one. A
 * message of one sample has the temperature; longer ones alternate between the senses.
 */
export function createMeter(devices: number, samplesPerMessage: number, startTs: number): Meter {
  const given = Array.from({ length: devices }, () => 0);
  const inUse = samplesPerMessage === 1 ? senses.slice(0, 1) : senses;

  function sampleAt(index: number): Sample {
    const round = Math.floor(index / inUse.length);
    const { sId, middle, swing } = inUse[index % inUse.length] as (typeof senses)[number];
    const val = Math.round((middle + swing * Math.sin(round / 50)) * 100) / 100;
    return { sId, val, ts: startTs + round };
  }

  function textOf(index: number): string {
    const { sId, val, ts } = sampleAt(index);
    return `{"sId":"${sId}","val":${val},"ts":${ts}}`;
  }

  return {
    sampleAt,
    given: () => [...given],
    payload(device) {
      const first = given[device] ?? 0;
      given[device] = first + samplesPerMessage;
      if (samplesPerMessage === 1) return textOf(first);
      const texts = Array.from({ length: samplesPerMessage }, (_, i) => textOf(first + i));
      return `[${texts.join(',')}]`;
    },
  };
}
