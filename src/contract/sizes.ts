import type { Problem } from '../errors.ts';
import type { Configuration } from './configuration.ts';
import type { Purpose } from './purpose.ts';

/** How much of one thing there may be: characters of a name and of another text, senses of a device. */
export type Sizes = { nameLength: number; textLength: number; sensesPerDevice: number };

/** °C, mg/m³, L/min: it stands behind each value in a message. */
const maxUnitLength = 20;

/** The texts of a device's description, and its senses, that are larger than they may be. */
export function checkConfigurationSizes(
  { device, module }: Configuration,
  sizes: Sizes,
): Problem[] {
  const { name, ...texts } = device;
  const problems = tooLong(name, sizes.nameLength, '/device/name');
  for (const [field, text] of Object.entries(texts))
    problems.push(...tooLong(text, sizes.textLength, `/device/${field}`));
  const senses = module.reduce((sum, one) => sum + one.senses.length, 0);
  for (const [what, count] of Object.entries({ modules: module.length, senses })) {
    if (count <= sizes.sensesPerDevice) continue;
    const message = `a device has at most ${sizes.sensesPerDevice} ${what}, this one has ${count}`;
    return [...problems, { path: '/module', message }];
  }
  for (const [m, { moduleId, moduleName, senses }] of module.entries()) {
    problems.push(...tooLong(moduleId, sizes.nameLength, `/module/${m}/moduleId`));
    problems.push(...tooLong(moduleName, sizes.nameLength, `/module/${m}/moduleName`));
    for (const [s, { sId, name: senseName, unit }] of senses.entries()) {
      const at = `/module/${m}/senses/${s}`;
      problems.push(
        ...tooLong(sId, sizes.nameLength, `${at}/sId`),
        ...tooLong(senseName, sizes.nameLength, `${at}/name`),
        ...tooLong(unit, maxUnitLength, `${at}/unit`),
      );
    }
  }
  return problems;
}

/** The names and texts of a purpose that are longer than they may be. `path`: where it stands. */
export function checkPurposeSizes(
  purpose: Purpose,
  { nameLength, textLength }: Sizes,
  path = '',
): Problem[] {
  const problems = tooLong(purpose.name, nameLength, `${path}/name`);
  for (const [s, state] of purpose.states.entries()) {
    problems.push(...tooLong(state.name, nameLength, `${path}/states/${s}/name`));
    for (const [e, { name, actions, causes }] of state.events.entries()) {
      const at = `${path}/states/${s}/events/${e}`;
      problems.push(
        ...tooLong(name, nameLength, `${at}/name`),
        ...tooLong(actions.sms?.text, textLength, `${at}/actions/sms/text`),
        ...tooLong(actions.display?.showText, textLength, `${at}/actions/display/showText`),
      );
      for (const [c, { sId }] of causes.entries())
        problems.push(...tooLong(sId, nameLength, `${at}/causes/${c}/sId`));
    }
  }
  return problems;
}

/** The beginning of a text, as much of it as is kept. */
export function cutText(text: string, length: number): string {
  return text.length <= length
    ? text
    : Array.from(text.slice(0, 2 * length))
        .slice(0, length)
        .join('');
}

/** A character is a code point, as a person counts them; none takes more than two of UTF-16's units. */
function tooLong(text: string | undefined, length: number, path: string): Problem[] {
  if (text === undefined || text.length <= length) return [];
  if (text.length <= 2 * length && Array.from(text).length <= length) return [];
  return [{ path, message: `expected at most ${length} characters` }];
}
