import type { Configuration, Sense } from '../../../api/types.ts';

type Module = Configuration['module'][number];
/** As they stand in the form's fields. */
export type DraftSense = Record<SenseField, string> & { own: Partial<Sense> };
export type DraftModule = { own: Module; senses: DraftSense[] };
export type Draft = { device: Configuration['device']; modules: DraftModule[] };

export const senseFields = [
  'sId',
  'name',
  'unit',
  'decimals',
  'min',
  'max',
  'minInterval',
] as const;
export type SenseField = (typeof senseFields)[number];
export const numberFields: readonly SenseField[] = ['decimals', 'min', 'max', 'minInterval'];

/** What the device is called in the form; members that it does not show are kept. */
export function draftOf({ device, module }: Configuration): Draft {
  const modules = module.map((own) => ({ own, senses: own.senses.map(draftSense) }));
  return { device: { ...device }, modules };
}

function draftSense(sense: Sense): DraftSense {
  const texts = senseFields.map((field) => [field, String(sense[field] ?? '')]);
  return { ...(Object.fromEntries(texts) as Record<SenseField, string>), own: sense };
}

/** A sense that is added, or that the device sent already. */
export function newSense(draft: Draft, sId?: string): DraftSense {
  const used = new Set(draft.modules.flatMap(({ senses }) => senses.map(({ sId }) => sId)));
  let number = 16;
  while (used.has(`0x${number.toString(16)}`)) number += 1;
  const { own, ...texts } = draftSense({ sId: sId ?? `0x${number.toString(16)}` });
  return { ...texts, own };
}

/** What is sent: fields that are empty are left out, numbers that are none stay what was typed. */
export function configurationOf({ device, modules }: Draft): Configuration {
  return {
    device,
    module: modules.map(({ own, senses }) => ({ ...own, senses: senses.map(senseOf) })),
  };
}

function senseOf(draft: DraftSense): Sense {
  const { own, ...texts } = draft;
  const sense: Record<string, unknown> = { ...own };
  for (const field of senseFields) {
    const text = texts[field].trim();
    if (text === '') delete sense[field];
    else sense[field] = numberFields.includes(field) ? readNumber(text) : text;
  }
  return sense as Sense;
}

/** With a decimal comma too. What is no number is left to the service to refuse, at its place. */
export function readNumber(text: string): number | string {
  const number = Number(text.replace(/[\u2212\u2013]/g, '-').replace(',', '.'));
  return Number.isFinite(number) ? number : text;
}
