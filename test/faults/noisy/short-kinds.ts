/** Of different mechanisms: ingest, sockets, password work, REST, streams. */
export const shortKinds = [
  'bad-items',
  'connections',
  'login-storm',
  'many-purposes',
  'stream-resumes',
];
