import type { ConnectionEnding, ConnectionRefusal } from '../options.ts';

/** Reason codes of MQTT 5 that are sent or told apart here, section 2.4. */
export const reason = {
  success: 0x00,
  unspecified: 0x80,
  malformed: 0x81,
  protocolError: 0x82,
  implementationSpecific: 0x83,
  unsupportedVersion: 0x84,
  notAuthorized: 0x87,
  unavailable: 0x88,
  busy: 0x89,
  shuttingDown: 0x8b,
  authenticationMethod: 0x8c,
  keepaliveTimeout: 0x8d,
  takenOver: 0x8e,
  filterInvalid: 0x8f,
  topicInvalid: 0x90,
  receiveMaximumExceeded: 0x93,
  topicAliasInvalid: 0x94,
  tooLarge: 0x95,
  quotaExceeded: 0x97,
  payloadFormatInvalid: 0x99,
  retainNotSupported: 0x9a,
  rateExceeded: 0x9f,
  subscriptionIdentifiersNotSupported: 0xa1,
} as const;

/** Of a DISCONNECT, section 3.14.2.1; 0: none is sent, as nobody is there to read it. */
export const disconnectCodes: Record<ConnectionEnding, number> = {
  peer: 0,
  keepalive: reason.keepaliveTimeout,
  malformed: reason.malformed,
  unfinished: reason.busy,
  'foreign-topic': reason.notAuthorized,
  replaced: reason.takenOver,
  'too-many-connections': reason.quotaExceeded,
  'access-ended': reason.notAuthorized,
  'not-stored': reason.busy,
  unread: reason.unspecified,
  shutdown: reason.shuttingDown,
};

/** Of a CONNACK, section 3.2.2.2. */
export const refusalCodes: Record<ConnectionRefusal, number> = {
  'not-authorized': reason.notAuthorized,
  unavailable: reason.unavailable,
  // MQTT 3.1.1 only: in MQTT 5 an empty client identifier is given one.
  identifier: reason.implementationSpecific,
  'protocol-version': reason.unsupportedVersion,
  malformed: reason.malformed,
  timeout: reason.busy,
  'too-many': reason.busy,
  reconnects: reason.rateExceeded,
  connections: reason.quotaExceeded,
};
