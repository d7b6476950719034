/**
 * `{"<name>":[…],"timestamp":…}`, written as it comes. `textOf`: items of a block with commas between. Of a block without
 * any a line break is written: that its client has gone is heard by writing alone, as one that has sent its request may
 * close its half of the connection.
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
