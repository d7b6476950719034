import { consoleModules } from './console-modules.ts';
import type { Module } from './module.ts';

const servers = ['aedes', 'mqtt', 'koa', '@koa/*'];
const storage = ['pg', 'ioredis', 'node-pg-migrate'];
const web = ['koa', '@koa/*', 'koa-*'];
const handed =
  'A feature does not import this: assembly/ passes it what it needs from other features.';

function featureModule(name: string, may: string): Module {
  return {
    files: `src/${name}/*.ts`,
    may: may.split(' ').map((one) => `../${one}`),
    not: ['aedes', 'koa', '@koa/*'],
    why: handed,
  };
}

const deviceSide = ['../ports.ts', '../options.ts', '../failure.ts'];
const wire = [
  '../../src/contract/',
  '../../src/lib/',
  '../../src/log/limited-lines.ts',
  '../../src/log/logger.ts',
];
function transportModule(name: string, not: string[]): Module {
  return {
    files: `connector/${name}/*.ts`,
    may: ['../device/', ...deviceSide, ...wire],
    not: [...not, ...web, ...storage],
    why: `${name}/ gets what it needs as arguments (ports.ts), and imports neither SQL nor Koa.`,
  };
}

const beneathDb = ['lib/', 'log/logger.ts', 'errors.ts', 'start-error.ts', 'version.ts'];

/**
 * Which module may import what, besides itself and its libraries. Imports point inwards. assembly/ passes a feature
 * what it needs from another one. `main.ts`, `service.ts`, `assembly/` and `cli/` assemble the modules and may import
 * everything.
 */
export const modules: Module[] = [
  {
    files: 'src/lib/*.ts',
    may: ['../errors.ts'],
    not: [...servers, 'pg'],
    why: 'lib/ is general code: it knows nothing about this project.',
  },
  {
    files: 'src/log/*.ts',
    may: ['../lib/token-bucket.ts'],
    not: [...servers, ...storage],
    why: 'log/ imports no other module but the rate limiter; every module may import its types.',
  },
  {
    files: 'src/contract/*.ts',
    may: ['../lib/', '../errors.ts'],
    only: ['zod'],
    why: 'contract/ defines only what is sent over the wire.',
  },
  {
    files: 'src/engine/*.ts',
    may: ['../contract/', '../lib/clock-readings.ts', '../errors.ts'],
    only: ['zod'],
    why: 'engine/ is pure: it takes everything as arguments.',
  },
  {
    files: 'src/engine/explore/*.ts',
    may: [
      '../../contract/',
      '../arithmetic.ts',
      '../compile.ts',
      '../evaluator.ts',
      '../runtime.ts',
      '../thresholds.ts',
    ],
    only: [],
    why: 'explore/ tries purposes through the engine, in the service and in a browser.',
  },
  {
    files: 'src/bus/*.ts',
    may: ['../contract/', '../lib/'],
    not: [...servers, 'pg'],
    why: 'bus/ only carries messages between the parts of the service.',
  },
  {
    files: 'src/db/*.ts',
    may: beneathDb.map((one) => `../${one}`),
    not: [...servers, 'ioredis'],
    why: 'db/ does not depend on any feature.',
  },
  {
    files: 'src/db/*/**/*.ts',
    from: ['../../'],
    may: beneathDb.map((one) => `../../${one}`),
    not: [...servers, 'ioredis'],
    why: 'db/ does not depend on any feature.',
  },
  {
    files: 'src/clock/*.ts',
    may: ['../db/', '../lib/'],
    not: [...servers, 'ioredis'],
    why: 'clock/ only tells the time, and whether it can be trusted.',
  },
  {
    files: 'src/history/*.ts',
    may: ['../db/', '../lib/'],
    not: [...servers, 'ioredis'],
    why: 'history/ only manages rows: chunks, retention, deletion.',
  },
  {
    files: 'src/http/*.ts',
    may: ['../lib/', '../log/logger.ts', '../errors.ts', '../version.ts'],
    not: ['aedes', 'mqtt', ...storage],
    why: 'http/ gets its routes as arguments.',
  },
  {
    files: 'src/config/*.ts',
    may: [
      '../../config/',
      '../lib/',
      '../start-error.ts',
      '../notifications/settings.ts',
      '../quotas/settings.ts',
    ],
    not: [...servers, ...storage],
    why: 'config/ imports only the settings of features.',
  },
  {
    files: 'src/process/*.ts',
    may: ['../config/', '../lib/', '../log/logger.ts', '../start-error.ts'],
    not: [...servers, 'pg'],
    why: 'process/ does only what every process does when it starts and stops.',
  },
  {
    files: 'src/secret-check/*.ts',
    may: ['../config/', '../db/', '../log/logger.ts', '../start-error.ts'],
    not: [...servers, 'ioredis'],
    why: handed,
  },
  ...consoleModules,
  featureModule('connector-uptime', 'db/ engine/last-seen.ts lib/'),
  featureModule('sessions', 'config/keys.ts db/ lib/ quotas/ errors.ts'),
  featureModule('audit', 'db/ http/ lib/'),
  featureModule('versions', 'audit/audit.ts db/ http/ lib/ errors.ts'),
  featureModule('api-keys', 'audit/ db/ http/ lib/ quotas/ errors.ts'),
  featureModule('quotas', 'audit/ contract/ db/ http/ lib/ errors.ts'),
  featureModule('idempotency', 'db/ http/ lib/ quotas/ errors.ts'),
  featureModule('jobs', 'audit/ db/ http/ lib/ quotas/ errors.ts'),
  featureModule('accounts', 'audit/ contract/ db/ http/ lib/ quotas/ sessions/ errors.ts'),
  featureModule('broker-hooks', 'contract/ db/ http/ lib/ errors.ts'),
  featureModule(
    'devices',
    'audit/ bus/ contract/ db/ engine/ http/ lib/ quotas/ versions/ errors.ts',
  ),
  featureModule('purposes', 'audit/ contract/ db/ engine/ http/ lib/ quotas/ versions/ errors.ts'),
  featureModule(
    'profiles',
    'audit/ bus/ contract/ db/ engine/ http/ lib/ quotas/ versions/ errors.ts',
  ),
  featureModule('exports', 'db/ http/ lib/ errors.ts'),
  featureModule(
    'commands',
    'audit/ bus/ contract/ db/ devices/select.ts http/ lib/ quotas/ streams/ errors.ts',
  ),
  featureModule('streams', 'bus/ contract/ db/ devices/select.ts http/ lib/ quotas/ errors.ts'),
  featureModule(
    'events',
    'bus/ contract/ db/ devices/select.ts exports/ history/ http/ lib/ quotas/ streams/ errors.ts',
  ),
  featureModule('live', 'bus/ contract/ db/ http/ lib/ quotas/ streams/ errors.ts'),
  featureModule('presence', 'bus/ contract/ lib/ streams/ errors.ts'),
  featureModule(
    'measurements',
    'contract/ db/ devices/select.ts engine/ exports/ history/ http/ lib/ quotas/ errors.ts',
  ),
  featureModule('imports', 'contract/ db/ http/ lib/ quotas/ errors.ts'),
  // Alarms, notifications and contacts share a transaction and an outbox. Imports go one way: the rows of alarms know
  // nothing of messages, messages know those rows, and what decides on alarms and contacts knows both.
  featureModule(
    'alarms',
    'audit/ bus/ contract/ db/ devices/select.ts http/ lib/ notifications/ errors.ts',
  ),
  {
    files: 'src/alarms/{rows,store}.ts',
    may: ['../bus/', '../contract/', '../db/', '../lib/', '../errors.ts'],
    not: servers,
    why: 'The rows of alarms know nothing of messages.',
  },
  {
    files: 'src/alarms/rules.ts',
    may: ['../contract/', '../lib/clock-readings.ts'],
    only: ['zod'],
    beside: [],
    why: 'rules.ts is pure: it takes everything as arguments.',
  },
  featureModule(
    'contacts',
    'alarms/ audit/ contract/ db/ http/ lib/ notifications/ quotas/ errors.ts',
  ),
  featureModule(
    'notifications',
    'alarms/store.ts contract/ db/ http/ lib/ log/logger.ts log/limited-lines.ts errors.ts',
  ),
  {
    files: 'src/notifications/channels/*.ts',
    from: ['../../'],
    may: ['../../contract/', '../../errors.ts', '../../lib/', '../../log/logger.ts'],
    not: ['aedes', 'koa', '@koa/*', 'pg'],
    why: 'A channel knows only one way to reach people.',
  },
  {
    files: 'src/notifications/{text,words}.ts',
    may: ['../contract/', '../lib/'],
    only: ['lru-cache', 'zod'],
    beside: ['./words.ts'],
    why: 'The texts of messages are made by pure functions.',
  },
  {
    files: 'src/ingest/*.ts',
    may: [
      '../alarms/decide.ts',
      '../bus/',
      '../commands/answers.ts',
      '../contract/',
      '../db/',
      '../devices/queries.ts',
      '../devices/rejections.ts',
      '../engine/',
      '../events/meanings.ts',
      '../events/store.ts',
      '../lib/',
      '../measurements/store.ts',
      '../profiles/downlinks.ts',
      '../errors.ts',
      '../log/logger.ts',
    ],
    not: servers,
    why: 'Of features, ingest/ imports only the files that store something in its transaction.',
  },
  featureModule(
    'play',
    'alarms/rules.ts audit/ contract/ db/ devices/select.ts engine/ exports/ http/ ingest/rules/ jobs/ lib/ quotas/ versions/ errors.ts',
  ),
  {
    files: 'src/play/player.ts',
    may: [
      '../alarms/rules.ts',
      '../contract/',
      '../engine/',
      '../ingest/rules/',
      '../lib/clock-readings.ts',
    ],
    only: ['zod'],
    beside: ['./measurements.ts'],
    why: 'The player is pure: it takes everything as arguments.',
  },
  {
    files: 'src/ingest/rules/*.ts',
    may: ['../../contract/', '../../engine/', '../../lib/clock-readings.ts'],
    only: ['zod'],
    why: 'rules/ is pure: it takes everything as arguments.',
  },
  {
    files: 'src/ingest/queue.ts',
    from: ['../', './'],
    may: ['./rules/', '../contract/', '../lib/', '../errors.ts'],
    not: [...servers, ...storage],
    why: 'The queue knows nothing about tables.',
  },
  {
    files: 'src/metrics/*.ts',
    may: [
      '../../connector/',
      '../broker-hooks/',
      '../http/',
      '../ingest/',
      '../notifications/',
      '../version.ts',
    ],
    not: [...servers, ...storage],
    why: 'metrics/ imports only the types of what it observes.',
  },
  {
    files: 'connector/*.ts',
    from: ['./bridge/', './device/', './http/', './mqtt/', '../'],
    may: ['../src/contract/', '../src/lib/', '../src/bus/bus.ts', '../src/log/logger.ts'],
    not: ['aedes', 'mqtt', ...web, ...storage],
    why: 'connector/ gets what it needs as arguments (ports.ts).',
  },
  {
    files: 'connector/device/*.ts',
    may: [...deviceSide, ...wire],
    not: ['aedes', 'mqtt', ...web, ...storage],
    why: 'device/ serves every transport, so it depends on none.',
  },
  transportModule('mqtt', ['mqtt']),
  transportModule('http', ['aedes', 'mqtt']),
  transportModule('bridge', ['aedes']),
];
