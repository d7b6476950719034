import type { OxlintOverride } from 'oxlint';
import {
  clockGlobals,
  clockImports,
  clockOverrides,
  clockProperties,
  clockReaders,
  randomGlobals,
  randomImports,
  randomProperties,
  randomReaders,
  readersOf,
} from './clocks.ts';
import type { Module } from './module.ts';
import { modules } from './modules.ts';

const impure = ['process', 'setTimeout', 'setInterval', 'setImmediate', 'fetch'];

const below = (path: string) => (path.endsWith('/') ? `${path}**` : path);

function overridesOf(module: Module): OxlintOverride[] {
  const clocks = readersOf(clockReaders, module.files);
  const chance = readersOf(randomReaders, module.files);
  const overrides = [
    { files: [module.files], rules: rulesOf(module, { time: true, chance: true }) },
    { files: clocks, rules: rulesOf(module, { time: false, chance: true }) },
    { files: chance, rules: rulesOf(module, { time: true, chance: false }) },
    {
      files: clocks.filter((file) => chance.includes(file)),
      rules: rulesOf(module, { time: false, chance: false }),
    },
  ];
  return overrides.filter(({ files }) => files.length > 0);
}

/** `handed`: what must be passed as an argument. */
function rulesOf(
  { may, from = ['../'], not = [], only, beside = ['./*.ts'], why }: Module,
  handed: { time: boolean; chance: boolean },
): OxlintOverride['rules'] {
  const message = `${why} See lint/modules.ts.`;
  const allowed = may.map((path) => `!${below(path)}`);
  const refused = only
    ? ['*', ...[...beside, ...only].map((one) => `!${one}`)]
    : from.map((path) => below(path));
  const patterns: object[] = [{ group: [...refused, ...allowed], message }];
  if (not.length > 0) patterns.push({ group: not, message });
  const globals = only ? impure.map((name) => ({ name, message })) : [];
  const properties = [];
  if (handed.time) {
    globals.push(...clockGlobals);
    patterns.push(...clockImports);
    properties.push(...clockProperties);
  }
  if (handed.chance) {
    globals.push(...randomGlobals.filter(({ name }) => !globals.some((one) => one.name === name)));
    patterns.push(...randomImports);
    properties.push(...randomProperties);
  }
  return {
    'no-restricted-imports': ['error', { patterns }],
    'no-restricted-globals': ['error', ...globals],
    'no-restricted-properties': properties.length > 0 ? ['error', ...properties] : 'off',
  };
}

export const moduleOverrides = [...clockOverrides, ...modules.flatMap(overridesOf)];
