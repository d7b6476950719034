/** Everything below it is for devices. */
export const devicesPrefix = '/devices/';

/** What a request's target names: `topic` is what stands behind `up/`. */
export type DevicePath =
  | { direction: 'up'; uuid: string; topic: string }
  | { direction: 'down'; uuid: string; query: string };

/** Null where nothing lies there. The uuid is in lower case, as RFC 9562 section 4 has it written. */
export function readPath(target: string): DevicePath | null {
  const asked = target.indexOf('?');
  const path = asked < 0 ? target : target.slice(0, asked);
  if (!path.startsWith(devicesPrefix)) return null;
  const [name = '', direction, topic, ...rest] = path.slice(devicesPrefix.length).split('/', 4);
  if (name === '' || rest.length > 0) return null;
  const uuid = name.toLowerCase();
  if (direction === 'up' && topic) return { direction, uuid, topic };
  if (direction === 'down' && topic === undefined)
    return { direction, uuid, query: asked < 0 ? '' : target.slice(asked + 1) };
  return null;
}
