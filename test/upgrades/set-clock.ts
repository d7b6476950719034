import pg from 'pg';

// Loaded before the program (`node --import`): sets its clock behind the machine's. So the sessions and tokens of an
// old installation are as old as they were, on whatever day it runs.
const behindMs = Number(process.env['CLOCK_BEHIND_MS'] ?? 0);
const MachineDate = Date;

globalThis.Date = new Proxy(MachineDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(
      target,
      args.length > 0 ? args : [target.now() - behindMs],
      newTarget,
    ) as Date,
  get: (target, name) =>
    name === 'now' ? () => target.now() - behindMs : (Reflect.get(target, name) as unknown),
});

// The service uses the database's clock, through a function. Its callers get the same time.
type Query = (...args: unknown[]) => unknown;
const client = pg.Client.prototype as unknown as { query: Query };
const { query } = client;
const behind = (text: string) =>
  text.replaceAll(
    /(?<!function )\bservice_now\(\)(?! - )/g,
    `(service_now() - ${behindMs} * interval '1 millisecond')`,
  );

client.query = function shifted(this: unknown, ...[config, ...rest]: unknown[]) {
  if (typeof config === 'string') return query.call(this, behind(config), ...rest);
  const named = config as { text?: unknown } | undefined;
  if (typeof named?.text === 'string') named.text = behind(named.text);
  return query.call(this, config, ...rest);
};
