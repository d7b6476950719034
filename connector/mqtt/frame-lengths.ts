// Control packet types, MQTT 3.1.1 section 2.2.1.
export const connect = 1;
export const publish = 3;
export const subscribe = 8;
export const unsubscribe = 10;
export const disconnect = 14;

/** Least and greatest remaining length. */
export type Lengths = readonly [number, number];

/** Of what a client of MQTT 3 may send once it is connected, by type. */
export const v3Lengths: Partial<Record<number, Lengths>> = {
  3: [2, Infinity],
  4: [2, 2],
  5: [2, 2],
  6: [2, 2],
  7: [2, 2],
  8: [2, Infinity],
  10: [2, Infinity],
  12: [0, 0],
  14: [0, 0],
};

/** Of MQTT 5: acknowledgements and DISCONNECT may have reason codes and properties. */
export const v5Lengths: typeof v3Lengths = {
  ...v3Lengths,
  4: [2, Infinity],
  5: [2, Infinity],
  6: [2, Infinity],
  7: [2, Infinity],
  14: [0, Infinity],
};
