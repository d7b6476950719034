import type { Module } from './module.ts';

const servers = ['aedes', 'mqtt', 'koa', '@koa/*', 'pg', 'ioredis', 'node-pg-migrate'];

/** The web console: the service's part, its build, and the page. */
export const consoleModules: Module[] = [
  {
    files: 'src/console/*.ts',
    may: ['../contract/', '../http/', '../log/logger.ts', '../errors.ts'],
    not: ['aedes', 'koa', '@koa/*', 'pg', 'rolldown'],
    why: 'console/ serves a page that console/build/ makes, and gets its sessions as an argument.',
  },
  {
    files: 'src/console/build/*.ts',
    from: ['../../'],
    may: ['../manifest.ts'],
    not: servers,
    why: 'console/build/ is a separate program.',
  },
  {
    files: 'src/console/web/**/*.{ts,tsx}',
    from: ['../../../../', 'node:*'],
    may: [],
    not: servers,
    why: 'console/web/ runs in a browser: it imports only types from other modules, through api/types.ts.',
  },
  {
    files: 'src/console/web/engine/*.ts',
    from: ['../../', 'node:*'],
    may: [
      '../../../contract/',
      '../../../engine/',
      '../../../play/measurements.ts',
      '../../../play/player.ts',
    ],
    not: servers,
    why: 'console/web/engine/ is what the page runs of the engine: it is pure, and loaded when a rule is written.',
  },
];
