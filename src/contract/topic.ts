/** What a device may publish, below `devices/{uuid}/up/`. */
export const upTopics = [
  'measurements',
  'state',
  'events',
  'profile',
  'configuration',
  'time',
] as const;
export type UpTopic = (typeof upTopics)[number];

/** What a device is sent, below `devices/{uuid}/down/`. */
export const downTopics = [
  'profile',
  'configuration',
  'state',
  'display',
  'errors',
  'time',
  'token',
] as const;
export type DownTopic = (typeof downTopics)[number];

/**
 * What a device is sent that asks for everything. A new token is a credential, and a device that has never heard of it
 * may write it where others read it: it is sent to who names its topic.
 */
export const unnamedDownTopics: readonly DownTopic[] = downTopics.filter(
  (topic) => topic !== 'token',
);

export const upPrefix = (uuid: string) => `devices/${uuid}/up/`;
export const downPrefix = (uuid: string) => `devices/${uuid}/down/`;

const uuidAt = 'devices/'.length;

/**
 * Whether a topic or filter begins with a device's `upPrefix` or `downPrefix`. Its uuid may be written in capitals
 * there, as some platforms do: they are the same on input, RFC 9562 section 4.
 */
export function isBelow(topic: string, prefix: string): boolean {
  if (topic.startsWith(prefix)) return true;
  const uuidEnd = prefix.indexOf('/', uuidAt);
  return (
    topic.startsWith(prefix.slice(0, uuidAt)) &&
    topic.startsWith(prefix.slice(uuidEnd), uuidEnd) &&
    topic.slice(uuidAt, uuidEnd).toLowerCase() === prefix.slice(uuidAt, uuidEnd)
  );
}

/** The uplink topic that `topic` is for a device whose `upPrefix` is given; null below it but unknown. */
export function findUpTopic(topic: string, prefix: string): UpTopic | null {
  const name = topic.slice(prefix.length) as UpTopic;
  return upTopics.includes(name) ? name : null;
}

/** The device that a topic below `devices/{uuid}/up/` belongs to, in lower case; null for any other topic. */
export function findPublisher(topic: string): string | null {
  const [root, uuid, direction, ...rest] = topic.split('/', 4);
  return root === 'devices' && uuid && direction === 'up' && rest.length > 0
    ? uuid.toLowerCase()
    : null;
}

/**
 * The downlink topics that a filter below the device's own `down/` takes in; null for a filter that
 * reaches beyond it (`#`, `+/…`, `$SYS/…`, `$share/…`, another device's). MQTT 3.1.1 section 4.7.1.
 */
export function findMatchedTopics(filter: string, prefix: string): DownTopic[] | null {
  if (!isBelow(filter, prefix)) return null;
  const [first, second, ...rest] = filter.slice(prefix.length).split('/', 3);
  if (first === '#') return [...unnamedDownTopics];
  // "profile/#" takes in its parent "profile"; nothing lies deeper.
  if (rest.length > 0 || (second !== undefined && second !== '#')) return [];
  return first === '+' ? [...unnamedDownTopics] : downTopics.filter((topic) => first === topic);
}
