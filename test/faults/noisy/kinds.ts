import type { NoisyKind } from './kind.ts';
import { accountChurn } from './kinds/account-churn.ts';
import { alarmFirings } from './kinds/alarm-firings.ts';
import { alarms } from './kinds/alarms.ts';
import { anyEvents } from './kinds/any-events.ts';
import { apiKeys } from './kinds/api-keys.ts';
import { auditLists } from './kinds/audit-lists.ts';
import { badItems } from './kinds/bad-items.ts';
import { bigLists } from './kinds/big-lists.ts';
import { bigPayloads } from './kinds/big-payloads.ts';
import { bigProfiles } from './kinds/big-profiles.ts';
import { buckets } from './kinds/buckets.ts';
import { catchUp } from './kinds/catch-up.ts';
import { chunkedBody } from './kinds/chunked-body.ts';
import { compressedBodies } from './kinds/compressed-bodies.ts';
import { configurations } from './kinds/configurations.ts';
import { connections_ } from './kinds/connections.ts';
import { deepJson } from './kinds/deep-json.ts';
import { descriptors } from './kinds/descriptors.ts';
import { deviceChurn } from './kinds/device-churn.ts';
import { eventAmplification } from './kinds/event-amplification.ts';
import { eventStreams } from './kinds/event-streams.ts';
import { evidence } from './kinds/evidence.ts';
import { exports_ } from './kinds/exports.ts';
import { forgottenPasswords } from './kinds/forgotten-passwords.ts';
import { heldBodies } from './kinds/held-bodies.ts';
import { honestDiskFilling } from './kinds/honest-disk-filling.ts';
import { farResumes } from './kinds/far-resumes.ts';
import { hookSecrets } from './kinds/hook-secrets.ts';
import { hooksHang } from './kinds/hooks-hang.ts';
import { httpConnections } from './kinds/http-connections.ts';
import { imports } from './kinds/imports.ts';
import { loginStorm } from './kinds/login-storm.ts';
import { largePackets } from './kinds/large-packets.ts';
import { longLists } from './kinds/long-lists.ts';
import { manyAddresses } from './kinds/many-addresses.ts';
import { changesAtOnce, listsAtOnce } from './kinds/many-at-once.ts';
import { manyDevices } from './kinds/many-devices.ts';
import { manyPurposes } from './kinds/many-purposes.ts';
import { manySenses } from './kinds/many-senses.ts';
import { manyStates } from './kinds/many-states.ts';
import { messageAmplification } from './kinds/message-amplification.ts';
import { moves } from './kinds/moves.ts';
import { mqttFlood } from './kinds/mqtt-flood.ts';
import { oddPackets } from './kinds/odd-packets.ts';
import { v5Properties } from './kinds/v5-properties.ts';
import { packetBursts } from './kinds/packet-bursts.ts';
import { passwordChanges } from './kinds/password-changes.ts';
import { pipelined, pipelining } from './kinds/pipelining.ts';
import { polls, strangers, uplinks } from './kinds/crowds.ts';
import { polygons } from './kinds/polygons.ts';
import { profileChurn } from './kinds/profile-churn.ts';
import { purposesChurn } from './kinds/purposes-churn.ts';
import { pushStorm } from './kinds/push-storm.ts';
import { reconnects } from './kinds/reconnects.ts';
import { repeatedPurpose } from './kinds/repeated-purpose.ts';
import { reportedEvents } from './kinds/reported-events.ts';
import { reportedStates } from './kinds/reported-states.ts';
import { requestsPerSecond } from './kinds/requests-per-second.ts';
import { sameMillisecond } from './kinds/same-millisecond.ts';
import { scatteredTimes } from './kinds/scattered-times.ts';
import { sessionTakeover } from './kinds/session-takeover.ts';
import { sessions } from './kinds/sessions.ts';
import { slowDownloads } from './kinds/slow-downloads.ts';
import { silences } from './kinds/silences.ts';
import { slowExports } from './kinds/slow-exports.ts';
import { slowHttp } from './kinds/slow-http.ts';
import { slowUplinks } from './kinds/slow-uplinks.ts';
import { slowReader } from './kinds/slow-reader.ts';
import { smsStorm } from './kinds/sms-storm.ts';
import { streamResumes } from './kinds/stream-resumes.ts';
import { subscribeStorm } from './kinds/subscribe-storm.ts';
import { unicodeLogin } from './kinds/unicode-login.ts';
import { unknownPaths } from './kinds/unknown-paths.ts';
import { websocketFrames } from './kinds/websocket-frames.ts';
import { websockets } from './kinds/websockets.ts';
import { wills } from './kinds/wills.ts';

/** First those that once broke a bound, then quotas, then the others. */
export const kinds: NoisyKind[] = [
  anyEvents,
  bigProfiles,
  manySenses,
  manyPurposes,
  badItems,
  manyDevices,
  bigLists,
  smsStorm,
  messageAmplification,
  loginStorm,
  eventStreams,
  unicodeLogin,
  chunkedBody,
  eventAmplification,
  evidence,
  honestDiskFilling,
  catchUp,
  requestsPerSecond,
  exports_,
  imports,
  sessions,
  connections_,
  reconnects,
  subscribeStorm,
  bigPayloads,
  largePackets,
  deepJson,
  hookSecrets,
  hooksHang,
  slowReader,
  purposesChurn,
  profileChurn,
  accountChurn,
  slowHttp,
  slowUplinks,
  slowDownloads,
  compressedBodies,
  scatteredTimes,
  sameMillisecond,
  polls,
  uplinks,
  strangers,
  polygons,
  longLists,
  moves,
  reportedStates,
  reportedEvents,
  configurations,
  streamResumes,
  buckets,
  unknownPaths,
  deviceChurn,
  passwordChanges,
  manyAddresses,
  mqttFlood,
  websockets,
  websocketFrames,
  sessionTakeover,
  heldBodies,
  httpConnections,
  descriptors,
  pipelining,
  ...pipelined,
  repeatedPurpose,
  pushStorm,
  oddPackets,
  ...packetBursts,
  v5Properties,
  auditLists,
  wills,
  farResumes,
  manyStates,
  alarms,
  alarmFirings,
  silences,
  apiKeys,
  slowExports,
  forgottenPasswords,
  listsAtOnce,
  changesAtOnce,
];

/** Throws when there is none of that name. */
export function getKind(name: string): NoisyKind {
  const kind = kinds.find((each) => each.name === name);
  if (!kind) throw new Error(`There is no kind of noise "${name}".`);
  return kind;
}
