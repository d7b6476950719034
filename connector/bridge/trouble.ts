import { isUnanswered } from './mqtt-js.ts';

/** Why a bridge is not connected, as far as the broker or the way there says it. */
export type Trouble =
  | 'refused-credentials'
  | 'refused-client-id'
  | 'protocol-version'
  | 'shared-subscriptions'
  | 'refused-subscription'
  | 'certificate'
  | 'tls'
  | 'unreachable'
  | 'no-answer'
  | 'closed-at-connect'
  | 'closed'
  | 'session-taken'
  | 'broker-unavailable'
  | 'limit'
  | 'not-stored'
  | 'protocol-error';

/** What was found, and in which words; `code` is the library's, Node's or the broker's. */
export type Finding = { trouble: Trouble; code?: string | number; detail?: string };

/** Reason codes of MQTT 5 (section 2.4) and, below 0x80, return codes of MQTT 3.1.1 (section 3.2.2.3). */
const reasonCodes: Record<number, Trouble> = {
  0x01: 'protocol-version',
  0x02: 'refused-client-id',
  0x03: 'broker-unavailable',
  0x04: 'refused-credentials',
  0x05: 'refused-credentials',
  0x84: 'protocol-version',
  0x85: 'refused-client-id',
  0x86: 'refused-credentials',
  // Mosquitto says so of a wrong password too.
  0x87: 'refused-credentials',
  0x88: 'broker-unavailable',
  0x89: 'broker-unavailable',
  0x8a: 'refused-credentials',
  0x8b: 'broker-unavailable',
  0x8c: 'refused-credentials',
  0x8d: 'no-answer',
  0x8e: 'session-taken',
  0x93: 'limit',
  0x95: 'limit',
  0x96: 'limit',
  0x97: 'limit',
  0x9c: 'broker-unavailable',
  0x9d: 'broker-unavailable',
  0x9e: 'shared-subscriptions',
  0x9f: 'limit',
};

/** Of OpenSSL's checks of a certificate, as Node names them (tls, "X509 certificate error codes"). */
const certificateCodes = new Set([
  'CERT_CHAIN_TOO_LONG',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REJECTED',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'HOSTNAME_MISMATCH',
  'INVALID_CA',
  'INVALID_PURPOSE',
  'PATH_LENGTH_EXCEEDED',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** What the broker's CONNACK or DISCONNECT says. */
export function readReasonCode(code: number): Finding {
  return { trouble: reasonCodes[code] ?? 'protocol-error', code };
}

/** What its SUBACK says (section 3.9.3). `isShared`: the filter begins with `$share`. */
export function readRefusedSubscription(code: number, isShared: boolean): Finding {
  // "Topic Filter invalid" is what brokers say of a $share that they take for a topic.
  const isShare = code === 0x9e || (isShared && code === 0x8f);
  return { trouble: isShare ? 'shared-subscriptions' : 'refused-subscription', code };
}

/** What an error of the client, of TLS or of the socket says. */
export function readError(error: Error): Finding {
  const { code } = error as { code?: unknown };
  const detail = error.message;
  if (typeof code === 'number') return { ...readReasonCode(code), detail };
  if (typeof code !== 'string')
    return { trouble: isUnanswered(error) ? 'no-answer' : 'protocol-error', detail };
  if (certificateCodes.has(code)) return { trouble: 'certificate', code, detail };
  if (code === 'ECONNRESET' || code === 'EPIPE') return { trouble: 'closed', code, detail };
  if (/SSL|TLS|EPROTO/.test(code)) return { trouble: 'tls', code, detail };
  return { trouble: 'unreachable', code, detail };
}
