import { LRUCache } from 'lru-cache';
import type { z } from 'zod';
import { Configuration } from '../../src/contract/configuration.ts';
import type { Rejection } from '../../src/contract/rejection.ts';
import type { UpTopic } from '../../src/contract/topic.ts';
import { warnOfUnknown } from '../../src/contract/unknown-members.ts';
import {
  EventReport,
  ProfileMessage,
  SentMeasurement,
  StateReport,
  TimeRequest,
} from '../../src/contract/uplink.ts';
import { hasUnknownMember, isPrivateName, knownOf } from '../../src/lib/schema.ts';

/** Asked where a device sent a member that nobody knows: whether it is to be told now. */
export type MayTell = () => boolean;

const hourMs = 3_600_000;
/** Devices that are told are remembered: beyond so many, one may be told again within the hour. */
const maxRemembered = 50_000;

/** For each device once an hour, as far as this process knows. `now`: milliseconds that only go forward. */
export function createUnknownMemberTurns(now: () => number): (uuid: string) => boolean {
  const toldMs = new LRUCache<string, number>({ max: maxRemembered });
  return (uuid) => {
    const nowMs = now();
    if (nowMs - (toldMs.get(uuid) ?? -Infinity) < hourMs) return false;
    toldMs.set(uuid, nowMs);
    return true;
  };
}

const schemas: Record<UpTopic, z.ZodType> = {
  measurements: SentMeasurement,
  state: StateReport,
  events: EventReport,
  profile: ProfileMessage,
  configuration: Configuration,
  time: TimeRequest,
};

/**
 * What a device is told of members that have no effect: the first one, with the known name that was meant.
 * Looked for in every message, so the usual case, that there is none, makes nothing and asks nobody.
 */
export function findUnknown(kind: UpTopic, sent: unknown, mayTell: MayTell): Rejection | null {
  if (!Array.isArray(sent)) return hasUnknown(kind, sent) ? tellOf(kind, sent, '', mayTell) : null;
  for (let index = 0; index < sent.length; index += 1)
    if (hasUnknown(kind, sent[index])) return tellOf(kind, sent[index], `/${index}`, mayTell);
  return null;
}

function hasUnknown(kind: UpTopic, item: unknown): boolean {
  if (kind !== 'measurements' || Array.isArray(item))
    return hasUnknownMember(knownOf(schemas[kind]), item);
  return hasUnknownOfMeasurement(item);
}

/**
 * Nearly all are a number and its time, and nothing else: names compared cost next to nothing. They are listed
 * once, as that takes milliseconds where an object has thousands.
 */
function hasUnknownOfMeasurement(item: unknown): boolean {
  if (typeof item !== 'object' || item === null) return false;
  for (const name in item)
    if (name !== 'sId' && name !== 'val' && name !== 'ts' && !isPrivateName(name)) return true;
  const isPosition = 'val' in item && typeof item.val === 'object';
  return isPosition && hasUnknownMember(knownOf(schemas.measurements), item);
}

function tellOf(kind: UpTopic, item: unknown, at: string, mayTell: MayTell): Rejection | null {
  const [first, ...more] = mayTell() ? warnOfUnknown(schemas[kind], item) : [];
  if (!first) return null;
  const others = more.length > 0 ? ` (and ${more.length} more of this item)` : '';
  return {
    reason: 'unknown-member',
    message: `${first.message}${others}; said once an hour`,
    path: at + first.path,
  };
}
