type Extra = {
  threshold?: object;
  thresholds?: object;
  measurement?: object;
  actions?: object;
  more?: object[];
};

/** An event that by default is recorded and pushed when 0x01 exceeds 8. */
export function warm(
  evId: number,
  { threshold, thresholds, measurement, actions, more = [] }: Extra = {},
) {
  const cause = {
    sId: '0x01',
    orderId: 0,
    threshold,
    thresholds: thresholds ?? { isGt: 8 },
    measurement,
  };
  return {
    evId,
    name: 'too warm',
    eventLog: true,
    actions: { cloud: { sendPush: true }, ...actions },
    causes: [cause, ...more],
  };
}

/** A silent event that moves the device when 0x01 is below 8. */
export const coldAgain = (evId: number, gotoStId: number) => ({
  evId,
  causes: [{ sId: '0x01', thresholds: { isLt: 8 } }],
  actions: { engine: { gotoStId } },
});

export const purposeOf = (...states: object[][]) => ({
  puId: 1,
  initStId: 1,
  states: states.map((events, index) => ({ stId: index + 1, events })),
});
