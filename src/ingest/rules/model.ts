import type { Place } from '../../contract/place.ts';
import type { Profile } from '../../engine/compile.ts';
import type { Weight } from '../../engine/weight.ts';
import type { DeviceContext } from './device-context.ts';

/**
 * What one transaction may take of the event loop at a stretch, counted in what an ordinary measurement
 * takes: about a microsecond, to plan and to write it. Counted, not timed: a clock would make batches
 * small just when the machine is busy.
 */
export class Budget {
  spent = 0;
  limit: number;

  constructor(limit: number) {
    this.limit = limit;
  }

  get isSpent(): boolean {
    return this.spent >= this.limit;
  }
}

/** What else a message leads to, in the same measure. */
export const costs = {
  /** To compare a measurement with a cause's limits (`CompiledCause`). */
  cause: 1 / 60,
  /** To write down what a cause has collected, and so many outcomes of its window. */
  evidence: 1 / 16,
  outcome: 1 / 1_000,
  /** A firing that is recorded, notifies people or shows a text, and each of its causes. */
  firing: 5,
  firingCause: 3,
  /** One that alarms are to be decided on: rows of theirs, and of messages to people. */
  alarm: 60,
  /** A text that is kept for a display: the newest of its state in a transaction. */
  display: 10,
  /** An item that is rejected: it is told to the device as well. */
  rejection: 5,
  /** One that is counted only: like a good item. */
  counted: 1,
  /** To read a device, its configuration, evidence and newest measurements, from the database. */
  reading: 40,
};

/** Accounts that have their turn within one transaction, at least, where as many wait. */
export const turnsPerBatch = 50;

/**
 * What a device's messages take at most, in ordinary measurements (`Budget`), before any firing: each
 * measurement, and once, to read the device or to write down its evidence.
 */
export type DeviceCost = { perItem: number; once: number };

const plain: DeviceCost = { perItem: 1, once: 0 };
/** What its profile asks for is not known: the device was not read yet. */
export const unreadCost: DeviceCost = { perItem: 1, once: costs.reading };

export function costOf(context: DeviceContext | null): DeviceCost {
  if (!context) return unreadCost;
  const { current, runtime } = context;
  if (current?.engine !== 'service' || !runtime) return plain;
  const weight = findWeight(current.profile, runtime);
  if (!weight) return plain;
  return { perItem: 1 + weight.judging * costs.cause, once: evidenceCostOf(weight) };
}

/** What it takes at most to write down, or to read, the evidence of a device that stands there. */
export function evidenceCost(profile: Profile, place: Place): number {
  const weight = findWeight(profile, place);
  return weight ? evidenceCostOf(weight) : 0;
}

/** What that evidence takes at most while it is remembered, in bytes; measured. */
export function evidenceBytes(profile: Profile, place: Place): number {
  const weight = findWeight(profile, place);
  return weight ? weight.causes * 200 + weight.outcomes / 3 : 0;
}

/** How long that evidence can become as it is stored, in characters; a little more than it mostly is. */
export function evidenceLength(profile: Profile, place: Place): number {
  const weight = findWeight(profile, place);
  return weight ? weight.causes * 8 + weight.outcomes / 6 : 0;
}

function evidenceCostOf({ causes, outcomes }: Weight): number {
  return causes * costs.evidence + outcomes * costs.outcome;
}

function findWeight(profile: Profile, { puId, stId }: Place): Weight | undefined {
  const purpose = profile.purposes.get(puId);
  return purpose?.states.get(stId)?.weight ?? purpose?.globalWeight;
}
