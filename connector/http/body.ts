import type { IncomingMessage } from 'node:http';
import { JoinedChunks } from '../../src/lib/joined-chunks.ts';
import type { PayloadFormat } from '../device/uplink.ts';
import type { BegunBodies } from './begun-bodies.ts';
import { comeLater, HttpProblem } from './problem.ts';

const formats = new Map<string, PayloadFormat>([
  ['', 'json'],
  ['application/json', 'json'],
  ['application/x-ndjson', 'ndjson'],
  ['application/ndjson', 'ndjson'],
]);

/** Throws 415 for what is neither; a board that names no type sends JSON. */
export function readFormat({ headers }: IncomingMessage): PayloadFormat {
  const { 'content-type': given = '', 'content-encoding': encoding = 'identity' } = headers;
  const known = formats.get(given);
  if (known !== undefined && encoding === 'identity') return known;
  const [type = '', ...parameters] = given.split(';').map((part) => part.trim().toLowerCase());
  const format = formats.get(type);
  const isUtf8 = parameters.every((one) => !one.startsWith('charset=') || utf8.test(one));
  if (format === undefined || !isUtf8)
    throw unsupported('Expected application/json or application/x-ndjson, in UTF-8.');
  if (encoding.toLowerCase() !== 'identity') throw unsupported('The body may not be compressed.');
  return format;
}

const utf8 = /^charset="?utf-?8"?$/;
const unsupported = (detail: string) => new HttpProblem(415, 'unsupported-type', detail);

/** Throws 413 where the body is announced to have more than `most` bytes. */
export function checkLength({ headers }: IncomingMessage, most: number): void {
  if (Number(headers['content-length'] ?? 0) > most) throw tooLarge(most);
}

const tooLarge = (most: number) =>
  new HttpProblem(413, 'payload-too-large', `A body has at most ${most} bytes here.`);

/**
 * The body where all that is announced has arrived, as it mostly has of a small one: nothing is to be waited
 * for then. Null where there may be more to come, or where it has more than `most` bytes.
 */
export function takeArrivedBody(request: IncomingMessage, most: number): Buffer | null {
  const announced = Number(request.headers['content-length']);
  if (announced === 0 || announced > most || request.readableLength !== announced) return null;
  const body = request.read() as Buffer | null;
  // Node sees only then that the request has ended.
  request.resume();
  return body;
}

/**
 * Reads all of it. Rejects with 413 beyond `most` bytes, with 503 where its memory is needed for others, and
 * where the client goes away.
 */
export function readBody(
  request: IncomingMessage,
  most: number,
  bodies: BegunBodies,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const joined = new JoinedChunks(most);
    const end = (): void => {
      begun.end();
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
    };
    const fail = (problem: HttpProblem): void => {
      end();
      joined.clear();
      reject(problem);
    };
    const begun = bodies.begin(() =>
      fail(comeLater('The body took long to come, and its memory was needed: send it again.')),
    );
    const onData = (chunk: Buffer): void => {
      if (!joined.hasRoom(chunk)) return fail(tooLarge(most));
      begun.add(joined.add(chunk));
    };
    const onEnd = (): void => {
      end();
      resolve(joined.bytes);
    };
    const onClose = (): void => fail(new HttpProblem(400, 'invalid-input', 'The body broke off.'));
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  });
}
