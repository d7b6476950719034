import type { NewEvent } from '../../contract/event.ts';
import { countedOnly, type Rejection } from '../../contract/rejection.ts';
import type { MeasurementRow } from './measurement-row.ts';
import type { Message } from './message.ts';

/** Of most lists there is no element: never pushed to. */
const none: never[] = [];

/**
 * What becomes of those of a message's items that one transaction holds. Of measurements and events only the
 * insert tells whether they are new.
 */
export class PlannedOutcome {
  stored = 0;
  repeated = 0;
  rejected: Rejection[] = none;
  measurements: MeasurementRow[] = none;
  events: NewEvent[] = none;
  readonly maxRejections: number;

  constructor(maxRejections: number) {
    this.maxRejections = maxRejections;
  }

  /** A single item changes something. */
  store(): void {
    this.stored += 1;
  }

  /** A single item changes nothing: it came before, or something newer did. */
  repeat(): void {
    this.repeated += 1;
  }

  measure(row: MeasurementRow): void {
    if (this.measurements.length === 0) this.measurements = [row];
    else this.measurements.push(row);
  }

  report(event: NewEvent): void {
    if (this.events.length === 0) this.events = [event];
    else this.events.push(event);
  }

  reject(rejection: Rejection): void {
    if (this.rejected === none) this.rejected = [];
    addRejection(this.rejected, rejection, this.maxRejections);
  }
}

/** The one of this message in the transaction that is being planned. */
export function plannedOutcomeOf(
  message: Message,
  { outcomes }: { outcomes: Map<Message, PlannedOutcome> },
  { rejectionsPerMessage }: { rejectionsPerMessage: number },
): PlannedOutcome {
  const known = outcomes.get(message);
  if (known) return known;
  const planned = new PlannedOutcome(rejectionsPerMessage);
  outcomes.set(message, planned);
  return planned;
}

/** The first `max` one by one; one more counts the others. */
export function addRejection(rejected: Rejection[], rejection: Rejection, max: number): void {
  if (rejection.more === undefined && rejected.length < max) {
    rejected.push(rejection);
    return;
  }
  const more = rejection.more ?? 1;
  const last = rejected.at(-1);
  if (last?.more === undefined) rejected.push(countedOnly(more));
  else rejected[rejected.length - 1] = countedOnly(last.more + more);
}
