/** How a device sends over HTTP. */
export type HttpWay = {
  port: number;
  /** Connections, used alternately. */
  connections: 1 | 2;
  /** Otherwise each request has a connection of its own. */
  isKept: boolean;
  body: 'json' | 'ndjson';
  /** The most messages in one request. */
  most: number;
  /** Topics for which it long-polls, on a connection of its own; absent: none. */
  pollTopics?: string;
  /**
   * An item that the service rejects, sent with some requests, which also repeat an acknowledged item. Absent: neither.
   */
  wrongItem?: string;
};

/** The content of a 200 answer; null: something else. */
export type Receipt = { stored: number; repeated: number; rejected: { reason: string }[] };

/** The result of a request answered with 200, in numbers of items. */
export type HttpReceipt = {
  /** Sent for the first time. */
  first: number;
  /** Sent before without an answer. */
  again: number;
  /** Acknowledged before. */
  known: number;
  /** To be rejected. */
  wrong: number;
  answer: Receipt | null;
};

/** Items as one body: a single item is a value alone, unless lines are requested. */
export function bodyOf(items: string[], { body }: Pick<HttpWay, 'body'>): string {
  if (body === 'ndjson') return `${items.join('\n')}\n`;
  return items.length === 1 ? (items[0] as string) : `[${items.join(',')}]`;
}

export function readReceipt(text: string): Receipt | null {
  const { stored, repeated, rejected } = JSON.parse(text) as Partial<Receipt>;
  const areCounts = typeof stored === 'number' && typeof repeated === 'number';
  return areCounts && Array.isArray(rejected) ? { stored, repeated, rejected } : null;
}
