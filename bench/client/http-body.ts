/** How a device sends over HTTP. */
export type HttpWay = {
  port: number;
  /** Used in turn, each for the next request. */
  connections: 1 | 2;
  /** Else each request has a connection of its own. */
  isKept: boolean;
  body: 'json' | 'ndjson';
  /** Messages in one request, at most. */
  most: number;
  /** What it waits for with a long poll, over a connection of its own; absent: nothing. */
  pollTopics?: string;
  /** An item that the service rejects, sent with some requests; they repeat an acknowledged one too. Absent: neither. */
  wrongItem?: string;
};

/** What an answer of 200 says; null: something else. */
export type Receipt = { stored: number; repeated: number; rejected: { reason: string }[] };

/** What became of a request that was answered with 200, by number of items. */
export type HttpReceipt = {
  /** Sent for the first time. */
  first: number;
  /** Sent before, and not answered. */
  again: number;
  /** Acknowledged before. */
  known: number;
  /** To be rejected. */
  wrong: number;
  answer: Receipt | null;
};

/** Items as one body: a value alone where there is one, and no lines are asked for. */
export function bodyOf(items: string[], { body }: Pick<HttpWay, 'body'>): string {
  if (body === 'ndjson') return `${items.join('\n')}\n`;
  return items.length === 1 ? (items[0] as string) : `[${items.join(',')}]`;
}

export function readReceipt(text: string): Receipt | null {
  const { stored, repeated, rejected } = JSON.parse(text) as Partial<Receipt>;
  const areCounts = typeof stored === 'number' && typeof repeated === 'number';
  return areCounts && Array.isArray(rejected) ? { stored, repeated, rejected } : null;
}
