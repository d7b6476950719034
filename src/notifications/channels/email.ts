import { createTransport } from 'nodemailer';
import { escapeHtml } from '../../lib/text.ts';
import { DeliveryError, reasonOfCode, withoutSecrets } from './channel.ts';

/**
 * A mail. `unsubscribeUrl`: a page that also accepts a mail client's post (RFC 8058); `unsubscribe`: that link's text.
 */
type OutgoingMail = {
  id: number;
  recipient: string;
  title: string;
  body: string;
  unsubscribeUrl?: string;
  unsubscribe?: string;
};

export type EmailDriver = { send: (mail: OutgoingMail) => Promise<void>; close: () => void };

export type EmailOptions = { smtpUrl: string; from: string; timeoutMs: number };

/**
 * Sends mail by SMTP, over a new connection for each mail. A mail server on this machine may present any certificate:
 * mail to it crosses no network, and many such servers are installed with a self-signed one.
 */
export function emailDriver({ smtpUrl, from, timeoutMs }: EmailOptions): EmailDriver {
  const transport = createTransport({
    url: withTrust(smtpUrl),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const secrets = secretsOf(smtpUrl);
  return {
    send: async (mail) => {
      const sending = transport.sendMail(compose(mail, from));
      await withinMs(sending, timeoutMs).catch((error: unknown) => {
        throw failureOf(error, secrets);
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
    // As an object, so that nodemailer does not parse it as a list of addresses.
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

/** Each of the timeouts above covers one step; a server that sends a byte now and then never exceeds them. */
async function withinMs<T>(work: Promise<T>, ms: number): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`No answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** The URL, with certificate checks turned off for a server on this machine unless the URL says otherwise. */
function withTrust(smtpUrl: string): string {
  const url = new URL(smtpUrl);
  const isHere = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (!isHere || url.searchParams.has('tls.rejectUnauthorized')) return smtpUrl;
  url.searchParams.set('tls.rejectUnauthorized', 'false');
  return url.href;
}

/** The password in every form in which it is sent (RFC 4616, AUTH LOGIN), because servers may repeat it. */
function secretsOf(smtpUrl: string): string[] {
  const url = new URL(smtpUrl);
  const [user, password] = [url.username, url.password].map((text) => decodeURIComponent(text));
  if (!user || !password) return [];
  const base64 = (text: string) => Buffer.from(text).toString('base64').replaceAll('=', '');
  return [password, url.password, base64(password), base64(`\0${user}\0${password}`)];
}

/** RFC 4954 section 6: the login is missing or was refused. */
const loginCodes = [530, 534, 535, 538];
/** A refusal of these commands concerns this mail; a refusal of any other concerns this service. */
const aboutTheMail = ['RCPT TO', 'DATA'];

type SmtpError = Partial<{
  code: string;
  originalCode: string;
  command: string;
  responseCode: number;
  permanent: boolean;
  message: string;
}>;

/**
 * RFC 5321 section 4.2.1: 4yz may pass, 5yz is permanent. The operator can fix a refusal that does not concern the
 * mail, such as of the login or the sender; whatever still waits is then sent.
 */
function failureOf(error: unknown, secrets: readonly string[]): DeliveryError {
  const {
    code = '',
    originalCode,
    command = '',
    responseCode,
    permanent,
    message,
  } = error as SmtpError;
  const isLogin =
    ['EAUTH', 'ENOAUTH', 'EOAUTH2'].includes(code) || loginCodes.includes(responseCode ?? 0);
  const said = withoutSecrets(message ?? String(error), secrets);
  // An answer to a login may repeat it in a form that we did not expect, so log only its codes (RFC 2034).
  const codes = /\b[45]\d\d(?:[ -][45]\.\d{1,3}\.\d{1,3})?/.exec(said)?.[0] ?? code;
  const text = isLogin && responseCode !== undefined ? `The login was refused: ${codes}` : said;
  // Not the error itself: its message and stack contain the unredacted answer.
  const cause = Object.assign(new Error(text), { code: originalCode ?? code });
  const failure = (verdict: 'again' | 'never', reason: DeliveryError['reason']) =>
    new DeliveryError(verdict, reason, text, { cause });
  if (isLogin) return failure('again', 'provider-login');
  if (responseCode !== undefined) {
    if (permanent !== true) return failure('again', 'provider-busy');
    return aboutTheMail.includes(command)
      ? failure('never', 'provider-refused')
      : failure('again', 'provider-login');
  }
  if (code === 'ETLS') return failure('again', 'tls-failed');
  if (code === 'EPROTOCOL') return failure('again', 'bad-answer');
  if (code === 'EMESSAGE') return failure('never', 'provider-refused');
  return failure('again', reasonOfCode(originalCode));
}
