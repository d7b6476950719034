import type { LiveDevice, LiveValue } from '../bus/bus.ts';
import { chunkBytes, writeMessage } from '../streams/server-sent.ts';

/** A value that was committed; as text it is written once for all streams that are sent it. */
export class Value {
  readonly deviceId: number;
  readonly sId: string;
  readonly ts: number;
  readonly #uuid: string;
  readonly #value: LiveValue;
  #text: string | undefined;

  constructor({ deviceId, uuid }: Pick<LiveDevice, 'deviceId' | 'uuid'>, value: LiveValue) {
    this.deviceId = deviceId;
    [this.sId, this.ts] = value;
    this.#uuid = uuid;
    this.#value = value;
  }

  /** Tells the senses of an account apart. */
  get key(): string {
    return `${this.deviceId} ${this.sId}`;
  }

  /** Its message, without id and end. */
  get text(): string {
    this.#text ??= writeMessage('measurement', JSON.stringify(this.#view()));
    return this.#text;
  }

  #view() {
    const [sId, ts, val, long] = this.#value;
    return {
      deviceAuthUuid: this.#uuid,
      sId,
      val: long === undefined ? val : { lat: val, long },
      ts,
    };
  }
}

/** As messages, of which the last has no id and no end yet. */
export function* toBytes(values: readonly Value[]): Generator<Buffer> {
  let text = '';
  for (const [i, value] of values.entries()) {
    text += text === '' ? value.text : `\n${value.text}`;
    if (text.length < chunkBytes && i < values.length - 1) continue;
    yield Buffer.from(text);
    text = '';
  }
}
