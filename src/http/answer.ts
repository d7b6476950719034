import type { Readable } from 'node:stream';

/** An answer that is written as it comes: CSV, server-sent events. Made by `stream()`. */
export class Streamed {
  readonly contentType: string;
  readonly source: Readable | AsyncIterable<string | Uint8Array>;
  readonly status: number;

  constructor(
    contentType: string,
    source: Readable | AsyncIterable<string | Uint8Array>,
    status: number,
  ) {
    this.contentType = contentType;
    this.source = source;
    this.status = status;
  }
}

/** An answer that is JSON text already: large, and stored as it is told. Made by `jsonText()`. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Answers with JSON that was written before, instead of writing it again for each request. */
export function jsonText(text: string): JsonText {
  return new JsonText(text);
}

/** Answers with a stream; it is destroyed when the client goes away. */
export function stream(
  contentType: string,
  source: Readable | AsyncIterable<string | Uint8Array>,
  status = 200,
): Streamed {
  return new Streamed(contentType, source, status);
}
