import type { OxlintOverride } from 'oxlint';

/**
 * Everything that decides takes time and randomness as arguments, so that a test can supply them. This lists files that
 * read a clock themselves, by module, with the reason. A file that reads a clock in only a line or two disables the
 * rule (`no-restricted-globals`) in those lines, with a reason.
 */
export const clockReaders: Record<string, Record<string, string>> = {
  'src/lib/*.ts': {
    'clock.ts': 'The clocks that are handed on.',
  },
  'src/clock/*.ts': {
    'service-clock.ts': 'How long the machine was suspended.',
  },
  'src/console/web/**/*.{ts,tsx}': {
    'app/now.ts': 'The clock of the browser, for what is shown.',
  },
  'src/process/*.ts': {
    'memory-pressure.ts': 'How often the process collects garbage.',
  },
  'src/*.ts': {
    'main.ts': 'The end of a process is timed by the machine.',
  },
};

/** Files that use randomness, and why. They still take their clocks as arguments. */
export const randomReaders: Record<string, Record<string, string>> = {
  'src/lib/*.ts': {
    'crypto.ts': 'A nonce, which is drawn at random by its nature.',
  },
  'src/bus/*.ts': {
    'redis.ts': 'Names this process, to tell its own messages from others.',
  },
  'src/db/*/**/*.ts': {
    'embedded/enter.ts': 'Makes a password.',
  },
  'src/notifications/*.ts': {
    'deliver.ts': 'Names this process among those that deliver.',
  },
  'src/api-keys/*.ts': {
    'api-keys.ts': 'Keys: nobody may foresee them.',
  },
  'src/streams/*.ts': {
    'tickets.ts': 'Tickets: nobody may foresee them.',
  },
  'src/http/*.ts': {
    'app.ts': 'Names each request, and measures how long it took.',
    'server.ts': 'Names what never became a request.',
  },
  'src/config/*.ts': {
    'secret.ts': 'Makes the secret.',
  },
  'src/sessions/*.ts': {
    'sessions.ts':
      'Identifiers of sessions: nobody may foresee them. Tokens: nobody may foresee them. Two tokens of one second must differ.',
  },
  'connector/mqtt/*.ts': {
    'server.ts': 'Names one run of the connector.',
  },
  'connector/bridge/*.ts': {
    'standby.ts': 'A client identifier that no other client has.',
  },
};

const message =
  'Time and chance arrive as arguments (src/lib/clock.ts). Who may read them is said in lint/clocks.ts.';

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
