/**
 * A message of a stream of server-sent events.
 * @typedef {{ name: string, data: string }} Message
 */

/**
 * `onOpen`: the stream is open for the first time, or could not be resumed. `onRefused`: 401, the token no longer opens
 * anything.
 * @typedef {object} Follow
 * @property {string} url
 * @property {() => Record<string, string>} headers
 * @property {() => Promise<void>} onOpen
 * @property {(message: Message) => Promise<void>} onMessage
 * @property {() => Promise<void>} onRefused
 */

/**
 * Follows a stream for ever, and resumes after the last message when it breaks. `EventSource` of browsers does the
 * same, but cannot send an Authorization header.
 * @param {Follow} follow
 */
export async function followStream(follow) {
  let lastId = '';
  let failures = 0;
  for (;;) {
    try {
      /** @type {Record<string, string>} */
      const headers = { ...follow.headers(), Accept: 'text/event-stream' };
      if (lastId !== '') headers['Last-Event-ID'] = lastId;
      const answer = await fetch(follow.url, { headers });
      if (answer.status === 401) await follow.onRefused();
      else if (!answer.ok || !answer.body) throw new Error(`The stream answers ${answer.status}.`);
      else {
        if (lastId === '') await follow.onOpen();
        failures = 0;
        for await (const { id, ...message } of readMessages(answer.body)) {
          if (message.data !== '') await follow.onMessage(message);
          // Keep the id only after the message is handled: if the stream breaks meanwhile, the message comes again.
          if (id !== '') lastId = id;
        }
      }
    } catch (error) {
      console.error(`${String(error)} Trying again.`);
    }
    failures += 1;
    // One second, then longer; a random part of that, so that not all apps return at once.
    const longest = Math.min(30_000, 1_000 * 2 ** Math.min(failures, 5));
    await new Promise((resolve) => setTimeout(resolve, Math.random() * longest));
  }
}

/**
 * The format of the HTML standard, section 9.2: lines `id:`, `event:`, `data:`; an empty line ends a message.
 * @param {ReadableStream<Uint8Array>} body
 */
async function* readMessages(body) {
  let text = '';
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const message = { id: '', name: 'message', data: '' };
      for (const line of text.slice(0, end).split('\n')) {
        const [, field, value = ''] = /^(id|event|data): ?(.*)$/.exec(line) ?? [];
        if (field === 'id') message.id = value;
        if (field === 'event') message.name = value;
        if (field === 'data') message.data += value;
      }
      text = text.slice(end + 2);
      yield message;
    }
  }
}
