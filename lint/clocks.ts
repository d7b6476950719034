import type { OxlintOverride } from 'oxlint';

/**
 * Time and chance arrive as arguments in everything that decides: a test that sets the time, or knows what
 * is drawn, hands it over. Files that read a clock or draw at random themselves, and why, by room.
 */
export const clockReaders: Record<string, Record<string, string>> = {
  'src/lib/*.ts': {
    'clock.ts': 'The clocks that are handed on.',
    'read-time.ts': 'Parses a time that was sent; reads no clock.',
    'sealed-text.ts': 'A nonce, which is drawn at random by its nature.',
    'wait.ts': 'A wait with a limit is timed by the machine.',
  },
  'src/clock/*.ts': { 'service-clock.ts': 'How long the machine was suspended.' },
  'src/bus/*.ts': { 'redis.ts': 'Names this process, to tell its own messages from others.' },
  'src/db/*.ts': {
    'connect-first.ts': 'The start of a process waits for a server.',
    'lock-tables.ts': 'A migration waits for sessions of other processes.',
    'migrate.ts': 'How long a step took, for the log.',
  },
  'src/db/*/**/*.ts': {
    'backup/back-up.ts': 'A command: when the copy was made.',
    'portable/write-copy.ts': 'A command: when the copy was made.',
    'embedded/guard.ts': 'The start of a process waits for another one to end.',
    'embedded/postmaster.ts': 'The start of a process waits for a server.',
    'embedded/secrets.ts': 'Makes a password.',
  },
  'src/notifications/*.ts': {
    'delivery-side.ts': 'Names this process among those that deliver.',
  },
  'src/notifications/drivers/*.ts': {
    'driver.ts': 'Parses a date that was sent; reads no clock.',
  },
  'src/log/*.ts': { 'create-log.ts': 'How many lines a second are written.' },
  'src/api-keys/*.ts': { 'key-text.ts': 'Keys: nobody may foresee them.' },
  'src/streams/*.ts': { 'ticket-text.ts': 'Tickets: nobody may foresee them.' },
  'src/http/*.ts': {
    'guard.ts': 'Names each request, and measures how long it took.',
    'refuse.ts': 'Names what never became a request.',
  },
  'src/console/web/**/*.{ts,tsx}': {
    'app/now.ts': 'The clock of the browser, for what is shown.',
    'pages/device/chart/date-of.ts': 'Makes a date of a time that it is handed; reads no clock.',
  },
  'src/config/*.ts': { 'secret.ts': 'Makes the secret.' },
  'src/process/*.ts': {
    'memory-pressure.ts': 'How often the process collects garbage.',
    'signals.ts': 'A signal that comes twice at once is one.',
  },
  'src/sessions/*.ts': {
    'sessions.ts': 'Identifiers of sessions: nobody may foresee them.',
    'refresh-token.ts': 'Tokens: nobody may foresee them.',
    'tokens.ts': 'Two tokens of one second must differ.',
  },
  'src/*.ts': { 'main.ts': 'The end of a process is timed by the machine.' },
  'src/assembly/*.ts': { 'stop-budget.ts': 'The end of a process is timed by the machine.' },
  'connector/mqtt/*.ts': {
    'server.ts': 'Names one run of the connector.',
  },
  'connector/bridge/*.ts': { 'probe.ts': 'A client identifier that no other client has.' },
};

const message =
  'Time and chance arrive as arguments (src/lib/clock.ts). Who may read them is said in lint/clocks.ts.';

/** `globalThis` would be a way around the others. */
export const clockGlobals = ['Date', 'performance', 'crypto', 'globalThis'].map((name) => ({
  name,
  message,
}));

export const clockProperties = [
  { object: 'Math', property: 'random', message },
  { object: 'process', property: 'hrtime', message },
  { object: 'process', property: 'uptime', message },
];

export const clockImports = [
  {
    group: ['node:crypto', 'crypto'],
    importNames: ['randomUUID', 'randomBytes', 'randomInt', 'randomFillSync', 'webcrypto'],
    message,
  },
  { group: ['node:perf_hooks', 'perf_hooks'], message },
  { group: ['node:os', 'os'], importNames: ['uptime'], message },
  { group: ['node:process', 'process'], importNames: ['hrtime', 'uptime'], message },
];

/** The files of a room that read clocks or chance, as paths. */
export function clockReadersOf(room: string): string[] {
  const folder = room.slice(0, room.indexOf('*'));
  return Object.keys(clockReaders[room] ?? {}).map((file) => folder + file);
}

/** What brings the rooms together makes what is drawn at random, but takes its clocks from lib/. */
export const clockOverrides: OxlintOverride[] = [
  {
    files: ['src/*.ts', 'src/assembly/*.ts'],
    rules: { 'no-restricted-globals': ['error', ...clockGlobals] },
  },
  {
    files: [...clockReadersOf('src/*.ts'), ...clockReadersOf('src/assembly/*.ts')],
    rules: { 'no-restricted-globals': 'off' },
  },
];
