import type { OxlintOverride } from 'oxlint';

/**
 * Everything that decides takes time and randomness as arguments, so that a test can supply them. This lists files that
 * read a clock themselves, by module, with the reason. A file that reads a clock in only a line or two disables the
 * rule (`no-restricted-globals`) in those lines, with a reason.
 */
export const clockReaders: Record<string, Record<string, string>> = {
  'src/lib/*.ts': {
    'clock.ts': 'Makes the clocks that everything else is given.',
  },
  'src/clock/*.ts': {
    'service-clock.ts': 'Measures how long the machine was suspended.',
  },
  'src/console/web/**/*.{ts,tsx}': {
    'app/now.ts': 'Reads the clock of the browser, for what the page shows.',
  },
  'src/process/*.ts': {
    'memory-pressure.ts': 'Measures how often the process collects garbage.',
  },
  'src/*.ts': {
    'main.ts': 'Times the end of the process by the clock of the machine.',
  },
};

/** Files that use randomness, and why. They still take their clocks as arguments. */
export const randomReaders: Record<string, Record<string, string>> = {
  'src/lib/*.ts': {
    'crypto.ts': 'Makes nonces, which are random by nature.',
  },
  'src/bus/*.ts': {
    'redis.ts': 'Names this process, to tell its own messages from those of others.',
  },
  'src/db/*/**/*.ts': {
    'embedded/enter.ts': 'Makes a password.',
  },
  'src/notifications/*.ts': {
    'deliver.ts': 'Names this process among those that deliver notifications.',
  },
  'src/api-keys/*.ts': {
    'api-keys.ts': 'Makes keys, which must be impossible to guess.',
  },
  'src/streams/*.ts': {
    'tickets.ts': 'Makes tickets, which must be impossible to guess.',
  },
  'src/http/*.ts': {
    'app.ts': 'Names each request, and measures how long it took.',
    'server.ts': 'Names the answers to input that never became a request.',
  },
  'src/config/*.ts': {
    'secret.ts': 'Makes the secret.',
  },
  'src/sessions/*.ts': {
    'sessions.ts':
      'Makes session identifiers and tokens, which must be impossible to guess; two tokens of one second must differ.',
  },
  'connector/mqtt/*.ts': {
    'server.ts': 'Names one run of the connector.',
  },
  'connector/bridge/*.ts': {
    'standby.ts': 'Makes a client identifier that no other client has.',
  },
};

const message =
  'Take time and randomness as arguments (src/lib/clock.ts). lint/clocks.ts lists the files that may read them.';

/** Includes `globalThis`, which would be a way around the others. */
const globalsOf = (names: string[]) => names.map((name) => ({ name, message }));
export const clockGlobals = globalsOf(['Date', 'performance', 'globalThis']);
export const randomGlobals = globalsOf(['crypto', 'globalThis']);

export const clockProperties = [
  { object: 'process', property: 'hrtime', message },
  { object: 'process', property: 'uptime', message },
];
export const randomProperties = [{ object: 'Math', property: 'random', message }];

export const clockImports = [
  { group: ['node:perf_hooks', 'perf_hooks'], message },
  { group: ['node:os', 'os'], importNames: ['uptime'], message },
  { group: ['node:process', 'process'], importNames: ['hrtime', 'uptime'], message },
];
export const randomImports = [
  {
    group: ['node:crypto', 'crypto'],
    importNames: ['randomUUID', 'randomBytes', 'randomInt', 'randomFillSync', 'webcrypto'],
    message,
  },
];

/** The paths of a module's files that a table lists. */
export function readersOf(table: Record<string, Record<string, string>>, module: string): string[] {
  const folder = module.slice(0, module.indexOf('*'));
  return Object.keys(table[module] ?? {}).map((file) => folder + file);
}

/** The files that assemble the modules may use randomness, but take their clocks from lib/. */
export const clockOverrides: OxlintOverride[] = [
  {
    files: ['src/*.ts', 'src/assembly/*.ts'],
    rules: { 'no-restricted-globals': ['error', ...clockGlobals] },
  },
  {
    files: [
      ...readersOf(clockReaders, 'src/*.ts'),
      ...readersOf(clockReaders, 'src/assembly/*.ts'),
    ],
    rules: { 'no-restricted-globals': 'off' },
  },
];
