const mebibyte = 1_048_576;

/** An array of `count` copies. */
export const arrayOf = (text: string, count: number) =>
  `[${Array.from({ length: count }, () => text).join(',')}]`;

/** As many copies as fit into `bytes`. */
const arrayWithin = (text: string, bytes: number) =>
  arrayOf(text, Math.floor((bytes - 2) / (text.length + 1)));

export const bodies = {
  keys: `{${Array.from({ length: 29_990 }, (_, n) => `"k${n.toString(36)}":1`).join(',')}}`,
  longKeys: `{${Array.from({ length: 19_990 }, (_, n) => `"${`k${n}`.padEnd(44, 'x')}":1`).join(',')}}`,
  deepArrays: arrayOf('['.repeat(15) + ']'.repeat(15), 29_900),
  text: JSON.stringify({ device: { name: 'x'.repeat(mebibyte - 100) }, module: [] }),
  escapes: `{"device":{"name":"${String.raw`\u0041`.repeat(170_000)}"},"module":[]}`,
  numbers: `{"device":{},"module":[],"x":${arrayWithin('1.2345678901234567890123456789012345678901234567890e-300', mebibyte - 100).slice(0, mebibyte - 100)}}`,
  allowedKeys: `{${Array.from({ length: 19_990 }, (_, n) => `"k${n.toString(36)}":1`).join(',')}}`,
  rubbish: arrayOf('null', 19_900),
};

const senses = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ sId: `0x${(n + 1).toString(16)}`, min: 0, max: 1 }));

export const configurations = {
  senses: (count: number) =>
    JSON.stringify({ device: {}, module: [{ moduleId: 'm', senses: senses(count) }] }),
  sameSense: (count: number) =>
    `{"device":{},"module":[{"moduleId":"m","senses":${arrayOf('{"sId":"0x1"}', count)}}]}`,
  modules: (count: number) => `{"device":{},"module":${arrayOf('{"moduleId":"m"}', count)}}`,
  badModules: (count: number) => `{"device":{},"module":${arrayOf('{}', count)}}`,
};

const cause = { sId: '0x1', thresholds: { isGt: 1, isOneOf: [1, 2, 3] } };

/** States of 64 events with 32 causes, about `bytes` in total. */
export function purposeOf(bytes: number, causeText = JSON.stringify(cause)): string {
  const causes = arrayOf(causeText, 32);
  const events: string[][] = [];
  let length = 0;
  for (let n = 0; length < bytes; n += 1) {
    const event = `{"evId":${n % 64},"causes":${causes}}`;
    if (length + event.length > bytes) break;
    if (n % 64 === 0) events.push([]);
    events.at(-1)?.push(event);
    length += event.length + 1;
  }
  const states = events.map((list, stId) => `{"stId":${stId},"events":[${list.join(',')}]}`);
  return `{"puId":1,"initStId":0,"states":[${states.join(',')}]}`;
}

/** Causes without names or conditions cost most per byte. */
export const leanPurpose = (count: number) => {
  const events = Math.ceil(count / 32);
  const one = arrayOf('{"sId":"1"}', 32);
  const states = Array.from({ length: Math.ceil(events / 64) }, (_, stId) => {
    const inIt = Array.from(
      { length: Math.min(64, events - stId * 64) },
      (_, evId) => `{"evId":${evId},"causes":${one}}`,
    );
    return `{"stId":${stId},"events":[${inIt.join(',')}]}`;
  });
  return `{"puId":1,"initStId":0,"states":[${states.join(',')}]}`;
};

export const installOf = (purposes: string[]) =>
  `{"deviceAuthUuids":["0f8fad5b-d9cb-469f-a165-70867728950e"],"purposes":[${purposes.join(',')}]}`;

const engine = { pId: 'p', puId: 1, stId: 1, evId: 1, ts: 1 };
const sense = { sId: '0x10', val: 1, ts: 1 };

export const messages = {
  nestedArrays: '['.repeat(32_700) + ']'.repeat(32_700),
  shallowArrays: arrayWithin('[]', 65_000),
  keys: `{${Array.from({ length: 8_000 }, (_, n) => `"${n.toString(36)}":1`).join(',')}}`,
  badEvents: arrayOf('{"cause":{"engine":{"pId":1},"senses":[1]}}', 1_000),
  goodEvents: JSON.stringify(
    Array.from({ length: 400 }, () => ({ cause: { engine, senses: [sense] } })),
  ),
  measurements: arrayOf('{"sId":"0x10","val":21.5,"ts":1795219200000}', 1_000),
  /** The largest possible message of measurements: positions with long names, many members, a text. */
  largeMeasurements: arrayOf(
    `{"sId":"${'x'.repeat(180)}","val":{"lat":52.1234567,"long":13.1234567},"ts":1795219200000}`,
    1_000,
  ),
  largeKeys:
    `{${Array.from({ length: 11_990 }, (_, n) => `"k${n.toString(36)}":1`).join(',')}}`.padEnd(
      262_000,
    ),
  largeText: JSON.stringify({ sId: 'x'.repeat(261_900), val: 1 }),
  badMeasurements: arrayOf('{"sId":"0x10","val":"x"}', 1_000),
  badSenses: `{"cause":{"engine":${JSON.stringify(engine)},"senses":${arrayWithin('{}', 64_000)}}}`,
};

/** States of 8 events with 32 causes, each on a sense of its own. */
export const variedPurpose = (states: number) => {
  const causeOf = (n: number) => `{"sId":"0x${(n % 1_000).toString(16)}","thresholds":{"isGt":9}}`;
  const eventOf = (evId: number) =>
    `{"evId":${evId},"causes":[${Array.from({ length: 32 }, (_, n) => causeOf(evId * 32 + n)).join(',')}]}`;
  const events = Array.from({ length: 8 }, (_, evId) => eventOf(evId)).join(',');
  const all = Array.from({ length: states }, (_, stId) => `{"stId":${stId},"events":[${events}]}`);
  return `{"puId":1,"initStId":0,"states":[${all.join(',')}]}`;
};

/** This many devices with this many senses each, with long names: 4 MiB for 1,000 with 28. */
export const batchOf = (devices: number, count: number) => {
  const named = senses(count).map((each) => ({ ...each, name: 'x'.repeat(100) }));
  const one = JSON.stringify({ device: {}, module: [{ moduleId: 'm', senses: named }] });
  return `{"devices":${arrayOf(one, devices)}}`;
};
