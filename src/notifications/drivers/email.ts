import { createTransport } from 'nodemailer';
import { escapeHtml } from '../../lib/escape-html.ts';
import { DeliveryError } from './driver.ts';

/** A mail. `unsubscribe`: what ends further ones, by a page or at once (RFC 8058), and the words of that link. */
export type OutgoingMail = {
  id: number;
  recipient: string;
  title: string;
  body: string;
  unsubscribeUrl?: string;
  unsubscribe?: string;
};

export type EmailDriver = { send: (mail: OutgoingMail) => Promise<void>; close: () => void };

export type EmailOptions = { smtpUrl: string; from: string; timeoutMs: number };

/** Mail by SMTP, on a connection for each mail. */
export function emailDriver({ smtpUrl, from, timeoutMs }: EmailOptions): EmailDriver {
  const transport = createTransport({
    url: smtpUrl,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    send: async (mail) => {
      const sending = transport.sendMail(compose(mail, from));
      await withinMs(sending, timeoutMs).catch((error: unknown) => {
        throw failureOf(error);
      });
    },
    close: () => transport.close(),
  };
}

function compose(
  { id, recipient, title, body, unsubscribeUrl: url, unsubscribe = '' }: OutgoingMail,
  from: string,
) {
  const ending = url === undefined ? '' : `\n-- \n${unsubscribe}: ${url}\n`;
  const html =
    `<!doctype html><html><body><p><strong>${escapeHtml(title)}</strong></p>` +
    `<p>${linked(escapeHtml(body)).replaceAll('\n', '<br>')}</p>` +
    (url === undefined
      ? ''
      : `<p><a href="${escapeHtml(url)}">${escapeHtml(unsubscribe)}</a></p>`) +
    '</body></html>';
  return {
    from,
    // As an object: nothing in it is read as a list of addresses.
    to: { name: '', address: recipient },
    subject: title.replaceAll(/\s+/g, ' '),
    text: `${body}\n${ending}`,
    html,
    headers: {
      ...(url === undefined
        ? {}
        : {
            'List-Unsubscribe': { prepared: true, value: `<${url}>` },
            'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
          }),
      'Auto-Submitted': 'auto-generated',
      'X-Notification-Id': String(id),
    },
  };
}

const linked = (text: string) =>
  text.replaceAll(/https?:\/\/\S+/g, (url) => `<a href="${url}">${url}</a>`);

/** The timeouts above are each for one step: a server that sends a byte now and then meets none of them. */
async function withinMs<T>(work: Promise<T>, ms: number): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`No answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** RFC 5321 section 4.2.1: 4yz may pass, 5yz stays; a login that is refused is the operator's to mend. */
function failureOf(error: unknown): DeliveryError {
  const { code, responseCode, message } = error as Partial<{
    code: string;
    responseCode: number;
    message: string;
  }>;
  const said = message ?? String(error);
  if (code === 'EAUTH' || code === 'ENOAUTH')
    return new DeliveryError('again', 'provider-login', said, { cause: error });
  if (responseCode === undefined)
    return new DeliveryError('again', 'no-answer', said, { cause: error });
  if (responseCode >= 500)
    return new DeliveryError('never', 'provider-refused', said, { cause: error });
  return new DeliveryError('again', 'provider-busy', said, { cause: error });
}
