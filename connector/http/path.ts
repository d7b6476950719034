/** Everything below it is for devices. */
export const devicesPrefix = '/devices/';

const up = '/up/';
const down = '/down';

/** What a request's target names: `topic` is what stands behind `up/`. */
export type DevicePath =
  | { direction: 'up'; uuid: string; topic: string }
  | { direction: 'down'; uuid: string; query: string };

/** Null where nothing lies there. The uuid is in lower case, as RFC 9562 section 4 has it written. */
export function readPath(target: string): DevicePath | null {
  if (!target.startsWith(devicesPrefix)) return null;
  const asked = target.indexOf('?');
  const path = asked < 0 ? target : target.slice(0, asked);
  const nameEnd = path.indexOf('/', devicesPrefix.length);
  if (nameEnd <= devicesPrefix.length) return null;
  const uuid = path.slice(devicesPrefix.length, nameEnd).toLowerCase();
  if (path.startsWith(up, nameEnd)) {
    const topic = path.slice(nameEnd + up.length);
    return topic === '' || topic.includes('/') ? null : { direction: 'up', uuid, topic };
  }
  if (path.length !== nameEnd + down.length || !path.endsWith(down)) return null;
  return { direction: 'down', uuid, query: asked < 0 ? '' : target.slice(asked + 1) };
}
