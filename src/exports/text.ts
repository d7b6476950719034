/** `{"<name>":[…],"timestamp":…}`, written as it comes. `textOf`: items of a block with commas between. */
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
    if (text === '') continue;
    yield separator + text;
    separator = ',';
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
