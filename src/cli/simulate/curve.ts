/** The senses a simulated device has; temperature in °C, humidity in percent. */
const temperature = '0x10';
const humidity = '0x11';

/** What a device says of itself when it is registered; specification section 2.4. */
export function configurationOf(index: number) {
  const serial = String(index + 1).padStart(5, '0');
  return {
    device: {
      name: `Cold room ${index + 1}`,
      swName: 'simulator',
      swVersion: '1.0.0',
      hwVersion: '1',
      serial,
    },
    module: [
      {
        moduleId: 'climate',
        moduleName: 'Climate',
        senses: [
          { sId: temperature, min: -40, max: 85 },
          { sId: humidity, min: 0, max: 100 },
        ],
      },
    ],
  };
}

const cycle = 24;
const doorOpen = 10;

/**
 * What device `index` measures the `n`th time: a cold room whose door stands open for a part of each
 * cycle. The same arguments give the same values, rounded to two decimals.
 */
export function readingsAt(index: number, n: number): { sId: string; val: number }[] {
  const phase = (n + index * 7) % cycle;
  const slow = Math.sin((n / 90) * 2 * Math.PI + index);
  const warming = phase < doorOpen ? Math.sin((phase / doorOpen) * Math.PI) : 0;
  const celsius = 3.5 + slow + warming * 8 + noise(index, n, 1) * 0.4;
  const percent = 62 + slow * 3 + warming * 20 + noise(index, n, 2) * 2;
  return [
    { sId: temperature, val: round(celsius) },
    { sId: humidity, val: round(percent) },
  ];
}

/** Between -1 and 1, spread evenly; an integer hash, so that nothing is random between two runs. */
function noise(index: number, n: number, salt: number): number {
  let x =
    Math.imul(index + 1, 0x9e3779b1) ^ Math.imul(n + 1, 0x85ebca6b) ^ Math.imul(salt, 0xc2b2ae35);
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 31 - 1;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
