import { signal } from '@preact/signals';

const said = signal('');
let timer: ReturnType<typeof setTimeout> | undefined;

/** Says shortly what was done. */
export function say(text: string): void {
  said.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => (said.value = ''), 5_000);
}

export function Toast() {
  return (
    <div class="toast" role="status" aria-live="polite">
      {said.value !== '' && <p>{said.value}</p>}
    </div>
  );
}
