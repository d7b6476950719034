/** An event that fires on each measurement by default. */
export type EventOptions = {
  sId?: string;
  thresholds?: object;
  threshold?: object;
  causes?: number;
  eventLog?: boolean;
  actions?: object;
  name?: string;
};

const eventsAState = 64;

export function eventOf(evId: number, options: EventOptions = {}) {
  const { sId = '0x01', thresholds = { isAny: true }, threshold = {}, causes = 1 } = options;
  return {
    evId,
    ...(options.name === undefined ? {} : { name: options.name }),
    eventLog: options.eventLog ?? false,
    actions: options.actions ?? {},
    causes: Array.from({ length: causes }, (_, n) => ({
      sId,
      orderId: n + 1,
      threshold,
      thresholds,
    })),
  };
}

/** A purpose with this many events, 64 in a state. The states are global by default. */
export function purposeOf(
  count: number,
  optionsOf: (n: number) => EventOptions = () => ({}),
  { isGlobal = true, puId = 1, name = 'noisy' } = {},
) {
  const states = Array.from({ length: Math.ceil(count / eventsAState) }, (_, s) => ({
    stId: s + 1,
    isGlobal,
    events: Array.from({ length: Math.min(eventsAState, count - s * eventsAState) }, (_, e) =>
      eventOf(e + 1, optionsOf(s * eventsAState + e)),
    ),
  }));
  return { puId, name, initStId: 1, states };
}

/** A purpose of about this many bytes, in states of which one is live at a time. */
export function bigPurpose(bytes: number, seed = '') {
  const textBytes = 1_000;
  const eventBytes = textBytes + 250;
  const showText = seed.padEnd(textBytes, 'x');
  return purposeOf(
    Math.floor(bytes / eventBytes),
    () => ({ actions: { display: { showText } }, thresholds: { isGt: 1e9 } }),
    { isGlobal: false, name: `big ${seed}`.slice(0, 100) },
  );
}
