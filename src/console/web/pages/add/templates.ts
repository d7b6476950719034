import type { Configuration, Sense } from '../../api/types.ts';
import { t, type Key } from '../../text/t.ts';

type SenseKey = Extract<Key, `sense.${string}`>;

export type TemplateName = 'temperature' | 'climate' | 'hive' | 'freezer' | 'pump' | 'power';

type TemplateSense = Omit<Sense, 'name'> & { text: SenseKey; example: number };

const temperature = (min: number, max: number, example: number): TemplateSense => ({
  sId: '0x10',
  text: 'sense.temperature',
  unit: '°C',
  decimals: 1,
  min,
  max,
  example,
});
const humidity: TemplateSense = {
  sId: '0x11',
  text: 'sense.humidity',
  unit: '%',
  decimals: 0,
  min: 0,
  max: 100,
  example: 54,
};

/** What each kind of device measures; values outside the bounds are refused. */
export const templates: Record<TemplateName, TemplateSense[]> = {
  temperature: [temperature(-40, 85, 21.5)],
  climate: [temperature(-40, 85, 21.5), humidity],
  hive: [
    { sId: '0x20', text: 'sense.weight', unit: 'kg', decimals: 2, min: 0, max: 200, example: 38.4 },
    temperature(-40, 85, 34.8),
    humidity,
  ],
  freezer: [
    temperature(-60, 60, -18.2),
    { sId: '0x30', text: 'sense.door', decimals: 0, min: 0, max: 1, example: 0 },
  ],
  pump: [
    {
      sId: '0x40',
      text: 'sense.flow',
      unit: 'l/min',
      decimals: 1,
      min: 0,
      max: 1_000,
      example: 12,
    },
    {
      sId: '0x41',
      text: 'sense.pressure',
      unit: 'bar',
      decimals: 2,
      min: 0,
      max: 25,
      example: 2.1,
    },
  ],
  power: [
    {
      sId: '0x50',
      text: 'sense.power',
      unit: 'W',
      decimals: 0,
      min: 0,
      max: 100_000,
      example: 412,
    },
    { sId: '0x51', text: 'sense.energy', unit: 'kWh', decimals: 2, min: 0, example: 1_024.5 },
  ],
};

export const templateNames = Object.keys(templates) as TemplateName[];

/** The configuration of a new device, with senses named in the reader's language. */
export function configurationOf(template: TemplateName, name: string): Configuration {
  const senses = templates[template].map(({ text, sId, unit, decimals, min, max }) => ({
    sId,
    unit,
    decimals,
    min,
    max,
    name: t(text),
  }));
  return { device: { name }, module: [{ moduleId: template, senses }] };
}

/** An example of a first message from the device. */
export function firstMessageOf(template: TemplateName): string {
  const [first] = templates[template];
  return JSON.stringify({ sId: first?.sId, val: first?.example });
}
