/**
 * Every code that a line of the log can have as its `event`. docs/operations.md says of each what it means
 * and what to do; a test holds this list, that page and the uses together. A code is searched for and
 * alerted on: it is added, and never renamed.
 */
export const logEvents = [
  // The process.
  'service.ready',
  'service.reload-requested',
  'service.crashed',
  'service.superseded',
  'stop.requested',
  'stop.finished',
  'stop.step-cut',
  'stop.step-failed',
  'stop.killed',
  'stop.second-signal',
  'stop.second-error',
  'stop.failed',
  'memory.short',
  'memory.enough',

  // The database, Redis and the secret.
  'database.created',
  'database.moved',
  'database.adopted',
  'database.lost',
  'database.away',
  'database.back',
  'database.stop-slow',
  'database.migrated',
  'database.migration-slow',
  'database.migration-warning',
  'database.storage',
  'database.timescaledb-unusable',
  'database.holder-ended',
  'database.connection-lost',
  'secret.replaced',
  'secret.noted',
  'redis.away',
  'redis.back',
  'bus.degraded',
  'bus.listener-failed',

  // HTTP, accounts and quotas.
  'request.done',
  'request.failed',
  'request.unavailable',
  'request.broken-off',
  'sessions.degraded',
  'attempts.local',
  'accounts.unread',
  'accounts.mail-failed',
  'accounts.mail-undelivered',
  'audit.unwritten',
  'quotas.unread',
  'quotas.unwritten',
  'quotas.unestimated',

  // MQTT and bridges.
  'mqtt.login-refused',
  'mqtt.logins-refused',
  'mqtt.library-failed',
  'login.failed',
  'login.unchecked',
  'access.unchecked',
  'certificate.reloaded',
  'certificate.refused',
  'message.not-stored',
  'downlink.unread',
  'downlink.unnoted',
  'presence.unwritten',
  'bridge.connected',
  'bridge.disconnected',
  'bridge.refused',
  'bridge.standby',
  'bridge.lease-lost',
  'bridge.lease-given-up',
  'bridge.lease-unknown',
  'bridge.report-failed',
  'bridge.foreign-device',

  // What devices send, and what follows from it.
  'batch.retried',
  'batch.given-up',
  'batch.failed',
  'batch.untold',
  'item.refused',
  'profile.not-handed-over',
  'notification.undelivered',
  'notification.logged',
  'notifications.contacts-failed',
  'notifications.unkept',
  'notifications.quota-renamed',
  'worker.restarted',
  'worker.connection-lost',
  'worker.warning',
  'worker.message',

  // The history.
  'history.upkeep-failed',
  'history.jobs-failed',
  'history.purge-failed',
] as const;

export type LogEvent = (typeof logEvents)[number];

/** The part of the service that a line is about. */
export const components = [
  'service',
  'database',
  'secret',
  'redis',
  'bus',
  'http',
  'health',
  'sessions',
  'accounts',
  'audit',
  'quotas',
  'memory',
  'devices',
  'mqtt',
  'bridge',
  'ingest',
  'notifications',
  'history',
] as const;

export type Component = (typeof components)[number];
