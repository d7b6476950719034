import {
  countedOnly,
  furtherOfMinute,
  type Rejection,
  type RejectionDetails,
} from '../../contract/uplink.ts';
import {
  type ApplyLimits,
  type Changes,
  type DeviceState,
  keptPerMinute,
  minuteId,
  type RecentRejections,
  recentRejectionsAt,
  type RejectionRow,
  type Fragment,
} from './model.ts';

/** The longest text. It may quote names that a device made up, which may be as long as a message. */
const maxTextLength = 1_024;

type CollectLimits = Pick<ApplyLimits, 'rejectionsPerMessage' | 'rejectionBytesPerDevice'>;

export type RejectionCollector = {
  /** Returns whether the rejection is kept individually. */
  add: (rejection: Rejection) => boolean;
  /** Call it after the last `add`: it reports how many are only counted. Returns the count for the device's minute. */
  end: () => RecentRejections | null;
};

/**
 * Turns what is wrong with a message into rows and messages to the device: the first `rejectionsPerMessage`
 * individually, the others as a number. The parts of a split message share this limit. Beyond `keptPerMinute` a device
 * has one row a minute, so that a flood of short messages leaves no more behind than good ones would. What the database
 * refused is always kept, because it is stored nowhere else. The first such rejection of a message has the whole
 * payload, so that nothing is lost.
 */
export function collectRejections(
  {
    device: { deviceId, uuid },
    recentRejections: before,
  }: Pick<DeviceState, 'device' | 'recentRejections'>,
  { message: source, isRefused }: Fragment,
  rows: Changes,
  { rejectionsPerMessage, rejectionBytesPerDevice }: CollectLimits,
): RejectionCollector {
  const { topic, arrivedTs: ts } = source.uplink;
  let recentRejections = before;
  let more = 0;
  /** Distinguishes the counting row of one part of a message from that of another. */
  let firstCounted = -1;

  const isFullMinute = () =>
    !isRefused && recentRejectionsAt(recentRejections, ts).kept >= keptPerMinute;

  const countStored = () => rows.rejectionsStored.get(source) ?? source.rejectionsStored;

  /** The whole payload for the first item of the message that the database refused, an excerpt for others. */
  function refusedPayload(): string {
    const { payload, excerpt } = source.uplink;
    if (payload === undefined || source.isPayloadStored || rows.payloadsStored.has(source))
      return storable(excerpt);
    rows.payloadsStored.add(source);
    return cutToBytes(storable(payload), rejectionBytesPerDevice);
  }

  function tell(rejection: Rejection): void {
    const payload = { topic, ...rejection, ts };
    rows.effects.push({ kind: 'down', uuid, message: { topic: 'errors', payload } });
  }

  function keep({ reason, message, path, details, ...rest }: Rejection, item: number): void {
    const stored = countStored();
    rows.rejectionsStored.set(source, stored + 1);
    if (!isRefused) recentRejections = oneMore(recentRejectionsAt(recentRejections, ts));
    const kept: Rejection = { reason, message: cut(message), ...rest };
    if (path !== undefined) kept.path = cut(path);
    rows.rejections.push({
      ...kept,
      ...(details && { details: storableDetails(details) }),
      deviceId,
      messageId: (source.id ??= source.newUuid()),
      item,
      ts,
      topic: storable(topic),
      payload: isRefused ? refusedPayload() : stored === 0 ? storable(source.uplink.excerpt) : '',
    });
    tell(kept);
  }

  function countInMinute(count: number): void {
    const now = recentRejectionsAt(recentRejections, ts);
    const row = minuteRow(now.minute);
    row.more = (row.more ?? 0) + count;
    if (now.kept > keptPerMinute) return;
    recentRejections = oneMore(now);
    tell(furtherOfMinute(count));
  }

  function minuteRow(minute: number): RejectionRow {
    const key = `${deviceId}/${minute}`;
    const known = rows.minutes.get(key);
    if (known) return known;
    const place = { deviceId, messageId: minuteId(minute), item: -1, ts, topic: storable(topic) };
    const row: RejectionRow = { ...furtherOfMinute(0), ...place, payload: '' };
    rows.minutes.set(key, row);
    rows.rejections.push(row);
    return row;
  }

  return {
    add(rejection) {
      if (isFullMinute()) {
        countInMinute(rejection.more ?? 1);
        return false;
      }
      const item = itemOf(rejection.path);
      const isFull = countStored() >= rejectionsPerMessage;
      if (rejection.more === undefined && (!isFull || isRefused)) {
        keep(rejection, item);
        return true;
      }
      more += rejection.more ?? 1;
      if (firstCounted < 0) firstCounted = item;
      return false;
    },
    end() {
      if (more > 0 && isFullMinute()) countInMinute(more);
      else if (more > 0) keep(countedOnly(more), firstCounted);
      return recentRejections;
    },
  };
}

const oneMore = ({ minute, kept }: RecentRejections): RecentRejections => ({
  minute,
  kept: kept + 1,
});

/** PostgreSQL's text can hold any character but NUL. */
const storable = (text: string) => text.replaceAll('\0', '\uFFFD');

function cut(text: string): string {
  const short = text.length > maxTextLength ? `${text.slice(0, maxTextLength - 1)}…` : text;
  return storable(short.toWellFormed());
}

/** The longest identifier of a device that is worth quoting. */
const maxIdLength = 64;

const storableDetails = ({ sId, ...numbers }: RejectionDetails): RejectionDetails =>
  sId === undefined ? numbers : { sId: cut(sId.slice(0, maxIdLength)), ...numbers };

/** As many whole characters as fit into `maxBytes` of UTF-8. */
function cutToBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  return new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true });
}

/** The index of the array element that a JSON Pointer leads into; -1 for the message as a whole. */
function itemOf(path: string | undefined): number {
  const index = /^\/(\d+)(\/|$)/.exec(path ?? '')?.[1];
  return index === undefined ? -1 : Number(index);
}
