/**
 * `{"<name>":[…],"timestamp":…}`, written as it comes. `textOf`: items of a block with commas between. A block without
 * items becomes a line break: only a write tells that the client has gone, because a client may close its half of the
 * connection once it has sent its request.
 */
export async function* asJsonList<B>(
  name: string,
  blocks: AsyncIterable<B>,
  textOf: (block: B) => string,
  timestamp: number,
): AsyncGenerator<string> {
  yield `{"${name}":[`;
  let separator = '';
  for await (const block of blocks) {
    const text = textOf(block);
    yield text === '' ? '\n' : separator + text;
    if (text !== '') separator = ',';
  }
  yield `],"timestamp":${timestamp}}`;
}

/** Whole lines behind a header, if there is one. */
export async function* asLines<B>(
  blocks: AsyncIterable<B>,
  textOf: (block: B) => string,
  header: string = '',
): AsyncGenerator<string> {
  if (header !== '') yield header;
  for await (const block of blocks) yield textOf(block);
}
