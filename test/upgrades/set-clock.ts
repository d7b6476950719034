// Loaded before the program (`node --import`): its clock is behind the machine's by this much. So
// sessions and tokens of an old installation are as old as they were, on whatever day it is read.
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
