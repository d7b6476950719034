/** Parts of MQTT 5 packets, written by hand because no client library writes such packets. */
type Part = number | string | Buffer;

const bytesOf = (part: Part): Buffer =>
  typeof part === 'number' ? Buffer.from([part]) : Buffer.from(part as string);

export const join = (...parts: Part[]): Buffer => Buffer.concat(parts.map(bytesOf));

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return Buffer.from([...bytes, left]);
    bytes.push((left % 128) | 128);
  }
}

/** A text or binary with its length before it. */
export function text(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value as string);
  return join(bytes.length >> 8, bytes.length & 255, bytes);
}

/** A property list with its length before it. */
export function properties(...parts: Part[]): Buffer {
  const field = join(...parts);
  return join(varint(field.length), field);
}

/** A packet with its fixed header. */
export function packet(first: number, ...parts: Part[]): Buffer {
  const body = join(...parts);
  return join(first, varint(body.length), body);
}

export const none = properties();
const nothing: Buffer = Buffer.alloc(0);
export const id = (value: number): Buffer => join(value >> 8, value & 255);
export const userProperty = (name: string, value: string): Buffer =>
  join(0x26, text(name), text(value));

type Login = { uuid: string; token: string };

/** A CONNECT with these properties. `will`: from its properties to its payload. */
export function connect(
  { uuid, token }: Login,
  field: Buffer = none,
  { flags = 0xc2, keepalive = 0, clientId = 'raw', will = nothing } = {},
): Buffer {
  const head = join(text('MQTT'), 5, flags, id(keepalive), field);
  return packet(0x10, head, text(clientId), will, text(uuid), text(token));
}
