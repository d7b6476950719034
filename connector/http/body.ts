import type { IncomingMessage } from 'node:http';
import type { PayloadFormat } from '../device/read-payload.ts';
import { HttpProblem } from './problem.ts';

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
  if (encoding.toLowerCase() !== 'identity') throw unsupported('The body may not be packed.');
  return format;
}

const utf8 = /^charset="?utf-?8"?$/;
const unsupported = (detail: string) => new HttpProblem(415, 'unsupported-type', detail);

/** What the body is announced to have; null where it comes in chunks. Throws 413 where that is too much. */
export function readLength({ headers }: IncomingMessage, most: number): number | null {
  if (headers['transfer-encoding'] !== undefined) return null;
  const length = Number(headers['content-length'] ?? 0);
  if (length > most) throw tooLarge(most);
  return length;
}

const tooLarge = (most: number) =>
  new HttpProblem(413, 'payload-too-large', `A body has at most ${most} bytes here.`);

/** Reads all of it. Rejects with 413 beyond `most` bytes, and where the client goes away. */
export function readBody(request: IncomingMessage, most: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    const end = (): void => {
      request.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
    };
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes <= most) return;
      end();
      reject(tooLarge(most));
    };
    const onEnd = (): void => {
      end();
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, bytes));
    };
    const onClose = (): void => {
      end();
      reject(new HttpProblem(400, 'invalid-input', 'The body broke off.'));
    };
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  });
}
