import type { Device, DeviceHooks, DeviceSettings, DeviceSpec } from './device-types.ts';
import { openHttpConnection, type HttpAnswer, type HttpConnection } from './http-connection.ts';
import { bodyOf, readReceipt, type HttpReceipt, type HttpWay } from './http-body.ts';
import { startPolling } from './http-polls.ts';

/** A message under way. */
type Place = { seq: number; payload: string; sentAtMs: number; tries: number };

/** Longer than a working service takes, even while it stores nothing for a while and says so. */
const timeoutMs = 15_000;
/** One request in this many repeats an acknowledged item and contains one that is rejected. */
const oddEvery = 10;

/**
 * A device that posts its messages, one request at a time. Messages without a 200 are sent again, in order, after it
 * has been reopened. `fill` may send several messages in one request.
 */
export function createHttpDevice(
  spec: DeviceSpec & { http: HttpWay },
  settings: DeviceSettings,
  hooks: DeviceHooks,
): Device {
  const { http } = spec;
  const head = headOf(spec);
  const at = { host: settings.host, port: http.port, localAddress: settings.localAddress };
  const lanes: (HttpConnection | null)[] = Array.from({ length: http.connections }, () => null);
  let waiting: Place[] = [];
  /** The request under way; null: none. */
  let sent: Omit<HttpReceipt, 'answer'> | null = null;
  let polls: { stop: () => void } | null = null;
  let lastAcknowledged: string | null = null;
  let isOnline = false;
  let isOpen = false;
  let turn = 0;
  let seq = 0;

  function open(): void {
    isOpen = true;
    turn = 0;
    lanes[0] = openLane(0);
  }

  function openLane(lane: number): HttpConnection {
    return openHttpConnection({
      ...at,
      timeoutMs,
      opened() {
        if (!isOnline) goOnline();
      },
      answered: (answer) => onAnswer(lane, answer),
      ended(reason) {
        lanes[lane] = null;
        // A connection without a request under way is reopened for the next request.
        if (!isOnline || (sent && lane === turn)) fail(reason);
      },
    });
  }

  function goOnline(): void {
    isOnline = true;
    if (http.pollTopics !== undefined)
      polls = startPolling({ ...at, spec, topics: http.pollTopics, received: hooks.received });
    const isAgain = waiting.length > 0;
    hooks.online();
    if (isAgain) ask();
    else fill();
  }

  function fail(reason: string, status?: number, retryAfterSeconds?: number): void {
    if (!isOpen) return;
    isOpen = isOnline = false;
    sent = null;
    polls?.stop();
    for (const [lane, connection] of lanes.entries()) {
      connection?.close('reset');
      lanes[lane] = null;
    }
    hooks.offline(reason, status, retryAfterSeconds);
  }

  function fill(): number {
    if (!isOnline || waiting.length > 0) return 0;
    const sentAtMs = performance.now();
    while (waiting.length < http.most) {
      const payload = hooks.next(seq);
      if (payload === null) break;
      waiting.push({ seq, payload: payload.toString(), sentAtMs, tries: 0 });
      seq += 1;
    }
    if (waiting.length > 0) ask();
    return waiting.length;
  }

  function ask(): void {
    const again = waiting.filter(({ tries }) => tries > 0).length;
    for (const place of waiting) place.tries += 1;
    const isOdd = http.wrongItem !== undefined && (waiting[0]?.seq ?? 0) % oddEvery === 0;
    const known = isOdd && lastAcknowledged !== null ? [lastAcknowledged] : [];
    const wrong = isOdd && http.wrongItem !== undefined ? [http.wrongItem] : [];
    sent = { first: waiting.length - again, again, known: known.length, wrong: wrong.length };
    const body = bodyOf([...known, ...waiting.map(({ payload }) => payload), ...wrong], http);
    const lane = (lanes[turn] ??= openLane(turn));
    lane.ask(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  function onAnswer(lane: number, { status, body, retryAfterSeconds }: HttpAnswer): void {
    const request = sent;
    if (request === null) return;
    if (status !== 200) return fail(`HTTP ${status}: ${body}`, status, retryAfterSeconds);
    sent = null;
    if (!http.isKept) {
      lanes[lane]?.close('end');
      lanes[lane] = null;
    }
    turn = (turn + 1) % lanes.length;
    const answered = waiting;
    waiting = [];
    lastAcknowledged = answered.at(-1)?.payload ?? null;
    hooks.receipt?.({ ...request, answer: readReceipt(body) });
    const monotonicMs = performance.now();
    for (const place of answered) hooks.acknowledged(place.seq, monotonicMs - place.sentAtMs);
    fill();
  }

  return {
    open,
    fill,
    ping() {},
    pending: () => waiting.length,
    isOnline: () => isOnline,
    // Like a socket, it reports later that it is closed.
    close: () => void setImmediate(fail, 'closed'),
  };
}

function headOf({ topic, username, password, http }: DeviceSpec & { http: HttpWay }): string {
  return [
    `POST /${topic} HTTP/1.1`,
    'Host: fleet',
    `Authorization: Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
    `Content-Type: ${http.body === 'json' ? 'application/json' : 'application/x-ndjson'}`,
    ...(http.isKept ? [] : ['Connection: close']),
    '',
  ].join('\r\n');
}
