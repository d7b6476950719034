import { newUnit, type Unit } from '../rules/message.ts';
import type { Work } from '../queue/device-queue.ts';

/** Of several accounts' messages so many parts at most are stored one after the other. */
const mostParts = 8;

/**
 * Parts of a batch that failed, to be stored one after the other; by account, then halves by device, by
 * message, and by item. Null when a single item is left: that is the one the database refuses.
 */
export function split(batch: Work[]): Work[][] | null {
  const [only] = batch;
  if (!only) return null;
  const accounts = [...Map.groupBy(batch, ({ queue }) => queue.accountId).values()];
  if (accounts.length > 1) {
    const size = Math.ceil(accounts.length / mostParts);
    const count = Math.ceil(accounts.length / size);
    return Array.from({ length: count }, (_, n) => accounts.slice(n * size, (n + 1) * size).flat());
  }
  if (batch.length > 1) return halves(batch);
  const { queue, units } = only;
  const [unit] = units;
  if (units.length > 1) {
    const [first, second] = halves(units);
    return [[{ queue, units: first }], [{ queue, units: second }]];
  }
  if (!unit || unit.size < 2) return null;
  const [first, second] = halveUnit(unit);
  return [[{ queue, units: [first] }], [{ queue, units: [second] }]];
}

function halves<T>(list: T[]): [T[], T[]] {
  return cut(list, Math.ceil(list.length / 2));
}

function cut<T>(list: T[], count: number): [T[], T[]] {
  return [list.slice(0, count), list.slice(count)];
}

function halveUnit(unit: Unit): [Unit, Unit] {
  unit.message.open += 1;
  return divideUnit(unit, Math.ceil(unit.size / 2));
}

/** The first `count` items of a message, and the rest, as units; what was wrong with it is the first one's. */
export function divideUnit({ message, content, rejections }: Unit, count: number): [Unit, Unit] {
  switch (content.kind) {
    case 'measurements': {
      const [first, second] = cut(content.items, count);
      return [
        newUnit(message, { ...content, items: first }, rejections),
        newUnit(message, { ...content, items: second }, []),
      ];
    }
    case 'events': {
      const [first, second] = cut(content.items, count);
      return [
        newUnit(message, { ...content, items: first }, rejections),
        newUnit(message, { ...content, items: second }, []),
      ];
    }
    case 'state':
    case 'profile-answer':
    case 'profile-request':
    case 'configuration':
    case 'time':
    case 'tick':
    case 'none':
      throw new Error(`a message of kind ${content.kind} is a single item`);
  }
}

/** What is left of a single item that the database would not take: a rejection. */
export function toRejection({ message, content, rejections }: Unit, code: string): Unit {
  const index = 'items' in content ? content.items[0]?.index : null;
  const reason = `The database refused this (${code}); it is kept here and nowhere else.`;
  const path = index === null || index === undefined ? '' : `/${index}`;
  return {
    message,
    content: { kind: 'none' },
    size: 1,
    rejections: [...rejections, { reason: 'unstorable', message: reason, path }],
    isRefused: true,
  };
}
