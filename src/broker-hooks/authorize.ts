import { downPrefix, findMatchedTopics, isBelow, upPrefix } from '../contract/topic.ts';
import type { AuthorizeBody, Rule } from './schema.ts';

/** What somebody wants to do with a topic, or a filter. */
export type Wish = 'publish' | 'subscribe' | 'receive';

/** Null where the request names nothing that could be allowed. */
export function wishOf({ action, acc }: AuthorizeBody): Wish | null {
  if (action) return action;
  if (acc === 1) return 'receive';
  if (acc === 2) return 'publish';
  return acc === 4 ? 'subscribe' : null;
}

const hasWildcard = (topic: string) => /[+#\0]/.test(topic);

/**
 * A device publishes to its own `up/`, listens to its own `down/`, and nothing else. A broker compares topics letter by
 * letter: a filter whose uuid is in capitals would never be sent anything.
 */
export function mayDevice(uuid: string, wish: Wish, topic: string): boolean {
  if (wish === 'publish') return isBelow(topic, upPrefix(uuid)) && !hasWildcard(topic);
  if (wish === 'receive') return topic.startsWith(downPrefix(uuid));
  return topic.startsWith(downPrefix(uuid)) && findMatchedTopics(topic, downPrefix(uuid)) !== null;
}

/** A bridge does the opposite, for all devices. */
export function mayBridge(wish: Wish, topic: string): boolean {
  if (wish === 'subscribe') return /^(\$share\/[^/+#]+\/)?devices\/\+\/up\/#$/.test(topic);
  const direction = wish === 'publish' ? 'down' : 'up';
  return topic.split('/')[2] === direction && topic.startsWith('devices/') && !hasWildcard(topic);
}

/** The same as rules, for a broker that decides by itself. */
export const rulesOfDevice = (uuid: string): Rule[] => [
  { permission: 'allow', action: 'publish', topic: `${upPrefix(uuid)}#` },
  { permission: 'allow', action: 'subscribe', topic: `${downPrefix(uuid)}#` },
  { permission: 'deny', action: 'all', topic: '#' },
];

export const rulesOfBridge: Rule[] = [
  { permission: 'allow', action: 'publish', topic: 'devices/+/down/#' },
  { permission: 'allow', action: 'subscribe', topic: 'devices/+/up/#' },
  { permission: 'deny', action: 'all', topic: '#' },
];
