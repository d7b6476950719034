import type { OxlintOverride } from 'oxlint';
import {
  clockGlobals,
  clockImports,
  clockOverrides,
  clockProperties,
  clockReadersOf,
} from './clocks.ts';
import type { Room } from './room.ts';
import { rooms } from './rooms.ts';

const impure = ['process', 'setTimeout', 'setInterval', 'setImmediate', 'fetch'];

const below = (path: string) => (path.endsWith('/') ? `${path}**` : path);

function overridesOf(room: Room): OxlintOverride[] {
  const readers = clockReadersOf(room.files);
  const all = { files: [room.files], rules: rulesOf(room, true) };
  return readers.length === 0 ? [all] : [all, { files: readers, rules: rulesOf(room, false) }];
}

/** `isHanded`: the time, and what is random, arrive as arguments. */
function rulesOf(
  { may, from = ['../'], not = [], only, why }: Room,
  isHanded: boolean,
): OxlintOverride['rules'] {
  const message = `${why} See lint/rooms.ts.`;
  const allowed = may.map((path) => `!${below(path)}`);
  const refused = only
    ? ['*', '!./*.ts', ...only.map((library) => `!${library}`)]
    : from.map((path) => below(path));
  const patterns: object[] = [{ group: [...refused, ...allowed], message }];
  if (not.length > 0) patterns.push({ group: not, message });
  const globals = only ? impure.map((name) => ({ name, message })) : [];
  if (isHanded) {
    globals.push(...clockGlobals);
    patterns.push(...clockImports);
  }
  return {
    'no-restricted-imports': ['error', { patterns }],
    'no-restricted-globals': ['error', ...globals],
    'no-restricted-properties': isHanded ? ['error', ...clockProperties] : 'off',
  };
}

export const roomOverrides = [...clockOverrides, ...rooms.flatMap(overridesOf)];
