/** Of different mechanisms: ingest, sockets, password work, REST and database, streams. */
export const shortKinds = [
  'bad-items',
  'connections',
  'login-storm',
  'purposes-churn',
  'event-streams',
];
