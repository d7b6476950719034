/** What waits in an account's queue, and is a link of it while it does. */
export type Queued<T> = { readonly accountId: number; previous: T | null; next: T | null };

/** First in, first out; what is in the middle leaves as fast. */
export type LinkedQueue<T> = { first: T | null; last: T | null };

/** Puts an element that is in no queue behind the others. */
export function enqueue<T extends Queued<T>>(queue: LinkedQueue<T>, element: T): void {
  element.previous = queue.last;
  if (queue.last) queue.last.next = element;
  else queue.first = element;
  queue.last = element;
}

/** Takes one of its elements out, wherever it is. */
export function unlink<T extends Queued<T>>(queue: LinkedQueue<T>, element: T): void {
  const { previous, next } = element;
  if (previous) previous.next = next;
  else queue.first = next;
  if (next) next.previous = previous;
  else queue.last = previous;
  element.previous = element.next = null;
}
