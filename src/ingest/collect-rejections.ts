import { randomUUID } from 'node:crypto';
import { countedOnly, type Rejection } from '../core/rejection.ts';
import type { DeviceIdentity } from '../core/uplink.ts';
import type { Unit } from './entry.ts';
import type { Rows } from './rows.ts';

/** Names that a device made up are a part of them, and may be as long as a message. */
const maxTextLength = 1_024;

export type RejectionCollector = {
  /** Whether it is kept one by one. */
  add: (rejection: Rejection) => boolean;
  /** To be called when all are added: says how many are counted only. */
  end: () => void;
};

/**
 * Makes rows, and messages for the device, of what is wrong with a message: the first `maxKept` one by
 * one, the others as a number. Parts of a message that was split share the places. What the database
 * refused is kept always, for it is kept nowhere else.
 */
export function collectRejections(
  { deviceId, uuid }: DeviceIdentity,
  { entry, isRefused }: Unit,
  rows: Rows,
  maxKept: number,
): RejectionCollector {
  const { topic, arrivedTs: ts } = entry.uplink;
  let more = 0;
  /** What tells the number of one part of a message from that of another. */
  let firstCounted = -1;

  function keep({ reason, message, path, ...rest }: Rejection, item: number): void {
    const kept = rows.kept.get(entry) ?? entry.kept;
    const isFirst = kept === 0;
    rows.kept.set(entry, kept + 1);
    const told: Rejection = { reason, message: cut(message), ...rest };
    if (path !== undefined) told.path = cut(path);
    rows.rejections.push({
      ...told,
      deviceId,
      messageId: (entry.id ??= randomUUID()),
      item,
      ts,
      topic: storable(topic),
      payload: isFirst || isRefused ? storable(entry.uplink.excerpt) : '',
    });
    const payload = { topic, ...told, ts };
    rows.effects.push({ kind: 'down', uuid, message: { topic: 'errors', payload } });
  }

  return {
    add(rejection) {
      const item = itemOf(rejection.path);
      const isFull = (rows.kept.get(entry) ?? entry.kept) >= maxKept;
      if (rejection.more === undefined && (!isFull || isRefused)) {
        keep(rejection, item);
        return true;
      }
      more += rejection.more ?? 1;
      if (firstCounted < 0) firstCounted = item;
      return false;
    },
    end() {
      if (more > 0) keep(countedOnly(more), firstCounted);
    },
  };
}

/** PostgreSQL's text holds every character but NUL. */
const storable = (text: string) => text.replaceAll('\0', '\uFFFD');

function cut(text: string): string {
  const short = text.length > maxTextLength ? `${text.slice(0, maxTextLength - 1)}…` : text;
  return storable(short.toWellFormed());
}

/** The place in the array that a JSON Pointer leads into; -1 for the message as a whole. */
function itemOf(path: string | undefined): number {
  const index = /^\/(\d+)(\/|$)/.exec(path ?? '')?.[1];
  return index === undefined ? -1 : Number(index);
}
