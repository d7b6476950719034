import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

/** A mail as it arrived: whom the envelope names, the headers unfolded, its parts in plain text. */
export type Mail = {
  from: string;
  to: string[];
  headers: Record<string, string>;
  text: string;
};

export type MailServer = {
  url: string;
  mails: Mail[];
  /** Resolves with a mail to this address that `suits`, as soon as it is there. */
  mailTo: (address: string, suits?: (mail: Mail) => boolean) => Promise<Mail>;
  close: () => Promise<void>;
};

type Answer = number | undefined;

/**
 * `answer`: the code that a recipient is refused with, at once or later; none: it is taken. `taken`: what is awaited
 * between the arrival of a mail and the answer that it was taken.
 */
export async function startMailServer(
  answer: (recipient: string) => Answer | Promise<Answer> = () => undefined,
  taken: () => Promise<void> = async () => undefined,
): Promise<MailServer> {
  const mails: Mail[] = [];
  const arrived = new EventTarget();
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onRcptTo({ address }, _session, callback) {
      void Promise.resolve(answer(address)).then((responseCode) => {
        if (responseCode === undefined) callback();
        else callback(Object.assign(new Error('Refused'), { responseCode }));
      });
    },
    onData(stream, { envelope }, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => void chunks.push(chunk));
      stream.on('end', () => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address;
        const to = envelope.rcptTo.map(({ address }) => address);
        mails.push({ from, to, ...read(Buffer.concat(chunks).toString('latin1')) });
        arrived.dispatchEvent(new Event('mail'));
        void taken().then(() => callback());
      });
    },
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `smtp://127.0.0.1:${port}`,
    mails,
    async mailTo(address, suits = () => true) {
      for (;;) {
        const found = mails.find((mail) => mail.to.includes(address) && suits(mail));
        if (found) return found;
        await new Promise((resolve) => arrived.addEventListener('mail', resolve, { once: true }));
      }
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** RFC 5322: folded headers; RFC 2045: quoted-printable and base64 parts. */
function read(raw: string): Pick<Mail, 'headers' | 'text'> {
  const end = raw.indexOf('\r\n\r\n');
  const lines = raw
    .slice(0, end)
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const boundary = /boundary="([^"]+)"/.exec(headers['content-type'] ?? '')?.[1];
  const parts = boundary === undefined ? [raw] : raw.split(`--${boundary}`).slice(1, -1);
  return { headers, text: parts.map(decode).join('\n') };
}

function decode(part: string): string {
  const end = part.indexOf('\r\n\r\n');
  const encoding = /content-transfer-encoding: *(\S+)/i.exec(part.slice(0, end))?.[1];
  const body = part.slice(end + 4);
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString();
  if (encoding !== 'quoted-printable') return Buffer.from(body, 'latin1').toString();
  const bytes = body
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}
