/** Few enough that copying them costs little, and enough that most lists are one page. */
const perPage = 32;

/**
 * A list that never changes. One that differs in an element shares all but a page with it, so that a
 * device which measures with a thousand senses does not copy what it knows of all of them each time.
 */
export class Pages<T> {
  readonly #pages: readonly (readonly (T | undefined)[])[];

  private constructor(pages: readonly (readonly (T | undefined)[])[]) {
    this.#pages = pages;
  }

  static of<T>(elements: readonly (T | undefined)[]): Pages<T> {
    const count = Math.ceil(elements.length / perPage);
    return new Pages(
      Array.from({ length: count }, (_, page) =>
        elements.slice(page * perPage, (page + 1) * perPage),
      ),
    );
  }

  get(index: number): T | undefined {
    return this.#pages[Math.floor(index / perPage)]?.[index % perPage];
  }

  /** `index` must be within the list. */
  with(index: number, element: T): Pages<T> {
    const page = Math.floor(index / perPage);
    const changed = (this.#pages[page] ?? []).slice();
    changed[index % perPage] = element;
    const pages = this.#pages.slice();
    pages[page] = changed;
    return new Pages(pages);
  }
}
