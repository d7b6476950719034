/** Kinds with different mechanisms: ingest, sockets, sizes over REST, rows that are written, streams. */
export const tenSecondKinds = [
  'bad-items',
  'connections',
  'many-purposes',
  'many-devices',
  'stream-resumes',
];
