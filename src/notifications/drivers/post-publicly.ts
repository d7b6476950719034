import { lookup } from 'node:dns';
import type { LookupAddress } from 'node:dns';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { isPrivateAddress, isPrivateHost } from '../../lib/address.ts';
import { DeliveryError, reasonOfCode } from '../channels/channel.ts';

/** Where requests may go, and how long one may take from its beginning to the answer's status. */
export type PostOptions = {
  isPrivateAllowed: boolean;
  timeoutMs: number;
  /** Stands in for the system's own. */
  lookupAll?: LookupAll;
};

export type LookupAll = (
  hostname: string,
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

const systemLookup: LookupAll = (hostname, callback) => lookup(hostname, { all: true }, callback);

/**
 * Posts a body to an address that a tenant has chosen, and gives the status of the answer, and its `Retry-After`
 * as it was written. Redirects are not followed, the answer's body is not read. What a name leads to is looked up once: what was checked is
 * what is connected to, however often the name changes its mind. Rejects with a `DeliveryError`.
 */
export async function postPublicly(
  url: string,
  request: PostOptions & { headers: Record<string, string>; body: string },
): Promise<{ status: number; retryAfter: string | undefined }> {
  const { isPrivateAllowed, timeoutMs, lookupAll = systemLookup, headers, body } = request;
  const { protocol, hostname } = new URL(url);
  if (!isPrivateAllowed && isPrivateHost(hostname)) throw refused(hostname);
  const start = protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const outgoing = start(url, {
      method: 'POST',
      headers: { ...headers, 'Content-Length': Buffer.byteLength(body) },
      lookup: checkedLookup(lookupAll, isPrivateAllowed),
      // No connection is kept: a later message looks the name up, and checks it, again.
      agent: false,
      maxHeaderSize: 16_384,
    });
    const timer = setTimeout(
      () => outgoing.destroy(new Error(`No answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
    outgoing.once('response', (response) => {
      const { statusCode: status = 0, headers: answered } = response;
      resolve({ status, retryAfter: answered['retry-after'] });
      response.once('error', () => undefined);
      response.destroy();
    });
    outgoing.once('error', (error) =>
      reject(error instanceof DeliveryError ? error : unanswered(error)),
    );
    outgoing.once('close', () => {
      clearTimeout(timer);
      reject(unanswered(new Error('The connection was closed without an answer')));
    });
    outgoing.end(body);
  });
}

/** Where one of the addresses is refused all are: which one is taken would be up to the receiver. */
function checkedLookup(lookupAll: LookupAll, isPrivateAllowed: boolean): LookupFunction {
  return (hostname, { all }, callback) => {
    lookupAll(hostname, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error || !first) {
        callback(error ?? new Error(`${hostname} has no address`), '', 0);
        return;
      }
      if (!isPrivateAllowed && addresses.some(({ address }) => isPrivateAddress(address)))
        callback(refused(hostname), '', 0);
      else if (all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

const refused = (hostname: string) =>
  new DeliveryError('never', 'address-refused', `${hostname} leads to a private address`);

const unanswered = (cause: Error) =>
  new DeliveryError(
    'again',
    reasonOfCode('code' in cause ? cause.code : undefined),
    `No answer: ${cause.message}`,
    { cause },
  );
