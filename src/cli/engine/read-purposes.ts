import { readFileSync } from 'node:fs';
import { Purpose } from '../../contract/purpose.ts';
import { warnOfUnknown } from '../../contract/unknown-members.ts';
import { warnOfActions } from '../../contract/warn-of-actions.ts';
import { joinWarnings } from '../../contract/warnings.ts';
import { checkProfile } from '../../engine/check-profile.ts';
import { warnOfPolygons } from '../../engine/warn-of-polygons.ts';
import { listWarnings } from '../../engine/warnings.ts';
import { messageOf } from '../../lib/thrown.ts';
import { InputError, oneSpace, parseWith, readJson, refuse } from './input-error.ts';

/** A purpose, and where it was written: a file, and its JSON Pointer in that. */
type Found = { purpose: Purpose; where: string; path: string; sent: unknown };

/** The purposes of a profile, and what is probably a mistake in them, a line each. */
export type Read = { purposes: Purpose[]; warnings: string[] };

/** Reads files of which each has a purpose, a list of purposes, or a profile. Throws `InputError`. */
export function readPurposes(files: readonly string[]): Read {
  return check(files.flatMap((file) => findPurposes(readJson(readText(file), file), file)));
}

/** The same of a value that was read already. */
export function parsePurposes(value: unknown, where: string, path: string): Purpose[] {
  return check(findPurposes(value, where, path)).purposes;
}

/** Throws `InputError`. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new InputError(`${file} cannot be read: ${messageOf(error)}`);
  }
}

function findPurposes(value: unknown, where: string, path = ''): Found[] {
  if (Array.isArray(value)) {
    return value.map((one: unknown, index) => found(one, where, `${path}/${index}`));
  }
  const isProfile = typeof value === 'object' && value !== null && 'purposes' in value;
  return isProfile
    ? findPurposes(value.purposes, where, `${path}/purposes`)
    : [found(value, where, path)];
}

const found = (sent: unknown, where: string, path: string): Found => ({
  purpose: parseWith(Purpose, sent, where, path),
  where,
  path,
  sent,
});

function check(all: Found[]): Read {
  if (all.length === 0) throw new InputError('There is no purpose.');
  const purposes = all.map(({ purpose }) => purpose);
  const pathOf = (index: number) => `${all[index]?.where} ${all[index]?.path}`;
  const problems = checkProfile(purposes, pathOf);
  if (problems.length > 0) refuse(problems.map(({ path, message }) => `${path}: ${message}`));
  const unknown = all.flatMap(({ sent }, index) =>
    warnOfUnknown(Purpose, sent).map((one) => ({ ...one, path: pathOf(index) + one.path })),
  );
  const warnings = joinWarnings(
    unknown,
    warnOfActions(purposes, pathOf),
    warnOfPolygons(purposes, pathOf),
    listWarnings(purposes, undefined, pathOf),
  );
  const lines = warnings.map(({ path, message, code }) => `${path}: ${message} (${code})`);
  return { purposes, warnings: lines.map(oneSpace) };
}
